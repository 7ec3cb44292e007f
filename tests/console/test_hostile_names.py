r"""Names, keys and values that strangers made reach no terminal as control characters."""

import re

import pytest

from tests.console.every_command import SAMPLES, words
from tests.console.forked_commands import TERMINAL, Forks, leaves
from tests.console_process import typing

HOSTILE = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202eevil\x7f\r"
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
OURS = re.compile(r"\x1b\[(H|J|K|\?1049[hl]|\?25[hl])")
PAINTS = {"top", "console", "run", "restart", "doctor"}

LOOKS_AT_IT = re.compile(r"\{(topic|group|data)\}|list|hanging|usage|export")
"""Samples of commands that show what strangers made."""
AS_CSV = ("group list", "txn list", "topic list")


@pytest.fixture(scope="module")
def places(alone, tmp_path_factory):
    """A topic with hostile records, read by a hostile group as a hostile client."""
    run = typing(alone.bootstrap)
    away = tmp_path_factory.mktemp("hostile")
    file = away / "file"
    file.write_text(f"a = {HOSTILE!r}\n")
    run("topic", "create", "hostile")
    sent = f"h={HOSTILE}\x1e{HOSTILE}\x1e{HOSTILE}"
    run("produce", "hostile", "-f", r"%h\x1e%k\x1e%v", "-D", "\\0", stdin=sent)
    run("consume", "hostile", "-g", HOSTILE, "-n", "1", "-X", f"client.id={HOSTILE}")
    return {
        "data": alone.data_dir, "topic": "hostile", "group": HOSTILE.replace("\r", ""),
        "file": file, "away": away / "away", "jobs": away / "jobs", "copies": away / "copies",
    }  # fmt: skip


@pytest.fixture(scope="module")
def forks(alone, places):
    made = Forks(PENSTOCK_BOOTSTRAP=alone.bootstrap)
    yield made
    made.close()


def _is_safe(done, typed):
    shown = OURS.sub("", done.stdout.replace(b"\r\n", b"\n").decode())
    assert not (found := FORBIDDEN.search(shown)), (typed, found, shown)


def test_no_control_character_reaches_a_terminal_from_any_command(forks, places):
    for path, _ in leaves():
        if " ".join(path) not in SAMPLES or path[0] in PAINTS:
            continue
        if not LOOKS_AT_IT.search(SAMPLES[" ".join(path)] + path[-1]):
            continue
        typed = words(path, **places)
        _is_safe(forks.run(*typed, stdout=TERMINAL), typed)
    for typed in AS_CSV:
        _is_safe(forks.run(*typed.split(), "-o", "csv", stdout=TERMINAL), typed)


@pytest.mark.parametrize("form", [["-J"], ["--csv"], ["-f", "%k %v %h\\n"], ["--decode", "auto"]])
def test_records_are_escaped_on_a_terminal_and_whole_in_a_file(forks, form):
    typed = ("consume", "hostile", "-e", *form)
    _is_safe(forks.run(*typed, stdout=TERMINAL), typed)
    if form[0] in ("--csv", "-f"):
        assert HOSTILE.encode() in forks.run(*typed).stdout


def test_raw_is_what_was_written(forks):
    typed = ("consume", "hostile", "-e", "--raw")
    assert b"\x1b]0;owned\x07\x1b[31m" in forks.run(*typed, stdout=TERMINAL).stdout


def test_json_tells_the_same_without_control_characters(forks, places):
    told = forks.run("group", "list", "-o", "json").stdout.decode()
    assert "\\u009b2J\\u202eevil\\u007f" in told
    assert not FORBIDDEN.search(told)
