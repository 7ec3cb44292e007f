"""Network namespaces as hosts: nodes of a cluster whose links can be cut, one way or both, without
their hearing of it. Needs root and `ip`.

A link is cut by the sender's believing in a wrong hardware address for the receiver: what it sends
reaches nobody, and nobody says so.
"""

import os
import shutil
import subprocess

from benchmarks.nodes import Place

NOWHERE = "02:00:00:00:00:fe"
PORT, CONTROLLER_PORT = 9092, 9093


def unavailable():
    """Why there can be no such hosts here, None when there can."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    return None if shutil.which("ip") else "there is no ip (Debian: iproute2)"


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=10)


class Hosts:
    """Hosts 1 to `count` and this one, on one bridge. Use it as a context manager."""

    def __init__(self, count=3):
        self.numbers = range(1, count + 1)
        self._tag = f"pk{os.getpid() % 100_000}"
        self._cuts = set()

    def name(self, number):
        return f"{self._tag}h{number}"

    def address(self, number):
        return f"10.199.{os.getpid() % 250}.{number}"

    @property
    def places(self):
        return tuple(
            Place(number, PORT, CONTROLLER_PORT, self.address(number)) for number in self.numbers
        )

    def within(self, number):
        """The beginning of a command that runs on that host."""
        return ("ip", "netns", "exec", self.name(number))

    def __enter__(self):
        try:
            ip("link", "add", self._tag, "type", "bridge")
            ip("addr", "add", f"{self.address(254)}/24", "dev", self._tag)
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
        self._neighbour("replace", source, target, "lladdr", NOWHERE, "nud", "permanent")
        self._cuts.add((source, target))

    def part(self, number, others=None):
        """This host and those, or all other hosts, hear nothing of each other. We hear all."""
        for other in others or [one for one in self.numbers if one != number]:
            self.cut(number, other)
            self.cut(other, number)

    def heal(self):
        for source, target in sorted(self._cuts):
            self._neighbour("del", source, target)
        self._cuts.clear()

    def _neighbour(self, what, source, target, *more):
        ip("-n", self.name(source), "neigh", what, self.address(target), "dev", "eth0", *more)
