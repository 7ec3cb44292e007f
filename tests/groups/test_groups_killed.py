"""kill -9 of the process that coordinates, in the middle of a rebalance and under commits, and of
all of them: no committed offset goes back, nobody owns what another one owns, nothing is stuck."""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import confluent_kafka as ck
import pytest
from group_members import LIMIT_S, Member, fill, share, until

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def one(fresh_appliance):
    return fresh_appliance(
        penstock_io_processes=1, penstock_net_processes=1,
        group_consumer_heartbeat_interval_ms=200, group_consumer_min_heartbeat_interval_ms=200,
    )  # fmt: skip


def writes(pid):
    """Names of the files that a process has open for writing."""
    names = []
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            mode = (Path(f"/proc/{pid}/fdinfo") / fd.name).read_text().split("flags:")[1].split()[0]
            if int(mode, 8) & os.O_ACCMODE:
                names.append(os.readlink(fd))
    return " ".join(names)


def kind_of(pid):
    names = writes(pid)
    if "__consumer_offsets-" in names:
        return "ioproc"
    return "control" if "__cluster_metadata-" in names else "netproc"


def kill(appliance, kind):
    """kill -9 of the child of this kind, once all three are there."""
    end = time.monotonic() + LIMIT_S
    while True:
        assert time.monotonic() < end, appliance.log_text()[-2000:]
        with contextlib.suppress(OSError):
            found = {kind_of(pid): pid for pid in appliance.pids()[1:]}
            if len(found) == 3:
                os.kill(found[kind], signal.SIGKILL)
                return


class Committer:
    """Commits ascending offsets of partition 0 on a thread of its own, without being a member."""

    def __init__(self, bootstrap, group, topic):
        self.place = (topic, 0)
        self.group = group
        self.client = ck.Consumer({
            "bootstrap.servers": bootstrap, "group.id": group, "log_level": 0,
            "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 200, "retry.backoff.ms": 20,
            "socket.timeout.ms": 10_000,
        })  # fmt: skip
        self.acknowledged = self.tried = 0
        self.serious = []
        self.changed = threading.Condition()
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()
        self.client.close()

    def _run(self):
        while not self.ending.is_set():
            self.tried += 1
            try:
                offset = [ck.TopicPartition(*self.place, self.tried)]
                self.client.commit(offsets=offset, asynchronous=False)
            except ck.KafkaException as error:
                if not error.args[0].retriable() and error.args[0].code() not in HARMLESS:
                    self.serious.append(error.args[0])
                continue
            with self.changed:
                self.acknowledged = self.tried
                self.changed.notify_all()

    def go_on(self, count=100):
        """Wait until `count` more commits are acknowledged."""
        with self.changed:
            wanted = self.acknowledged + count
            assert self.changed.wait_for(lambda: self.acknowledged >= wanted, LIMIT_S), self.serious
        assert not self.serious

    def check(self, bootstrap):
        """What is committed is not older than what was acknowledged, nor newer than what was
        tried."""
        least, place = self.acknowledged, ck.TopicPartition(*self.place)
        reader = ck.Consumer({
            "bootstrap.servers": bootstrap, "group.id": self.group, "log_level": 0,
        })  # fmt: skip
        (found,) = reader.committed([place], LIMIT_S)
        reader.close()
        assert least <= found.offset <= self.tried, (least, found.offset, self.tried)


HARMLESS = {
    ck.KafkaError._TRANSPORT,
    ck.KafkaError._ALL_BROKERS_DOWN,
    ck.KafkaError._TIMED_OUT,
    ck.KafkaError._WAIT_COORD,
    ck.KafkaError.NOT_COORDINATOR,
    ck.KafkaError.COORDINATOR_NOT_AVAILABLE,
    ck.KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
}


@pytest.mark.parametrize("kind", ["ioproc", "netproc", "control"])
def test_commits_while_a_process_is_killed(one, group, kind):
    fill(one.bootstrap, "t", 1, 1)
    with Committer(one.bootstrap, group, "t") as committer:
        committer.go_on()
        for _ in range(2):
            kill(one, kind)
            committer.go_on()
            committer.check(one.bootstrap)


def test_commits_while_all_are_killed(one, group):
    fill(one.bootstrap, "t", 1, 1)
    with Committer(one.bootstrap, group, "t") as committer:
        for _ in range(2):
            committer.go_on()
            one.kill()
            least = committer.acknowledged
            one.start()
            committer.check(one.bootstrap)
            assert committer.acknowledged >= least
        committer.go_on()


KINDS = {
    "range": {"partition_assignment_strategy": "range"},
    "cooperative-sticky": {"partition_assignment_strategy": "cooperative-sticky"},
    "consumer": {"group_protocol": "consumer"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_coordinator_dies_in_the_middle_of_a_rebalance(one, group, kind):
    fill(one.bootstrap, "t", 4, 5)
    settings = KINDS[kind]
    members = [Member(one.bootstrap, group, "t", **settings)]
    until(members, lambda: share(members, 4))
    for _ in range(2):
        members.append(Member(one.bootstrap, group, "t", **settings))
        turns = iter(range(10))
        until(members, lambda turns=turns: next(turns, None) is None)  # it has begun to join
        kill(one, "ioproc")
        until(members, lambda: share(members, 4))
    for member in members:
        fatal = [error for error in member.told if error.fatal()]
        assert not fatal
    everybody = list(members)

    def all_read():
        for at, member in enumerate(members):
            if any(NO_OFFSETS in error.str() for error in member.told):
                member.close()
                members[at] = Member(one.bootstrap, group, "t", **settings)
                everybody.append(members[at])
        return len({place for member in everybody for place in member.got}) == 20

    until(members, all_read)
    for member in members:
        member.close()


NO_OFFSETS = "Failed to fetch committed offsets"
"""What librdkafka tells when it asked for them while nobody coordinated (NOT_COORDINATOR). It does
not ask again: these partitions wait for the next rebalance, whoever the broker is."""


def test_a_group_survives_an_orderly_restart(one, group):
    fill(one.bootstrap, "t", 2, 5)
    member = Member(one.bootstrap, group, "t")
    until([member], lambda: len(member.got) == 10)
    assert member.commit({0: 3, 1: 4}) == {0: None, 1: None}
    begun = time.monotonic()
    one.restart()
    assert time.monotonic() - begun < LIMIT_S
    places = [ck.TopicPartition("t", 0), ck.TopicPartition("t", 1)]
    found = member.client.committed(places, LIMIT_S)
    assert [one.offset for one in found] == [3, 4]
    until([member], lambda: member.owned == {0, 1})
    member.close()
