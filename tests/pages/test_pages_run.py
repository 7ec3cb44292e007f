"""Every block of commands in the documentation is run, here or by another test, or there is a
reason why not: `run_table.py`."""

import re
import shutil

import pytest

from tests.pages.blocks import READ, ROOT, blocks
from tests.pages.run_table import ELSEWHERE, HERE, MADE, NOT_RUN
from tests.pages.typing_world import world as made_world

BLOCKS = [block for path in READ for block in blocks(path) if block.page not in MADE]
LISTED = [*HERE, *ELSEWHERE, *NOT_RUN]
ASKS = re.compile(r"\[y/N\] |to continue: ")
FILES = {"docs/jobs.md": "delays.toml"}
"""Pages whose first block of TOML is the file that their commands name."""


def begins(block, key):
    page, start = key
    return block.page == page and block.text.startswith(start)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    home = tmp_path_factory.mktemp("pages")
    with made_world(home) as one:
        for page, name in FILES.items():
            text = (ROOT / page).read_text().split("```toml\n")[1].partition("```")[0]
            (home / "running" / name).write_text(text)
        yield one


def test_every_block_is_run_or_there_is_a_reason():
    for block in BLOCKS:
        found = [key for key in LISTED if begins(block, key)]
        assert len(found) == 1, f"{block.page}: {block.text}"


def test_what_is_listed_is_there():
    for key in LISTED:
        assert len([block for block in BLOCKS if begins(block, key)]) == 1, key


def test_whoever_runs_it_is_there():
    assert not [test for test in ELSEWHERE.values() if not (ROOT / test).exists()]


def test_reasons_name_tests_that_there_are():
    for reason in (*NOT_RUN.values(), *(r for run in HERE.values() for r in run.left.values())):
        named = [word.strip(",;:") for word in reason.split() if word.startswith("tests/")]
        assert all((ROOT / one).exists() for one in named), reason


@pytest.mark.timeout(300)
@pytest.mark.parametrize("key", HERE, ids=": ".join)
def test_it_runs_as_it_stands(world, key):
    run = HERE[key]
    if run.needs and shutil.which(run.needs) is None:
        pytest.skip(f"there is no {run.needs} here")
    (block,) = [block for block in BLOCKS if begins(block, key)]
    lines = block.text.splitlines()
    for start in run.named():
        assert any(f"{line}\n".startswith(start) for line in lines), start
    for theirs in run.given:
        assert theirs.strip() in block.text, theirs
    for line in lines:
        run_line(world, line, run)


def run_line(world, line, run):
    def told(of, other):
        return next((of[start] for start in of if f"{line}\n".startswith(start)), other)

    if told(run.left, None) is not None:
        return
    typed = world.said_by(line, run)
    if (until := told(run.goes_on, None)) is not None:
        code, said = world.type_and_end(typed, run.where, until)
        assert until in said, (typed, said)
    elif (until := told(run.screens, None)) is not None:
        code, said = world.at_terminal(typed, run.where, until, "q")
    elif (answer := told(run.answers, None)) is not None:
        code, said = world.at_terminal(typed, run.where, ASKS, f"{answer}\n")
    else:
        code, said = world.type(typed, run.where)
    assert code in told(run.codes, (0,)), (typed, said)
    assert "Traceback" not in said, said
