"""Answers of docs/contributing.md to "where is ...?" hold in the code as it stands."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text()
ANSWERS = re.findall(r"^\| (.+?) \| `([a-z_/0-9]+\.py)` \| `(.+?)` \|$", PAGE, re.MULTILINE)


def test_there_are_at_least_ten_answers():
    assert len(ANSWERS) >= 10


@pytest.mark.parametrize(("question", "file", "begin"), ANSWERS, ids=[a[0] for a in ANSWERS])
def test_the_file_of_an_answer_has_what_it_says(question, file, begin):
    assert begin in (ROOT / file).read_text(), question


def test_every_file_that_is_named_exists():
    named = re.findall(r"`((?:appliance|console|tests|docs)/[a-z_/0-9]+(?:\.\w+)?)`", PAGE)
    assert len(named) > 20
    assert not [name for name in named if not (ROOT / name).exists()]


def test_the_index_of_decisions_has_every_title():
    folder = ROOT / "docs" / "decisions"
    pages = sorted(folder.glob("0*.md"))
    titles = [page.read_text().splitlines()[0].removeprefix("# ") for page in pages]
    numbered = [re.fullmatch(r"(\d+)\. (.+)", title) for title in titles]
    rows = [
        f"| {number} | [{title}]({page.name}) |"
        for page, (number, title) in zip(pages, (one.groups() for one in numbered), strict=True)
    ]
    listed = [row for row in (folder / "README.md").read_text().splitlines() if "](0" in row]
    assert listed == rows
