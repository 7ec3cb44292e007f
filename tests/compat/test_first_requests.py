"""A new appliance has no internal topics. A request for a coordinator that comes first, without a
FindCoordinator before it, has them created and is served after a few attempts at most."""

import pytest

from tests.broker_process import Broker
from tests.differential.link import Link
from tests.differential.registry import APIS

ATTEMPTS = 300
AGAIN = {"COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"}


@pytest.fixture
def ask(tmp_path):
    """Asks a new appliance until the answer is no invitation to ask again."""
    with Broker(tmp_path / "data") as broker:
        link = Link((broker.host, broker.port))

        def ask_until_served(api, version, **values):
            for _ in range(ATTEMPTS):
                answer = link.ask(APIS[api], version, values)
                if answer["error_code"] not in AGAIN:
                    return answer
            raise AssertionError(f"{api} is still answered {answer}")

        yield ask_until_served
        link.close()


def test_offsets_of_a_group_that_nobody_asked_for_belong_to_a_transaction(ask):
    producer = ask("InitProducerId", 4, transactional_id="x", transaction_timeout=60_000,
                   producer_id=-1, producer_epoch=-1)  # fmt: skip
    assert producer["error_code"] == "NONE"
    who = {key: producer[key] for key in ("producer_id", "producer_epoch")}
    for api, version, more in (
        ("AddOffsetsToTxn", 3, {"group_id": "g"}), ("EndTxn", 3, {"committed": True}),
    ):  # fmt: skip
        answer = ask(api, version, transactional_id="x", **who, **more)
        assert answer["error_code"] == "NONE", (api, answer)


def test_a_member_joins_a_group_that_nobody_asked_for(ask):
    answer = ask("JoinGroup", 3, group_id="g", member_id="", session_timeout=10_000,
                 rebalance_timeout=10_000, protocol_type="consumer",
                 protocols=[{"name": "range", "metadata": b""}])  # fmt: skip
    assert answer["error_code"] == "NONE" and answer["member_id"]
