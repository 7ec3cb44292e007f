"""A whole appliance is restarted: who has logged in stays so, who was about to connects again."""

import json

import pytest

from console.model.local.succession import restart
from tests.broker_process import KAFKA
from tests.console_process import typing
from tests.sasl.conftest import put_users
from tests.sasl.logged import LoggedIn
from tests.sasl.talk import CLOSED, Talk, plain

pytestmark = pytest.mark.skipif(KAFKA, reason="an appliance is restarted")
METADATA = (3, 1, b"\xff\xff\xff\xff")


@pytest.fixture
def own(tmp_path):
    with LoggedIn(tmp_path / "data") as running:
        put_users(running.bootstrap)
        yield running


def test_who_has_logged_in_need_not_again(own):
    with own.wire() as first, own.wire() as other, own.wire() as half:
        talks = Talk(first), Talk(other)
        assert talks[0].scram("SCRAM-SHA-256", "alice", "alice-secret")[0] == 0
        assert talks[1].plain("bob", "bob-secret")[0] == 0
        begun = Talk(half)
        begun.handshake("PLAIN")
        assert restart(str(own.data)).pid == own.pids()[0]
        for talk in talks:
            assert talk.any(*METADATA) is not CLOSED
        assert begun.authenticate(plain("alice", "alice-secret")) is CLOSED
        told = typing(own.bootstrap)("client", "list", "--data", str(own.data), "-o", "json")
        assert {"alice", "bob"} <= {one["user"] for one in json.loads(told.stdout)}, told.stdout
