"""No command ends in a traceback, wherever its output goes and whatever it is given: a line on
stderr says why, and the exit code."""

import click
import pytest

from tests.console.every_command import LEFT_OUT, SAMPLES, words
from tests.console.forked_commands import (
    CLOSED,
    FULL,
    HUNG_UP,
    NO_READER,
    Forks,
    leaves,
)

COMMANDS = [path for path, _ in leaves()]
TRIED = [path for path in COMMANDS if " ".join(path) in SAMPLES]
WHY = {FULL: "No space left on device", HUNG_UP: "Input/output error", CLOSED: "Bad file"}
NO_TEXT = "\udcff\udcfe"
"""Bytes that are no UTF-8, as Python has them in sys.argv."""


TEXTS = ("regex", "metric", "topic_id", "client_id", "state", "topics", "query", "key", "headers")
"""Options that are given NO_TEXT."""


@pytest.fixture(scope="module")
def forks(appliance):
    made = Forks(PENSTOCK_BOOTSTRAP=appliance.bootstrap)
    yield made
    made.close()


@pytest.fixture(scope="module")
def places(appliance, run, tmp_path_factory):
    """What the samples name: most of it is not there."""
    away = tmp_path_factory.mktemp("samples")
    file = away / "file"
    file.write_bytes(b"a = \xff\n")
    run("topic", "create", "samples", "--if-not-exists")
    run("produce", "samples", "--value", "Grüße, 世界")
    run("consume", "samples", "-g", "sample-readers", "-n", "1")
    return {
        "data": appliance.data_dir, "topic": "samples", "group": "sample-readers", "file": file,
        "away": away / "away", "jobs": away / "jobs", "copies": away / "copies",
    }  # fmt: skip


def test_every_command_has_a_sample_or_says_why_not():
    assert {" ".join(path) for path in COMMANDS} == {*SAMPLES, *LEFT_OUT}


def _told(done, typed):
    told = done.stderr.decode()
    for word in ("Traceback", "Exception ignored", "INTERNAL_ERROR"):
        assert word not in told, (typed, told)
    assert 0 <= done.returncode != 120, (typed, done.returncode)
    return told


@pytest.mark.parametrize("kind", [NO_READER, FULL, HUNG_UP, CLOSED])
def test_help_that_cannot_be_written(forks, kind):
    for path in [(), ("topic",), *COMMANDS[::12]]:
        done = forks.run(*path, "--help", stdout=kind)
        told = _told(done, path)
        if kind == NO_READER:
            assert (done.returncode, told) == (141, ""), path
        else:
            assert done.returncode == 1, (path, told)
            assert f"penstock: stdout: {WHY[kind]}" in told, (path, told)


@pytest.mark.parametrize("path", TRIED, ids="-".join)
def test_a_result_that_cannot_be_written(forks, places, path):
    typed = words(path, **places)
    whole = forks.run(*typed)
    _told(whole, typed)
    for kind in (NO_READER, FULL):
        done = forks.run(*typed, stdout=kind)
        told = _told(done, typed)
        if not whole.stdout:
            assert done.returncode == whole.returncode, typed
        elif kind == NO_READER:
            assert done.returncode == 141, (typed, told)
        else:
            assert done.returncode == 1, (typed, told)
            assert f"penstock: stdout: {WHY[kind]} [OUTPUT_FAILED]" in told, typed


@pytest.mark.parametrize("path", TRIED, ids="-".join)
def test_a_result_in_an_alphabet_that_lacks_its_letters(forks, places, path):
    typed = words(path, **places)
    done = forks.run(*typed, encoding="ascii", env={"LC_ALL": "C", "PYTHONUTF8": "0"})
    _told(done, typed)
    if path[-1] not in ("consume", "page"):
        assert done.stdout.isascii(), typed


@pytest.mark.parametrize("path", TRIED, ids="-".join)
def test_words_and_input_that_are_no_text(forks, places, path):
    command = next(found for one, found in leaves() if one == path)
    typed = words(path, **places)
    for index in range(len(path), len(typed)):
        if typed[index] == str(places["topic"]) or typed[index] == str(places["group"]):
            typed[index] = NO_TEXT
    for option in command.params:
        if isinstance(option, click.Option) and option.name in TEXTS:
            typed += [option.opts[0], NO_TEXT]
    _told(forks.run(*typed, stdin=b"\xff\xfe\n\x80"), typed)


def test_bytes_of_a_record_stay_as_they_are(run, forks):
    run("topic", "create", "no-text")
    done = forks.run("produce", "no-text", "-f", "%h\t%v", stdin=b"h=\xff\tv\n")
    assert done.returncode == 0, done.stderr
    typed = ["-k", NO_TEXT, "--value", "\udcfd", "-H", "h=\udcfc"]
    assert forks.run("produce", "no-text", *typed).returncode == 0
    read = forks.run("consume", "no-text", "-e", "-f", "%k|%h|%v;")
    assert read.stdout == b"|h=\xff|v;\xff\xfe|h=\xfc|\xfd;"
    wrong = forks.run("produce", "no-text", "-f", "%h\t%v", stdin=b"\xff=a\tv\n")
    assert (wrong.returncode, wrong.stderr) == (
        2, b"penstock: the header's name \\xff is not UTF-8\n"
    )  # fmt: skip
