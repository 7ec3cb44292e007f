"""Each long proof is listed with what it proves, and each file that is listed exists."""

import re
from pathlib import Path

from tests import tiers

TABLE = re.findall(
    r"^\| `([^`]+)` \|.*\| ([^|]+) \|$",
    (tiers.HERE / "README.md").read_text().partition("## Long proofs")[2],
    re.MULTILINE,
)
SINGLE = re.compile(r"^\s*@?pytest(?:mark = .*|\.mark\.proof).*\bproof\b", re.MULTILINE)


def listed(when):
    return sorted(path for path, told in TABLE if told == when)


def test_each_proof_is_in_the_table():
    assert listed("`.ci/run`") == sorted(tiers.PROOFS)
    assert listed("nightly") == sorted(tiers.NIGHTLY)


def test_a_test_that_carries_the_mark_itself_is_in_the_table():
    for path in tiers.HERE.rglob("test_*.py"):
        if path != Path(__file__) and SINGLE.search(path.read_text()):
            name = str(path.relative_to(tiers.HERE))
            assert any(row.startswith(name) for row, _ in TABLE), name


def test_files_that_are_named_exist():
    for name in (*tiers.PROOFS, *tiers.NIGHTLY):
        assert (tiers.HERE / re.split("::| ", name)[0]).exists(), name
    for name in tiers.durations():
        assert (tiers.HERE.parent / name).exists(), name


def test_no_two_test_files_share_a_name():
    """Folders of tests are no packages: the second file of a name would not be collected."""
    seen = {}
    for path in sorted(tiers.HERE.rglob("test_*.py")):
        before = seen.setdefault(path.name, path)
        assert before == path, f"{before} and {path}: give one of them another name"


def test_files_that_wait_and_files_that_compute_alternate_longest_first():
    took = {"w1": (80, 5), "w2": (20, 2), "c1": (60, 60), "c2": (30, 20), "c3": (9, 9)}
    order = tiers.order_files(["c3", "w2", "short", "c1", "w1", "c2"], took)
    assert order == ["c1", "w1", "c2", "w2", "c3", "short"]
