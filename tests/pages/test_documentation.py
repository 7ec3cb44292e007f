"""The documentation: its links lead somewhere, what it types exists, what is made of code is
current."""

import ast
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from importlib.util import find_spec

import pytest

from appliance.config.setting import INT, LONG, STRING, Setting
from appliance.config.units import unit_of
from console.model.meanings.errors import FAILURES, MEANINGS
from console.model.meanings.events import EVENTS
from console.model.meanings.remedies import REMEDIES
from pages import apis, commands, errors
from pages.made import PAGES
from tests.pages.blocks import DOCS, READ, ROOT, blocks, inline, named, prose, typed, unknown

SITE = ROOT / "zensical.toml"
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


@cache
def anchors(path):
    """Of the headings of a page, as the site and a forge make them where they agree."""
    plain = (re.sub(r"[^\w\s-]", "", one).strip().lower() for one in HEADING.findall(prose(path)))
    return {re.sub(r"\s", "-", one) for one in plain}


def test_links_lead_somewhere():
    targets = [(path, target) for path in READ for target in LINK.findall(prose(path))]
    for path, target in targets:
        if re.match(r"[a-z]+:", target):
            continue
        where = f"{named(path)}: {target}"
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), where
        if anchor:
            assert anchor in anchors(there), where
        if DOCS in path.parents:
            assert there.is_file() and DOCS in there.parents, f"{where} is not on the site"


def pages_of(nav):
    for one in nav:
        for found in one.values():
            yield from [found] if isinstance(found, str) else pages_of(found)


def test_every_page_is_found_from_the_first_one():
    listed = list(pages_of(tomllib.loads(SITE.read_text())["project"]["nav"]))
    assert len(listed) == len(set(listed))
    numbered = {path for path in DOCS.rglob("*.md") if re.match(r"\d{4}-", path.name)}
    there = {str(path.relative_to(DOCS)) for path in set(DOCS.rglob("*.md")) - numbered}
    assert set(listed) == there


def test_what_is_typed_exists():
    for path in READ:
        for text in (*(one.text for one in blocks(path)), *inline(path)):
            for words in typed(text):
                assert unknown(words) is None, f"{named(path)}: {' '.join(words)}"


def test_what_does_not_exist_is_found():
    calls = list(typed("penstock topic create a -p 3 && echo b | penstock topik list\n"))
    assert calls == [shlex.split("penstock topic create a -p 3"), ["penstock", "topik", "list"]]
    assert unknown(calls[0]) is None
    assert unknown(calls[1]) == "topik"
    assert unknown(["penstock", "topic", "create", "a", "--partition-count", "3"]) is not None


@pytest.mark.parametrize(
    "line",
    [
        "/opt/penstock/bin/penstock topik list",
        "docker exec penstock penstock topik list",
        "runuser -u penstock -- env A=/var/b /opt/penstock/bin/penstock topik list",
        "pipx, uv: pip install NEWER.whl && penstock topik list   # the rest",
        "│ penstock │  a picture\npenstock topik list",
    ],
)
def test_it_is_found_behind_what_stands_before_it(line):
    assert [unknown(words) for words in typed(line)] == ["topik"]


@pytest.mark.parametrize("name", PAGES)
def test_what_is_made_of_code_is_current(name):
    assert (ROOT / name).read_text() == PAGES[name](), "python -m pages"


def test_every_error_code_has_a_meaning():
    assert list(MEANINGS) == list(errors.codes().values())


def test_every_error_and_failure_has_a_remedy_that_can_be_typed():
    assert REMEDIES.keys() == {*MEANINGS, *FAILURES}
    for name, text in REMEDIES.items():
        for line in re.findall("`(penstock [^`]*)`", text):
            words = [one for one in shlex.split(line) if not one.isupper()]
            assert unknown(words) is None, (name, line)


SAYS = {"event", "event_from", "event_kept", "event_of", "event_seldom", "note", "note_of",
        "complain", "warn", "_report"}  # fmt: skip


