"""Logins by raw bytes: the same answers as Apache Kafka's, beside it, and what is ours alone."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.broker_process import KAFKA
from tests.sasl.talk import CLOSED, Talk, plain

METADATA = (3, 1, b"\xff\xff\xff\xff")
API_VERSIONS = (18, 0, b"")
UNKNOWN_VERSION = (18, 99, b"")


def right(t):
    t.plain("alice", "alice-secret")
    t.any(*METADATA)
    t.handshake("PLAIN")
    t.authenticate(plain("bob", "bob-secret"))
    t.any(*METADATA)


def in_each_version(t):
    for version in (0, 1, 2):
        t.plain("alice", "alice-secret", version)
        t.any(*METADATA)
        yield


def wrong_in_each_version(t):
    for version in (0, 1, 2):
        t.plain("alice", "no", version)
        t.ends()
        yield


def said_to(*messages):
    def script(t):
        for message in messages:
            t.handshake("PLAIN")
            answer = t.authenticate(message)
            if answer is not CLOSED and not answer[0]:  # it stays open: an answer tells so at once
                t.any(*METADATA)
            else:
                t.ends()
            yield

    return script


def without_headers(t):
    t.handshake("PLAIN", 0)
    t.bare(plain("alice", "alice-secret"))
    t.any(*METADATA)
    yield
    t.handshake("PLAIN", 0)
    t.bare(plain("alice", "no"))
    t.ends()


def mechanisms(t):
    for name in ("GSSAPI", "OAUTHBEARER", "plain", "", "SCRAM-SHA-1"):
        t.handshake(name)
        t.ends()
        yield


def out_of_turn(t):
    for steps in (
        [METADATA],
        [API_VERSIONS, METADATA],
        [API_VERSIONS, API_VERSIONS],
        [UNKNOWN_VERSION, API_VERSIONS],
        [(36, 1, b"\0\0\0\0")],
        [(0, 9, b"\0" * 20)],
        [(250, 0, b"")],
    ):
        for step in steps:
            t.any(*step)
        t.handshake("PLAIN")
        t.authenticate(plain("alice", "alice-secret"))
        yield


def handshake_twice(t):
    t.handshake("PLAIN")
    t.handshake("SCRAM-SHA-256")
    t.ends()


def scram(t):
    for kind in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        t.scram(kind, "alice", "alice-secret")
        t.any(*METADATA)
        yield
        t.scram(kind, "alice", "bob-secret")
        t.ends()
        yield
        for first in (b"", b"n,,n=alice", b"n,a=bob,n=alice,r=abc", b"y,,n=alice,r=abc",
                      b"n,,n=alice,r=abc,tokenauth=true"):  # fmt: skip
            t.handshake(kind)
            t.authenticate(first)
            t.ends()
            yield
        for last in (b"", b"c=biws,r=abc,p=AAAA", b"x"):
            t.handshake(kind)
            t.authenticate(b"n,,n=alice,r=abc,ext=1")
            t.authenticate(last)
            t.ends()
            yield


def in_plain(t):
    t.handshake("PLAIN")
    t.authenticate(b"")
    t.any(*METADATA)


def too_long(t):
    t.handshake("PLAIN")
    t.authenticate(b"x" * 600_000)
    yield
    t.handshake("PLAIN")
    t.authenticate(plain("alice", "x" * 500_000))


SCRIPTS = {
    "right": right,
    "in each version": in_each_version,
    "wrong in each version": wrong_in_each_version,
    "what PLAIN says": said_to(
        b"", b"a\0b", b"a\0b\0c\0d", b"\0\0x", b"\0alice\0", plain("nobody", "x"),
        plain("alice", "alice-secret", "bob"), plain("alice", "no", "bob"),
        plain("alice", "alice-secret", "alice"), b"\xff\0\xff\0\xff",
        plain("Alice", "alice-secret"),
    ),
    "without headers": without_headers,
    "mechanisms": mechanisms,
    "out of turn": out_of_turn,
    "handshake twice": handshake_twice,
    "scram": scram,
    "too long": too_long,
}  # fmt: skip


class Series:
    """A talk after the other, each on a connection of its own."""

    def __init__(self, broker, listener):
        self._begin = lambda: Talk(broker.wire(listener))
        self.told = []
        self.talk = self._begin()

    def __getattr__(self, step):
        return getattr(self.talk, step)

    def end(self):
        self.told.append([masked(one) for one in self.talk.said])
        self.talk.wire.close()

    def anew(self):
        self.end()
        self.talk = self._begin()


def play(broker, script, listener="STATIC"):
    """What was said on each connection; a script that yields goes on with a new one."""
    series = Series(broker, listener)
    for _ in script(series) or ():
        series.anew()
    series.end()
    return series.told


def play_beside(broker, apache, script, listener="STATIC"):
    """What both said, at the same time: each holds back its refusals."""
    with ThreadPoolExecutor(1) as other:
        theirs = other.submit(play, apache, script, listener)
        return play(broker, script, listener), theirs.result()


def masked(said):
    """Without what is another one in each conversation."""
    if isinstance(said, tuple) and len(said) == 4:
        code, text, message, lifetime = said
        message = re.sub(rb"^r=.*,i=", b"r=,i=", re.sub(rb"^v=.*", b"v=", message))
        return code, text, message, lifetime
    return said


@pytest.mark.parametrize("name", SCRIPTS)
def test_apache_kafka_says_the_same(broker, apache, name):
    ours, theirs = play_beside(broker, apache, SCRIPTS[name])
    assert ours == theirs


def test_where_nobody_logs_in_the_same_is_said(broker, apache):
    assert play(broker, in_plain, "PLAINTEXT") == play(apache, in_plain, "PLAINTEXT")


def test_an_unknown_user_of_scram_is_refused_where_a_wrong_password_is(broker):
    """Apache Kafka refuses it at the first message."""

    def unknown(t):
        t.scram("SCRAM-SHA-256", "nobody", "x")
        t.ends()

    def wrong(t):
        t.scram("SCRAM-SHA-256", "alice", "x")
        t.ends()

    assert play(broker, unknown) == play(broker, wrong)
    with broker.wire() as one, broker.wire() as other:
        told = []
        for wire in (one, other):
            talk = Talk(wire)
            talk.handshake("SCRAM-SHA-256")
            told.append(talk.authenticate(b"n,,n=nobody,r=abc")[2].partition(b",s=")[2])
    assert told[0] == told[1], "the same salt again"


def test_plain_where_settings_name_no_users_asks_the_metadata(broker):
    for user, password, code in (
        ("alice", "alice-secret", 0), ("alice", "no", 58), ("nobody", "x", 58),
    ):  # fmt: skip
        with broker.wire("SASL_PLAINTEXT") as wire:
            talk = Talk(wire)
            assert talk.plain(user, password)[0] == code
            assert (talk.any(*METADATA) is CLOSED) == bool(code)
    with broker.wire("SASL_PLAINTEXT") as wire:
        talk = Talk(wire)
        talk.handshake("PLAIN", 0)
        assert talk.bare(plain("alice", "alice-secret")) == b""
        assert talk.any(*METADATA) is not CLOSED


@pytest.mark.skipif(KAFKA, reason="Apache Kafka tells an unknown user of SCRAM at once")
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_refusals_of_known_and_unknown_users_are_alike_and_held_back(broker, mechanism):
    listener = "STATIC" if mechanism == "PLAIN" else "SASL_PLAINTEXT"
    found = []
    for user in ("alice", "nobody"):
        with broker.wire(listener) as wire:
            talk = Talk(wire)
            began = time.monotonic()
            if mechanism == "PLAIN":
                answer = talk.plain(user, "wrong")
            else:
                answer = talk.scram(mechanism, user, "wrong")
            took_s = time.monotonic() - began
            assert talk.ends() is not None
        # connection.failed.authentication.delay.ms is 100 by default
        assert took_s >= 0.1, f"{user} is told without the pause"
        found.append((answer, len(talk.said)))
    assert found[0] == found[1] and found[0][0][0] == 58
