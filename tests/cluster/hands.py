"""Does to nodes of a cluster what a story of `torture.py` says, and takes it back.

Each node is on a host of its own, with a disk and a clock of its own. Needs root, nftables and
a C compiler.
"""

import contextlib
import os
import signal
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

from appliance.coordinators.runtime.kind import partition_of
from appliance.observer.door import Observer
from appliance.ring.process_table import CONTROL, IOPROC, NETPROC, READY, Peer
from tests.cluster import hosts, torture
from tests.cluster.moves import Members, Moves
from tests.faults.failing_disk import FailingDisk

SETTINGS = {
    "penstock.io.processes": "2",
    "penstock.net.processes": "1",
    "penstock.disk.free.min.bytes": str(4 << 20),
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "log.retention.check.interval.ms": "500",
    "auto.create.topics.enable": "false",
    # Else a compacted replica has other bytes than one that is still to be compacted.
    "log.cleaner.min.compaction.lag.ms": str((1 << 63) - 1),
    "log.message.timestamp.after.max.ms": str((1 << 63) - 1),  # else a clock makes records wrong
}
SPARE_KB = 64
FLAP_S = 0.5
OFFSETS, GROUP = "__consumer_offsets", "pair"


def unavailable():
    """Why there can be no torture here, None when there can."""
    return hosts.unavailable("nft", "tc", "cc")


class Disk(FailingDisk):
    """One that can also be full, or lose its power."""

    def fill(self):
        """Another program takes all that is left, but for some kB."""
        with (self.mount / "foreign").open("ab") as file:
            size = 1 << 28
            while size >= 1 << 12:
                try:
                    os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), size)
                except OSError:
                    size //= 2

    def make_room(self):
        (self.mount / "foreign").unlink(missing_ok=True)


class Dial:
    """A number that processes have mapped: they live by it from the moment it is set."""

    def __init__(self, path):
        self._path = path
        self.set(0)

    def set(self, value):
        self._path.touch()
        with self._path.open("r+b") as file:
            file.write(value.to_bytes(8, "little", signed=True))


def built(folder, source):
    """The library of this name that a process loads before its own."""
    made = folder / f"{source}.so"
    written = Path(__file__).with_name(f"{source}.c")
    command = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", made, written]
    subprocess.run(command, check=True, timeout=60)
    return made


class Flapping(threading.Thread):
    """Cuts a host off and heals that, by turns, until it ends. The links are whole then."""

    def __init__(self, network, victim):
        super().__init__(daemon=True)
        self._network, self._victim = network, victim
        self._ending = threading.Event()
        self.start()

    def run(self):
        while not self._ending.is_set():
            self._network.part(self._victim)
            self._ending.wait(FLAP_S)
            self._network.join(self._victim)
            self._ending.wait(FLAP_S)

    def end(self):
        self._ending.set()
        self.join()


