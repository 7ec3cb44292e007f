"""The load of tests/faults on a cluster, and how it ends: every replica has the same."""

import os

from tests.faults.load import Load

KILLS = int(os.environ.get("PENSTOCK_TEST_KILLS", 0))
PARTITIONS = 3


class ClusterLoad(Load):
    """An idempotent producer with acks=all and a consumer, on a cluster."""

    at_most = 20_000 if KILLS else 500

    def __init__(self, nodes, topic, bootstrap=None, settings=None):
        super().__init__(bootstrap or nodes.bootstrap, topic, PARTITIONS, settings=settings)
        self.nodes = nodes

    def wait_served(self):
        self.nodes.wait(lambda: self.nodes.whole(self.topic, PARTITIONS), "all are in sync")

    def wait_back(self, *numbers):
        """Starts nodes, and waits until all are in sync."""
        self.nodes.start(*numbers)
        self.wait_served()

    def finish_level(self):
        """All replicas are level and the same, and what was acknowledged is there."""
        self.finish()
        self.check_errors()
        self.check_content()
        self.nodes.wait(lambda: self.nodes.level(self.topic, PARTITIONS), "all replicas are level")
        self.nodes.compare_replicas(self.topic, PARTITIONS)


def kill_one_and_bring_it_back(load):
    """A leader is killed and comes back under a load; nothing is lost or doubled."""
    with load:
        load.go_on()
        victim = load.nodes.partition(load.topic).leader
        load.nodes.kill(victim)
        load.go_on()
        load.wait_back(victim)
        load.go_on()
        load.finish_level()