@cache  # parsing is what takes the time
def texts(folder):
    """(text constants, names that are given to whoever writes the log) of the modules below a
    folder."""
    constants, names = set(), set()
    for path in sorted((ROOT / folder).rglob("*.py")):
        explains = path.parent.name == "meanings"  # what others say
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and not explains:
                constants.add(node.value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                names |= {*said(node)}
    return constants, names


def said(call):
    """Names of events that this call gives to a log."""
    for given in call.args[:2] if call.func.attr in SAYS else ():
        name = given.value if isinstance(given, ast.Constant) else None
        if isinstance(name, str) and re.fullmatch("[a-z]+(-[a-z]+)*", name):
            yield name


def test_every_event_of_the_log_has_a_meaning_and_no_other():
    (constants, names), (of_console, _) = texts("appliance"), texts("console")
    assert names - EVENTS.keys() == set()
    made = re.compile("(group|transaction)(s-loaded|s-not-loaded|-record-skipped)|broker-.*")
    told = {name for name in EVENTS if not made.fullmatch(name)}
    assert told - constants - of_console == set()


def test_every_failure_of_a_command_has_a_meaning():
    names = set()
    for path in (ROOT / "console").rglob("*.py"):
        names |= set(re.findall(r'\bname="([A-Z][A-Z_]+)"', path.read_text()))
    unknown = names - FAILURES.keys() - set(MEANINGS)
    assert unknown == set()
    assert FAILURES.keys() - names == {"FAILED"}, "what nothing is called is not explained"


def test_every_api_is_there_once():
    keys = re.findall(r"^\| (\d+) \| (\w+) \|", apis.text(), re.MULTILINE)
    served, _, missing = apis.text().partition("## Not served")
    assert ("1", "Fetch") in keys and "ShareFetch" in missing and "ShareFetch" not in served
    told = re.findall(r"^\| (\d+) ", missing, re.MULTILINE)
    assert told and not set(told) & set(re.findall(r"^\| (\d+) ", served, re.MULTILINE))


def test_units_are_those_of_the_name_or_the_meaning():
    assert unit_of(Setting("a.ms", LONG, 1, "How long.")) == "ms"
    assert unit_of(Setting("a.rate", LONG, 1, "Limit, in bytes per second.")) == "bytes/s"
    assert unit_of(Setting("a.max.bytes.per.second", LONG, 1, "Limit.")) == "bytes/s"
    assert unit_of(Setting("a.size", INT, 1, "Memory, in bytes.")) == "bytes"
    assert unit_of(Setting("a.num", INT, 1, "Windows.")) == ""
    assert unit_of(Setting("a.ms", STRING, "", "Where.")) == ""


def test_help_keeps_its_examples_in_lines():
    """click leaves a paragraph as it is when \\b stands alone above it, and else runs it on."""
    for one in commands.found():
        told = f"{one.command.help or ''}\n{one.command.epilog or ''}"
        wrong = [line for line in told.splitlines() if "\b" in line and line.strip(" ") != "\b"]
        assert not wrong, " ".join(one.words)


def test_whatever_is_listed_can_be_watched():
    """`event list` goes on by -f; what metrics, backups and profiles there are does not move,
    `config describe` explains, systemd says how its service is."""
    verbs = ("list", "status", "usage", "lag", "hanging", "describe")
    lists = {
        one.words[1:]: one.command.params for one in commands.found() if one.words[-1] in verbs
    }
    watched = {words for words, params in lists.items() if "watch" in {one.name for one in params}}
    still = {
        ("event", "list"), ("metrics", "list"), ("config", "describe"), ("backup", "list"),
        ("profile", "list"), ("service", "status"),
    }  # fmt: skip
    assert set(lists) - watched - still == set()
    for words in watched:
        (form,) = (one for one in lists[words] if one.name == "output")
        assert "yaml" in form.type.choices, words


@pytest.mark.skipif(find_spec("zensical") is None, reason="the extra docs is not installed")
def test_the_site_is_built_without_a_warning(tmp_path):
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copy(SITE, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    built = {str(path.relative_to(tmp_path / "build/site")) for path in tmp_path.rglob("*.html")}
    assert {"index.html", "concepts.html", "reference/settings.html"} <= built


def test_tests_that_pages_name_are_there():
    named = {
        (page.name, path)
        for page in (ROOT / "docs").rglob("*.md")
        for path in re.findall(r"`(tests/[\w/.]+)`", page.read_text())
    }
    assert ("threat-model.md", "tests/hostile") in named
    assert not [one for one in named if not (ROOT / one[1]).exists()]
