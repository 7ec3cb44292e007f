"""What commands say while the broker's disk is nearly full."""

import pytest

from tests.broker_process import Broker
from tests.console_process import typing

FULL = {"penstock.disk.free.min.bytes": str(1 << 60)}


def penstock(broker, *args, stdin="", code=0):
    return typing(broker.bootstrap)(*args, stdin=stdin, code=code).stderr


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A broker with a topic, whose disk is nearly full as it sees it."""
    broker = Broker(tmp_path_factory.mktemp("full") / "data")
    with broker:
        penstock(broker, "topic", "create", "t")
    broker.settings |= FULL
    with broker:
        yield broker


def test_a_producer_that_is_not_answered_is_told_why(full):
    said = penstock(full, "produce", "t", "--timeout", "1", stdin="x\n", code=3)
    assert f"the disk of {full.data} is nearly full" in said
    assert "MiB more must be" in said and "topic trim" in said


def test_a_topic_that_cannot_be_made_says_why_once(full):
    said = penstock(full, "topic", "create", "other", code=1)
    assert said.count("nearly full") == 1


def test_what_has_another_reason_is_not_blamed_on_the_disk(full):
    assert "nearly full" not in penstock(full, "topic", "delete", "none", "--yes", code=1)
