"""Who asks control, as netprocs name it."""

from appliance.control import caller
from appliance.control.caller import Caller
from appliance.ring.messages import ENSURE_TOPIC, FORWARD, Message


def read(op, payload):
    return caller.read(Message(op, *(0,) * 13, payload))


def test_who_forwards_is_named_with_principal_and_address():
    told = read(FORWARD, b"User:alice\0PLAINTEXT\00010.0.0.1\0a\0client \xff")
    assert told == (Caller("alice", "10.0.0.1", "a\0client \N{REPLACEMENT CHARACTER}"), b"")


def test_who_wants_a_topic_is_named_behind_it():
    told = read(ENSURE_TOPIC, b"flights\00010.0.0.1\0me")
    assert told == (Caller("ANONYMOUS", "10.0.0.1", "me"), b"flights")


def test_what_is_not_told_is_empty():
    assert read(FORWARD, b"").caller == Caller("", "", "")
    assert read(ENSURE_TOPIC, b"t") == (Caller("ANONYMOUS", "", ""), b"t")
