"""Network namespaces as hosts: nodes of a cluster whose links can be cut, one way or both, without
their hearing of it, lose packets, or be slow. Needs root and `ip`.

A link is cut by the sender's believing in a wrong hardware address for the receiver: what it sends
reaches nobody, and nobody says so. Losing packets needs nftables.
"""

import itertools
import os
import shutil
import subprocess
import threading

from benchmarks.nodes import Place

NOWHERE = "02:00:00:00:00:fe"
PORT, CONTROLLER_PORT = 9092, 9093
CLIENTS = 254
"""The number of this host, where the clients are."""
PACKAGES = {
    "ip": "iproute2",
    "nsenter": "util-linux",
    "nft": "nftables",
    "tc": "iproute2",
    "cc": "gcc",
}
"""Which one of Debian a command is in."""
MADE = itertools.count()
"""Each time other addresses: clients of a test that failed may live on."""
LOOKED = {"check": False, "capture_output": True, "text": True, "timeout": 10}


def unavailable(*commands):
    """Why there can be no such hosts here, None when there can. commands: that are needed, too."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    for one in ("ip", "nsenter", *commands):
        if shutil.which(one) is None:
            return f"there is no {one} (Debian: {PACKAGES[one]})"
    tried = f"pk{os.getpid() % 100_000}try"
    made = subprocess.run(["ip", "netns", "add", tried], **LOOKED)
    subprocess.run(["ip", "netns", "del", tried], **LOOKED)
    if made.returncode:
        return f"no network namespace can be made: {made.stderr.strip()}"
    return None


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=10)


class Hosts:
    """Hosts 1 to `count` and this one, on one bridge. Use it as a context manager."""

    def __init__(self, count=3):
        self.numbers = range(1, count + 1)
        made = next(MADE)  # of a name that was used the kernel may still be taking things down
        self._tag = f"pk{os.getpid() % 100_000}n{made % 100}"
        self._net = (os.getpid() + made) % 250
        self._changing = threading.RLock()  # links may flap meanwhile
        self._cuts = set()
        self._lossy = set()
        self._slow = set()

    def name(self, number):
        return f"{self._tag}h{number}"

    def address(self, number):
        return f"10.199.{self._net}.{number}"

    @property
    def places(self):
        return tuple(
            Place(number, PORT, CONTROLLER_PORT, self.address(number)) for number in self.numbers
        )

    def within(self, number):
        """The beginning of a command that runs on that host. It shares our mounts: a disk that is
        taken away is gone for it, too, which `ip netns exec` would see to keep."""
        return ("nsenter", f"--net=/run/netns/{self.name(number)}")

    def __enter__(self):
        try:
            ip("link", "add", self._tag, "type", "bridge")
            ip("addr", "add", f"{self.address(CLIENTS)}/24", "dev", self._tag)
            ip("link", "set", self._tag, "up")
            for number in self.numbers:
                self._add(number)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _add(self, number):
        name, outside = self.name(number), f"{self._tag}v{number}"
        ip("netns", "add", name)
        ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", outside, "master", self._tag, "up")
        ip("-n", name, "addr", "add", f"{self.address(number)}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
        ip("-n", name, "link", "set", "lo", "up")

    def __exit__(self, *_):
        for number in self.numbers:
            subprocess.run(["ip", "netns", "del", self.name(number)], check=False, timeout=10)
        subprocess.run(["ip", "link", "del", self._tag], check=False, timeout=10)

    def cut(self, source, target):
        """Nothing that `source` sends reaches `target` any more."""
        with self._changing:
            self._neighbour("replace", source, target, "lladdr", NOWHERE, "nud", "permanent")
            self._cuts.add((source, target))

    def part(self, number, others=None):
        """This host and those, or all other hosts, hear nothing of each other. We hear all, but
        where CLIENTS are named."""
        for other in others or [one for one in self.numbers if one != number]:
            self.cut(number, other)
            self.cut(other, number)

    def join(self, number):
        """All hear this host again, and it hears them."""
        with self._changing:
            for source, target in sorted(one for one in self._cuts if number in one):
                self._neighbour("del", source, target)
                self._cuts.discard((source, target))

    def lose(self, number, percent):
        """So many of a hundred packets that are sent to this host do not arrive."""
        words = (
            "add table inet lossy; add chain inet lossy input"
            " { type filter hook input priority 0; };"
            f" add rule inet lossy input iifname eth0 numgen random mod 100 < {percent} drop"
        )
        self._run(number, "nft", words)
        self._lossy.add(number)

    def slow(self, number, kbit):
        """This host sends so many kbit in a second, and what has to wait longer is dropped."""
        rate = ("rate", f"{kbit}kbit", "burst", "16kb", "latency", "500ms")
        self._run(number, "tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", *rate)
        self._slow.add(number)

    def heal(self):
        with self._changing:
            for source, target in sorted(self._cuts):
                self._neighbour("del", source, target)
            self._cuts.clear()
        for number in sorted(self._lossy):
            self._run(number, "nft", "delete table inet lossy")
        for number in sorted(self._slow):
            self._run(number, "tc", "qdisc", "del", "dev", "eth0", "root")
        self._lossy.clear()
        self._slow.clear()

    def _run(self, number, *words):
        subprocess.run([*self.within(number), *words], check=True, capture_output=True, timeout=10)

    def _neighbour(self, what, source, target, *more):
        where, device = ("-n", self.name(source)), "eth0"
        if source == CLIENTS:
            where, device = (), self._tag
        ip(*where, "neigh", what, self.address(target), "dev", device, *more)
