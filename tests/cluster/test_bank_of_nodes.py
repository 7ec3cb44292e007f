"""A bank whose tellers' coordinators and accounts are on different nodes, which are killed and
stopped, or lose a process: every transfer is there whole or not at all (`tests/transactions`).

For long: PENSTOCK_TEST_KILLS=50; PENSTOCK_TEST_SEED begins another story.
"""

import os
import random
import signal

import pytest

from tests.cluster.nodes import Nodes
from tests.transactions.bank import Bank
from tests.transactions.conftest import swept

__all__ = ["swept"]  # a fixture
KILLS = int(os.environ.get("PENSTOCK_TEST_KILLS", 0))
SEED = int(os.environ.get("PENSTOCK_TEST_SEED", 1))
STATE = "__transaction_state"
pytestmark = [
    pytest.mark.skipif(not KILLS, reason="for long: PENSTOCK_TEST_KILLS=50"),
    pytest.mark.timeout(300 + 60 * KILLS),
]


def test_no_transfer_is_lost_or_seen_in_parts(tmp_path):
    chance = random.Random(SEED)
    with Nodes(tmp_path, settings={"transaction.state.log.num.partitions": "6"}) as nodes:
        count = Bank.partitions()
        nodes.create("bank", count)
        nodes.create(STATE, 6)
        with Bank(nodes.bootstrap, "bank") as bank:
            bank.go_on()
            assert bank.auditor.views
            for _ in range(KILLS):
                number, how = chance.randint(1, 3), chance.choice(("node", "stop", "process"))
                if how == "process":
                    pids = nodes[number].pids()[1:]
                    os.kill(chance.choice(pids), signal.SIGKILL)
                    bank.go_on()
                    continue
                (nodes.kill if how == "node" else nodes.stop)(number)
                bank.go_on()
                nodes.start(number)
                bank.go_on()
                for topic, size in (("bank", count), (STATE, 6)):
                    nodes.wait(
                        lambda topic=topic, size=size: nodes.whole(topic, size), f"{topic} is whole"
                    )
            bank.finish()
            outcomes = bank.check()
        assert outcomes["committed"] and outcomes["aborted"], outcomes
        nodes.wait(lambda: nodes.level("bank", count), "all replicas are level")
        nodes.compare_replicas("bank", count)
