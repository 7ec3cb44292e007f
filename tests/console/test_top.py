"""`penstock top`: rates by topic, connection and process, live or as plain text."""

import json
import os
import pty
import select
import subprocess

import pytest

from console.show import top
from console.show.top import CLIENTS, PROCESSES, TOPICS, Seen, View
from tests.console.calm_world import facts
from tests.console_process import PENSTOCK, typing


def seen():
    known = facts()
    topics = list(known.topics.values())
    return Seen("12:00:00", "last 2.0 s", topics, known.clients, known.processes, 430.0)


def column(view, title):
    """What is seen in it, from the top."""
    heads, *rows = (line for line in top.lines(view, seen())[2:])
    at = heads.index(title)
    return [row[at:].split("  ")[0].strip() for row in rows]


def keys(text):
    view = View()
    for one in text:
        view = top.pressed(view, one)
    return view


def test_the_busiest_are_first_and_a_key_shows_others():
    assert column(View(), "TOPIC") == ["orders", "payments", "revenue-by-minute", "returns"]
    assert column(keys("c"), "CLIENT") == ["shop", "loader", "reports"]
    assert column(keys("p"), "PROCESS") == ["netproc-0", "ioproc-0", "control"]
    assert [keys(one).kind for one in "tcp"] == [TOPICS, CLIENTS, PROCESSES]


def test_rows_are_sorted_by_the_column_that_was_chosen():
    assert keys(">>>>").by == "SIZE" and keys("<").by == "TOPIC" and keys("><") == View()
    assert column(keys("<"), "TOPIC") == ["orders", "payments", "returns", "revenue-by-minute"]
    assert column(keys("<r"), "TOPIC") == ["revenue-by-minute", "returns", "payments", "orders"]
    assert column(keys("r"), "TOPIC")[0] == "returns"
    assert column(keys("c>>>"), "CLIENT")[0] == "loader"  # who waits
    assert top.sorted_by(View(PROCESSES), "long").by == "LONGEST MS"
    with pytest.raises(ValueError, match="no column 'x'"):
        top.sorted_by(View(), "x")


def test_q_ends_and_what_means_nothing_changes_nothing():
    assert keys("q") is None and keys("Q\x1b[A ") == View()


def test_more_rows_than_fit_are_left_out_and_names_cannot_paint():
    assert len(top.lines(View(), seen(), most=4)) == 4
    hostile = seen().clients[0].__class__
    one = {name: getattr(seen().clients[0], name) for name in hostile.__dataclass_fields__}
    painted = seen()._replace(clients=[hostile(**{**one, "client_id": "\x1b[2J"})])
    assert "\x1b" not in "".join(top.lines(View(CLIENTS), painted))


def test_into_a_pipe_it_is_plain_text(run, alone):
    data = ("--data", str(alone.data_dir), "--interval", "0.1")
    told = run("top", *data, "-p", "-n", "2").stdout
    assert told.count("processes by CPU %") == 2 and told.count("ioproc-0") == 2
    assert "\x1b" not in told
    assert run("top", *data, "--sort", "topic").stdout.count("topics by TOPIC") == 1
    run("top", *data, "--sort", "nothing", code=2)


def test_on_a_terminal_keys_are_heard_and_the_screen_is_given_back(alone):
    ours, theirs = pty.openpty()
    words = [*PENSTOCK, "top", "--interval", "60", "--data", str(alone.data_dir)]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs) as shown:
        try:
            told = _until(ours, "topics by IN/S", "q quit")
            os.write(ours, b"p")
            told += _until(ours, "processes by CPU %", "q quit")
            os.write(ours, b"q")
            told += _until(ours, "\x1b[?1049l")
            assert shown.wait(30) == 0
        finally:
            shown.kill()
            os.close(ours)
            os.close(theirs)
    assert told.index("\x1b[?1049h") < told.index("topics by")


def _until(terminal, *awaited):
    """What is shown until all of that was."""
    told = ""
    while not all(one in told for one in awaited):
        assert select.select([terminal], [], [], 30)[0], (awaited, told)
        told += os.read(terminal, 1 << 16).decode()
    return told


def test_a_process_id_is_whole_and_a_record_has_a_size(alone):
    """Both go into other commands, and a topic with a record is not empty."""
    run = typing(alone.bootstrap)
    run("topic", "create", "tiny.top")
    run("produce", "tiny.top", "--value", "x")
    at = ("--data", str(alone.data_dir))
    told = run("top", "-p", "-n", "1", "--interval", "0.1", *at).stdout
    assert all(f" {pid} " in told for pid in alone.pids()[1:])
    rows = json.loads(run("stats", "--topics", "--over", "0.1", *at, "-o", "json").stdout)
    (size,) = [row["size_mb"] for row in rows if row["topic"] == "tiny.top"]
    assert 0 < size < 0.001
    told = run("top", "-n", "1", "--interval", "0.1", *at).stdout
    (line,) = [line for line in told.splitlines() if "tiny.top" in line]
    assert f"{round(size * 1e6)} B" in line
