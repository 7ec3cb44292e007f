"""Nodes that begin with an empty disk, come and go for good, and replicas that move, while clients
work: what an operator does, as faults of a story."""

import shutil

from benchmarks import nodes
from tests.cluster.nodes import Nodes
from tests.cluster.test_brokers_decided import LISTED, REASSIGN

UNREGISTER = 64
LOAD = "load"
AGAIN = {"REQUEST_TIMED_OUT", "NOT_CONTROLLER"}
DONE = "NONE"


class Members(Nodes):
    """members: the numbers of those that are a cluster from the beginning; others do not run."""

    def __init__(self, *given, members, **more):
        super().__init__(*given, **more)
        self.members = sorted(members)

    @property
    def bootstrap(self):
        return nodes.bootstrap(tuple(one for one in self.places if one.number in self.members))

    def start(self, *numbers):
        return super().start(*(numbers or self.members))

    # How replicas lie -----------------------------------------------------------------------------

    def replicas(self, topic):
        """Partition → numbers, the preferred leader first."""
        return {at: list(one.replicas) for at, one in self.partitions(topic).items()}

    def reassign(self, topic, wanted):
        """wanted: partition → numbers. Waits until they have moved."""
        rows = [{"partition_index": at, "replicas": numbers} for at, numbers in wanted.items()]
        values = {"topics": [{"name": topic, "partitions": rows}], "timeout": 10_000}
        missing = set(wanted)

        def asked():
            answer = self.ask(REASSIGN, 0, values)
            if answer["error_code"] != DONE:
                assert answer["error_code"] in AGAIN, answer
                return False
            for found in answer["responses"]:
                for told in found["partitions"]:
                    assert told["error_code"] in AGAIN | {DONE}, told
                    if told["error_code"] == DONE:
                        missing.discard(told["partition_index"])
            return not missing

        def moved():
            listed = self.ask(LISTED, 0, {"topics": None, "timeout": 10_000})
            return (
                listed["error_code"] == DONE
                and listed["topics"] == []
                and all(self.replicas(topic)[at] == numbers for at, numbers in wanted.items())
            )

        self.wait(asked, f"{topic} is to be at {wanted}")
        self.wait(moved, f"{topic} is at {wanted}")

    def unregister(self, number):
        """The cluster forgets a node that does not run."""

        def forgotten():
            told = self.ask(UNREGISTER, 0, {"broker_id": number})["error_code"]
            assert told in AGAIN | {DONE, "BROKER_ID_NOT_REGISTERED"}, told
            return told not in AGAIN

        self.wait(forgotten, f"node {number} is forgotten")


class Moves:
    """What `Hands` does to a victim by this: each method begins, and says how it is taken back."""

    def replaced(self, victim, _):
        """Its disk is another one, and empty."""
        self._undo.append(lambda: self.nodes.start(victim))
        self.nodes.kill(victim)
        self._empty(victim)

    def _empty(self, number):
        shutil.rmtree(self.nodes[number].data)

    def moved(self, victim, _):
        """It keeps nothing of the load for a while: another one does, where there is one."""
        before = self.nodes.replicas(LOAD)
        spare = {at: self._elsewhere(victim, numbers) for at, numbers in before.items()}
        wanted = {at: numbers for at, numbers in spare.items() if numbers != before[at]}
        self._undo.append(lambda: self.nodes.reassign(LOAD, {at: before[at] for at in wanted}))
        self.nodes.reassign(LOAD, wanted)

    def _elsewhere(self, victim, numbers):
        if victim not in numbers:
            return numbers
        others = [one for one in self.nodes.members if one not in numbers]
        return [one for one in numbers if one != victim] + others[:1]

    def guest(self, victim, _):
        """A node that was not there gets what the victim has of the load, and at the end gives it
        back, goes, and is forgotten."""
        guest = max(self.nodes.all)
        before = self.nodes.replicas(LOAD)

        def leaves():
            self.nodes.reassign(LOAD, before)
            assert self.nodes.stop(guest) == 0
            self.nodes.unregister(guest)
            self._empty(guest)

        self._undo.append(leaves)
        self.nodes.start(guest)
        swapped = {
            at: [guest if one == victim else one for one in numbers]
            for at, numbers in before.items()
        }
        self.nodes.reassign(LOAD, swapped)
