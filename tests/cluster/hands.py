"""Does to nodes of a cluster what a story of `torture.py` says, and takes it back.

Each node is on a host of its own, with a disk and a clock of its own. Needs root, nftables and
a C compiler.
"""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

from appliance.observer.door import Observer
from appliance.ring.process_table import CONTROL, IOPROC, NETPROC, READY, Peer
from tests.cluster import hosts, torture
from tests.cluster.nodes import Nodes
from tests.faults.failing_disk import FailingDisk

SETTINGS = {
    "penstock.io.processes": "2",
    "penstock.net.processes": "1",
    "penstock.disk.free.min.bytes": str(4 << 20),
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "log.retention.check.interval.ms": "500",
    "log.flush.policy": "group",
    "log.message.timestamp.after.max.ms": str((1 << 63) - 1),  # else a clock makes records wrong
}
SPARE_KB = 64


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


class Clock:
    """The wall clock of a node, which may be wrong. Its monotonic one is right."""

    def __init__(self, path, library):
        self._path = path
        self.set(0)
        self.within = ("env", f"LD_PRELOAD={library}", f"WRONG_CLOCK={path}")
        """The beginning of a command that lives by it."""

    def set(self, seconds):
        """Ahead of ours."""
        self._path.touch()
        with self._path.open("r+b") as file:  # who lives by it has mapped it
            file.write(seconds.to_bytes(8, "little", signed=True))


def wrong_clock(folder):
    """The library that a process with a clock of its own loads."""
    made = folder / "wrong_clock.so"
    source = Path(__file__).with_name("wrong_clock.c")
    command = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", made, source]
    subprocess.run(command, check=True, timeout=60)
    return made


class Hands:
    """Use it as a context manager: it starts the nodes and leaves nothing behind."""

    def __init__(self, folder, rng):
        self.rng = rng
        self.folder = folder
        self._stack = contextlib.ExitStack()
        self._undo = []

    def __enter__(self):
        with self._stack as stack:
            self.network = stack.enter_context(hosts.Hosts())
            self.nodes = Nodes(self.folder, settings=SETTINGS, places=self.network.places)
            self.disks, self.clocks = {}, {}
            library = wrong_clock(self.folder)
            for number, node in self.nodes.all.items():
                place = self.folder / f"host-{number}"
                place.mkdir()
                self.disks[number] = stack.enter_context(Disk(place))
                self.clocks[number] = Clock(place / "clock", library)
                node.data = self.disks[number].mount / "data"
                node.within = (*self.network.within(number), *self.clocks[number].within)
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
        return chosen

    def _any(self):
        return self.rng.choice(sorted(self.nodes.all))

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
        return [one for one in self.network.numbers if one != number]

    def cut_off(self, victim, _):
        self._undo.append(self.network.heal)
        self.network.part(victim)

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
        for number in self.nodes.all:
            assert self.nodes.stop(number) == 0
            self.nodes.start(number)
            self.nodes.wait(lambda: all(map(self.nodes.whole, topics)), "all are in sync")

    # Disks and clocks -----------------------------------------------------------------------------

    def power_of_one(self, victim, _):
        self._cut([victim])

    def power_of_all(self, *_):
        self._cut(list(self.nodes.all))

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

    def clock(self, victim, seconds):
        self._undo.append(lambda: self.clocks[victim].set(0))
        self.clocks[victim].set(seconds)


PROCESSES = {"netproc": NETPROC, "ioproc": IOPROC, "control": CONTROL}


def _send(pid, what):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, what)
