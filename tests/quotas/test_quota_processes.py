"""One quota over several network processes, and a count that outlives one of them."""

import os
import signal

import pytest
from broker_process import KAFKA, Broker
from quota_peer import QuotaPeer

pytestmark = pytest.mark.skipif(KAFKA, reason="Apache Kafka is one process")
GREEDY = (("client-id", "greedy"),)


def test_connections_at_several_processes_share_one_quota(tmp_path):
    with Broker(tmp_path / "data", {"penstock.net.processes": "3"}) as broker:
        topic = broker.peer.create(1, {}, "shared")
        with QuotaPeer(broker.bootstrap, "admin") as admin:
            admin.quotas(GREEDY, producer_byte_rate=10_000.0)
        peers = [QuotaPeer(broker.bootstrap, "greedy") for _ in range(12)]
        pauses = [one.produce(topic, 20_000) for one in peers]
        for one in peers:
            one.__exit__()
        # 110 kB are given away at most; the sum decides, whoever counted what.
        assert not any(pauses[:4]) and all(pauses[5:])
        assert max(pauses) > 10_000
        for pid in broker.pids()[1:]:  # all but the supervisor
            os.kill(pid, signal.SIGKILL)
        broker.wait_ready()
        with QuotaPeer(broker.bootstrap, "greedy") as again:
            assert again.produce(topic, 100) > 0
