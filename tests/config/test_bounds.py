"""Every bound of what clients may use has a setting, an event, a metric, a line of the doctor, and
a test that drives it to its ceiling."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.config import bounds
from appliance.config.bounds import BOUNDS, PLACES, setting_of
from appliance.config.broker_settings import BROKER
from appliance.exporter.exposition import Page
from appliance.exporter.security import tell_bounds
from appliance.ring.bound_table import BoundTable, ReachedBound
from console.model.doctor import judge
from console.model.meanings.events import EVENTS
from tests.bounds_driven import DRIVEN
from tests.console.test_doctor import NOW, WELL

ROOT = Path(__file__).parents[2]
NAMES = {
    value: name for name, value in vars(bounds).items() if name.isupper() and isinstance(value, str)
}


def constants(tree):
    """Every name, attribute and text in the code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def test_names_are_those_of_the_table():
    assert set(NAMES) == set(PLACES) and len(PLACES) == len(BOUNDS)


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda one: one.name)
def test_a_bound_has_a_setting_that_means_something_and_an_event(bound):
    assert bool(bound.setting) != bool(bound.of_host)
    if bound.setting:
        found = BROKER[bound.setting]
        assert isinstance(found.default, int) and found.default > 0 and not found.inert
        assert setting_of(bound.name) == found.name
    assert bound.event in EVENTS
    assert bound.what.endswith(".") and bound.effect.endswith(".") and bound.remedy.endswith(".")


@pytest.fixture(scope="module")
def counted():
    """The names that each module of the product but the table itself speaks of."""
    files = [one for one in (ROOT / "appliance").rglob("*.py") if one.name != "bounds.py"]
    return {name for one in files for name in constants(ast.parse(one.read_text()))}


@pytest.mark.parametrize("name", PLACES)
def test_a_bound_is_counted_somewhere_and_driven_by_a_test(name, counted):
    assert NAMES[name] in counted
    where = DRIVEN[name]
    path, _, function = where.partition("::")
    tree = ast.parse((ROOT / "tests" / path).read_text())
    assert function in [one.name for one in tree.body if isinstance(one, ast.FunctionDef)]
    assert NAMES[name] in set(constants(tree)), f"{path} does not look at its count"


def test_nothing_else_is_driven():
    assert set(DRIVEN) == set(PLACES)


def test_metric_and_doctor_speak_of_each():
    memory = memoryview(bytearray(BoundTable.bytes_needed(1, 1)))
    table = BoundTable(memory, ioprocs=1, netprocs=1)
    for number, name in enumerate(PLACES):
        for process in ("netproc-0", "control")[: 1 + number % 2]:
            table.regions[process].count(name, int(NOW) * 1000 - 120_000)
    page = Page()
    tell_bounds(page, table)
    text = page.text()
    reached = {one.name: one for one in table.reached()}
    for number, bound in enumerate(BOUNDS):
        times = 1 + number % 2
        assert f'penstock_bound_reached_total{{bound="{bound.name}"}} {times}\n' in text
        (found,) = judge.findings(replace(WELL, bounds=(reached[bound.name],)))
        assert found.subject == bound.name and f"{times:,} times" in found.found
        assert "2 min ago" in found.found
        assert (bound.setting or bound.of_host) in found.wanted


def test_a_bound_that_this_version_does_not_know_is_left_out():
    assert judge.findings(replace(WELL, bounds=(ReachedBound("of-tomorrow", 1, 0),))) == []
