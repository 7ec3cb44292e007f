"""Apache Kafka's command line tools, every verb, on Apache Kafka and on the appliance."""

from pathlib import Path

import pytest

from benchmarks import kafka
from tests.differential import table
from tests.differential.run import both
from tests.differential.tools.play import SCRIPTS, TABLE, play

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.timeout(600)
@pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable()))
def test_the_tools_print_the_same(tmp_path):
    """On brokers of their own: tools list all that is there."""
    with both(tmp_path) as targets:
        report = play(list(SCRIPTS), targets, tmp_path / "files")
    print(report)
    assert report.good, f"\n{report}"


def test_the_documentation_prints_their_table():
    text = (DOCS / "differences.md").read_text()
    assert table.markdown(table.read(TABLE)) in text, "python -m tests.differential.tools --table"