class Hands(Moves):
    """Use it as a context manager: it starts the nodes and leaves nothing behind. One more host has
    a node that does not run: the guest. secure: a function of the nodes, before they start."""

    def __init__(self, folder, rng, shape, secure=None):
        self.rng = rng
        self.folder = folder
        self.shape = shape
        self.secure = secure
        self._stack = contextlib.ExitStack()
        self._undo = []

    def __enter__(self):
        with self._stack as stack:
            count = self.shape.hosts
            self.network = stack.enter_context(hosts.Hosts(count + 1))
            guest = replace(self.network.places[-1], roles="broker")
            self.nodes = Members(
                self.folder,
                settings=SETTINGS | {"log.flush.policy": self.shape.policy},
                places=(*self.network.places[:-1], guest),
                members=range(1, count + 1),
            )
            self.disks, self.clocks, self.delays = {}, {}, {}
            if self.secure is not None:
                self.secure(self.nodes)
            libraries = [built(self.folder, source) for source in ("wrong_clock", "slow_disk")]
            for number, node in self.nodes.all.items():
                place = self.folder / f"host-{number}"
                place.mkdir()
                self.disks[number] = stack.enter_context(Disk(place))
                self.clocks[number] = Dial(place / "clock")
                self.delays[number] = Dial(place / "delay")
                node.data = self.disks[number].mount / "data"
                node.within = (
                    *self.network.within(number),
                    "env",
                    f"LD_PRELOAD={':'.join(map(str, libraries))}",
                    f"WRONG_CLOCK={place / 'clock'}",
                    f"SLOW_DISK={place / 'delay'}",
                )
            stack.enter_context(self.nodes)
            stack.callback(self.end)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    # A step ---------------------------------------------------------------------------------------

    def victim(self, who, topic):
        """The number of the node that this means now."""
        chosen = self._any()
        if who == torture.LEADER:
            at = chosen % len(self.nodes.partitions(topic))
            return self.nodes.partition(topic, at).leader
        if who == torture.CONTROLLER:  # there is none while one is elected
            chosen = self.nodes.wait(lambda: max(self.nodes.quorum_leader(), 0), "somebody leads")
        if who == torture.COORDINATOR:
            count = len(self.nodes.partitions(OFFSETS))
            return self.nodes.partition(OFFSETS, partition_of(GROUP, count)).leader
        return chosen

    def _any(self):
        return self.rng.choice(self.nodes.members)

    def begin(self, fault, victim):
        """Do it, to this node."""
        what, _, which = fault.kind.partition(" ")
        if which in PROCESSES:
            sent = signal.SIGKILL if what == "kill" else signal.SIGSTOP
            self._process(victim, Peer(PROCESSES[which], fault.size), sent)
        else:
            getattr(self, fault.kind.replace(" ", "_"))(victim, fault.size)

    def end(self):
        """Take everything back."""
        while self._undo:
            self._undo.pop()()

    # Links ----------------------------------------------------------------------------------------

    def _others(self, number):
        return [one for one in self.nodes.members if one != number]

    def cut_off(self, victim, _):
        self._undo.append(self.network.heal)
        self.network.part(victim, self._others(victim))

    def clients_cut_off(self, victim, _):
        self._undo.append(self.network.heal)
        self.network.part(victim, [hosts.CLIENTS])

    def flapping(self, victim, _):
        self._undo.append(Flapping(self.network, victim).end)

    def bridge(self, victim, _):
        """The victim alone reaches all."""
        self._undo.append(self.network.heal)
        others = self._others(victim)
        for one in others[:2]:
            self.network.part(one, others[2:])

    def ring(self, *_):
        """Each sees a majority, no two see the same one."""
        self._undo.append(self.network.heal)
        members = self.nodes.members
        for at, one in enumerate(members):
            self.network.part(one, [members[(at + 2) % len(members)]])

    def two_cut_apart(self, victim, _):
        self._undo.append(self.network.heal)
        self.network.part(victim, [self.rng.choice(self._others(victim))])

    def cut_one_way(self, victim, _):
        self._undo.append(self.network.heal)
        self.network.cut(victim, self.rng.choice(self._others(victim)))

    def deaf(self, victim, _):
        """It sends, and hears nothing of other nodes."""
        self._undo.append(self.network.heal)
        for other in self._others(victim):
            self.network.cut(other, victim)

    def losing_packets(self, victim, percent):
        self._undo.append(self.network.heal)
        self.network.lose(victim, percent)

    def slow_link(self, victim, kbit):
        self._undo.append(self.network.heal)
        self.network.slow(victim, kbit)

    # Processes ------------------------------------------------------------------------------------

    def _process(self, number, peer, sent):
        if not self.nodes[number].runs:
            return  # the other fault was faster
        table = Observer(str(self.nodes[number].data)).tables.processes
        self.nodes.wait(lambda: table.state(peer) == READY, f"{peer} serves")
        pid, generation = table.pid(peer), table.generation(peer)

        def go_on():
            if table.generation(peer) == generation:  # else the supervisor has killed it
                _send(pid, signal.SIGCONT)

        if sent == signal.SIGSTOP:
            self._undo.append(go_on)
        _send(pid, sent)

    def kill_node(self, victim, _):
        self._undo.append(lambda: self.nodes.start(victim))
        self.nodes.kill(victim)

    def end_node(self, victim, _):
        self._undo.append(lambda: self.nodes.start(victim))
        assert self.nodes.stop(victim) == 0

    def stop_node(self, victim, _):
        pids = self.nodes[victim].pids()

        def go_on():
            for pid in pids:
                _send(pid, signal.SIGCONT)

        self._undo.append(go_on)
        for pid in pids:
            _send(pid, signal.SIGSTOP)

    def each_in_turn(self, *_):
        topics = ("load", "bank")
        for number in self.nodes.members:
            assert self.nodes.stop(number) == 0
            self.nodes.start(number)
            self.nodes.wait(lambda: all(map(self.nodes.whole, topics)), "all are in sync")

    # Disks and clocks -----------------------------------------------------------------------------

    def power_of_one(self, victim, _):
        self._cut([victim])

    def power_of_all(self, *_):
        self._cut(self.nodes.members)

    def _cut(self, numbers):
        def back():
            for number in numbers:
                self.disks[number].back()
            self.nodes.start(*numbers)

        self._undo.append(back)
        for number in numbers:
            self.disks[number].cut()
        for number in numbers:
            if self.nodes[number].runs:
                self.nodes.kill(number)

    def disk_full(self, victim, _):
        self._undo.append(self.disks[victim].make_room)
        self.disks[victim].fill()

    def disk_fails(self, victim, _):
        def mend():
            self.disks[victim].mend()
            if self.nodes[victim].runs:
                self.nodes.kill(victim)
            self.disks[victim].back()
            self.nodes.start(victim)

        self._undo.append(mend)
        self.disks[victim].fail(SPARE_KB)

    def slow_disk(self, victim, ms):
        self._undo.append(lambda: self.delays[victim].set(0))
        self.delays[victim].set(ms)

    def clock(self, victim, seconds):
        """Ahead of ours."""
        self._undo.append(lambda: self.clocks[victim].set(0))
        self.clocks[victim].set(seconds)


PROCESSES = {"netproc": NETPROC, "ioproc": IOPROC, "control": CONTROL}


def _send(pid, what):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, what)
