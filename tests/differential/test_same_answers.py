"""Every script on Apache Kafka and on the appliance."""

import pytest

from benchmarks import kafka
from tests.differential import registry, table
from tests.differential.run import SETTINGS, both, run
from tests.differential.scripts.acls import every, rule

pytestmark = pytest.mark.timeout(900)


def test_the_answers_are_the_same(targets):
    report = run(registry.load(), targets, table.of_scripts())
    print(report)
    assert report.good, f"\n{report}"


def test_every_advertised_api_has_a_script(targets):
    """An API that is advertised and compared with nothing would be believed for nothing."""
    ours, _ = targets
    not_kafkas = {71, 72}  # asked by the script client_metrics
    assert set(ours.ranges) - not_kafkas == {script.key for script in registry.load()}


def acls_without_an_authorizer(s):
    s.ask("made", "CreateAcls", creations=[rule("orders"), rule("")])
    s.ask("described", "DescribeAcls", **every())
    s.ask("removed", "DeleteAcls", filters=[every(), every(operation=3)])


def test_without_an_authorizer_the_answers_are_the_same(tmp_path):
    if reason := kafka.unavailable():
        pytest.skip(reason)
    without = {key: SETTINGS[key] for key in SETTINGS if "authorizer" not in key}
    scripts = [one for one in registry.load() if one.name == "api_versions"]
    scripts.append(
        registry.Script("acls_unsecured", "DescribeAcls", acls_without_an_authorizer, None)
    )
    with both(tmp_path, settings=without) as targets:
        report = run(scripts, targets, table.of_scripts(), whole=False)
    print(report)
    assert report.good, f"\n{report}"
