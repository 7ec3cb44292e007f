"""Every script of `tests/differential` once more: as somebody whom rules allow everything, the
answers are those that everybody gets without rules; as somebody without a rule, Apache Kafka's."""

import pytest

from benchmarks import kafka
from tests.differential import registry, table
from tests.differential.rights import whole
from tests.differential.rights.plays import NOBODY
from tests.differential.run import run

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("who", [whole.ALLOWED, NOBODY.name])
def test_the_answers_are_the_same(tmp_path, who):
    if reason := kafka.unavailable():
        pytest.skip(reason)
    entries = table.of_nobody() if who == NOBODY.name else table.of_scripts()
    with whole.ruled(tmp_path, who) as targets:
        report = run(whole.scripts(registry.load(), who), targets, entries, whole=False)
    print(report)
    assert report.good, f"\n{report}"
