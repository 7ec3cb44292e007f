"""The threat model's checks: each names tests that there are, and no core of a service is kept."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "threat-model.md").read_text()
TESTS = re.findall(r"`(tests/[\w/.]+)::(\w+)`", TEXT)
CHECKS = 14


def test_each_check_has_a_row_with_tests():
    rows = re.findall(r"^\| (\d+) \|(.*)$", TEXT, re.MULTILINE)
    assert [int(number) for number, _ in rows] == [*range(1, CHECKS + 1)]
    assert not [number for number, row in rows if "`tests/" not in row]


def test_those_that_are_named_are_there():
    assert len(TESTS) > 20
    sources = {file: (ROOT / file).read_text() for file, _ in TESTS}
    assert not [
        (file, name)
        for file, name in TESTS
        if not re.search(rf"^def {name}\(", sources[file], re.MULTILINE)
    ]


def test_each_row_of_who_may_try_what_names_tests_that_are_there():
    table = TEXT.partition("## Who is not")[2].partition("## What is not stopped")[0]
    rows = [row for row in table.splitlines() if row.startswith("| ")][1:]
    named = [re.findall(r"`(tests/[\w/.]+)`", row.rstrip("| ").rpartition("|")[2]) for row in rows]
    assert len(rows) > 15
    assert not [row for row, tests in zip(rows, named, strict=True) if not tests]
    assert not [one for tests in named for one in tests if not (ROOT / one).exists()]


@pytest.mark.parametrize("unit", sorted((ROOT / "systemd").glob("penstock*.service")))
def test_a_service_leaves_no_core(unit):
    """It would hold the passwords that a process has in its memory."""
    assert "\nLimitCORE=0\n" in unit.read_text()
