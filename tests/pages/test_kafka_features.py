"""The table of Apache Kafka's features names tests, pages, commands and settings that exist."""

import re
from pathlib import Path

import pytest

from appliance.config.broker_settings import BROKER
from tests.console.forked_commands import leaves

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "kafka-features.md").read_text()
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| feature")
]
COMMANDS = {" ".join(path) for path, _ in leaves()}
METRICS = (ROOT / "docs" / "metrics.md").read_text()


def test_no_feature_is_named_twice():
    names = [row[0] for row in ROWS]
    assert len(names) == len(set(names)) > 50


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_a_row_names_what_exists(row):
    _, served, shown = row
    quoted = re.findall(r"`([^`]+)`", shown)
    for one in quoted:
        if one.startswith(("tests/", "appliance/")):
            assert (ROOT / one).exists(), one
        elif one.startswith("penstock "):
            assert one.removeprefix("penstock ") in COMMANDS, one
        elif one.startswith("penstock_"):
            assert f"`{one}`" in METRICS, one
        elif one.startswith("penstock."):
            assert one in BROKER, one
    for page in re.findall(r"\]\(([^)]+)\)", shown):
        assert (ROOT / "docs" / page).exists(), page
    assert served in ("yes", "no", "partly", "beyond Kafka") or served.startswith(("by ", "as "))
    if served == "yes":
        assert quoted or "](" in shown, "what shows it?"
