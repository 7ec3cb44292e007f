"""Records written from the console: keys are pressed, then the broker is read."""

import os
import signal
import socket
from functools import partial

import pytest

import penstock
from benchmarks.kafka import free_port
from console.model.asking.change import Change, carry_out
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.records import producing
from console.model.records.outgoing import Outgoing, words
from console.screens.places import Place
from console.screens.rows import Rows
from tests.console.seat import sit
from tests.console_process import typing

BINARY = (b"\xff\x00", b'{"n": 1.10}', [("a", b"1"), ("a", b"\xff"), ("n", None)])


@pytest.fixture(scope="module")
def filled(alone):
    run = typing(alone.bootstrap)
    run("topic", "create", "plain", "-p", "3")
    run("topic", "create", "packed", "-p", "2", "-c", "cleanup.policy=compact")
    return alone


def records(bootstrap, topic):
    """Everything in it, as (partition, key, value, headers)."""
    link = penstock.connect(bootstrap)
    return [
        (one.partition(), one.key(), one.value(), one.headers() or []) for one in link.read(topic)
    ]


async def fill(seat, *fields):
    """Type into a form, field after field; None leaves one as it is."""
    for text in fields:
        if text is not None:
            await seat.type(text)
        await seat.press("tab")


async def send(seat):
    await seat.press("ctrl+s")
    await seat.plan()
    await seat.press("right", "enter")
    await seat.back()


def test_a_record_is_typed_and_written(filled):
    async def act(seat):
        await seat.sees("PARTITION")
        await seat.press("p")
        await seat.sees("Produce to plain", "Key is typed as")
        await fill(seat, "key", None, '{"n": 1}', None, None, "a=1")
        await seat.press("1")
        await seat.press("ctrl+s")
        await seat.plan()
        await seat.sees("partition  1", "penstock produce plain -p 1 -k key")
        assert seat.app.focused.id == "cancel"
        await seat.press("right", "enter")
        await seat.back()
        await seat.sees("Produce to plain: partition 1")
        await seat.press("4", "/")
        await seat.type("changed")
        await seat.press("enter")
        await seat.sees("Produce to plain: partition 1")

    sit(filled.bootstrap, act, first=Place("topic", "plain"))
    mine = [one for one in records(filled.bootstrap, "plain") if one[1] == b"key"]
    assert mine == [(1, b"key", b'{"n": 1}', [("a", b"1")])]


def test_a_record_is_sent_again_with_what_was_edited(filled):
    key, value, headers = BINARY
    with penstock.connect(filled.bootstrap).producer() as producer:
        producer.produce("plain", value, key=key, headers=headers, partition=2)

    async def act(seat):
        await seat.sees("0xff00")
        await seat.press("g", "e")
        await seat.sees("Send plain 2:", "ff00", "1.10", "a=1")
        await send(seat)
        await seat.press("g", "enter")
        await seat.sees("Header a", "Value  11 bytes  json")
        await seat.press("d")
        await seat.sees("it begins with neither { nor [", "fits")
        while seat.app.screen.query_one(Rows).key != "value hex":
            await seat.press("j")
        await seat.press("enter")
        await seat.sees("Value  11 bytes  hex")
        await seat.press("e")
        await seat.sees("Send plain 2:", "ff00")
        await fill(seat, None, None)
        await seat.press("end", "backspace", "5", "}", *["tab"] * 3, "down", "down", "end", *"=x")
        await send(seat)

    sit(filled.bootstrap, act, first=Place("records", "plain"))
    mine = [one for one in records(filled.bootstrap, "plain") if one[1] == key]
    same, changed = (2, key, value, headers), [*headers[:2], ("n", b"x")]
    assert mine == [same, same, (2, key, b'{"n": 1.105}', changed)]


def test_a_tombstone_says_what_it_does_where(filled):
    with penstock.connect(filled.bootstrap).producer() as producer:
        producer.produce("packed", b"v" * 3000, key=b"k" * 300, partition=1)

    async def act(seat):
        await seat.sees("kkk")
        await seat.press("D")
        await seat.plan()
        await seat.sees(
            "packed is compacted", "delete.retention.ms", "produce packed -p 1 -k", "kkk"
        )
        await seat.press("right", "enter")
        await seat.back()
        await seat.press(":")
        await seat.type("topic plain")
        await seat.press("enter", "p")
        await seat.sees("Produce to plain")
        await fill(seat, "gone", None, "v", None)
        await seat.press("space", "ctrl+s")
        await seat.sees("a tombstone has no value")
        await seat.press("shift+tab", "shift+tab", "backspace")
        await seat.press("ctrl+s")
        await seat.plan()
        await seat.sees("plain is not compacted", "deletes nothing")
        await seat.press("escape", "escape")
        await seat.back()
        await seat.press("p")
        await seat.sees("gone")
        await seat.press("escape")

    sit(filled.bootstrap, act, first=Place("records", "packed"))
    found = records(filled.bootstrap, "packed")
    assert found == [(1, b"k" * 300, b"v" * 3000, []), (1, b"k" * 300, None, [])]
    assert not [one for one in records(filled.bootstrap, "plain") if one[1] == b"gone"]


def test_what_a_broker_refuses_is_told_and_nothing_typed_is_lost(filled):
    async def act(seat):
        await seat.sees("PARTITION")
        await seat.press("p")
        await fill(seat, "", None, "v")
        await seat.press("ctrl+s")
        await seat.sees("packed is compacted: a record needs a key")
        await seat.press("escape")
        await seat.back()
        await seat.press("p")
        assert seat.app.screen.values["value"] == "v"

    sit(filled.bootstrap, act, first=Place("topic", "packed"))
    assert not [one for one in records(filled.bootstrap, "packed") if one[1] is None]


def test_a_process_that_dies_while_the_dialog_is_open_doubles_nothing(filled):
    async def act(seat):
        await seat.sees("PARTITION")
        await seat.press("p")
        await fill(seat, "once", None, "v")
        await seat.press("ctrl+s")
        await seat.plan()
        for process in seat.app.world.facts.shown.value.processes:
            if process.process.startswith("ioproc"):
                os.kill(process.pid, signal.SIGKILL)
        await seat.press("right", "enter")
        await seat.back()
        await seat.sees("Produce to plain: partition")

    sit(filled.bootstrap, act, first=Place("topic", "plain"))
    assert [one[2] for one in records(filled.bootstrap, "plain") if one[1] == b"once"] == [b"v"]


def test_nothing_is_sent_to_a_broker_that_is_not_there():
    link = Link(f"127.0.0.1:{free_port()}", {}, 1.0)
    one = Outgoing("t", b"k", b"v")
    plan = Change("Produce", words(one), partial(producing.written, one=one))
    with pytest.raises(Failure) as told:
        carry_out(plan, link, link, tell=lambda _: None, rest=lambda: True)
    assert told.value.message.startswith("nothing was sent")
    assert told.value.name != "NOT_KNOWN"


def test_an_answer_that_does_not_come_is_said_to_be_not_known():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        link = Link(f"127.0.0.1:{silent.getsockname()[1]}", {}, 0.5)
        one = Outgoing("t", b"k", b"v")
        plan = Change("Produce", words(one), partial(producing.written, one=one))
        with pytest.raises(Failure, match="the outcome is not known") as told:
            carry_out(plan, link, link, tell=lambda _: None, rest=lambda: True)
        assert told.value.name == "NOT_KNOWN"
        assert "there once at most" in told.value.message
