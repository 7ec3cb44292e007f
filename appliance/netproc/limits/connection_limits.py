"""How many connections there may be, in all and per address (max.connections,
max.connections.per.ip), over all network processes, and how many the limit of open files has room
for. Two processes that admit in the same instant may exceed a limit by one each.

Without a limit of its own no address can take the last of that room: it may have three times as
many connections as there is room left for. So one address gets three quarters at most, two get
three sevenths each, and another one always finds room. Handshakes under way are bounded by address,
too, because each holds memory of OpenSSL's.
"""

from collections import Counter
from typing import Final, NamedTuple

from appliance.config.bounds import CONNECTIONS, CONNECTIONS_OF_ADDRESS, OPEN_FILES
from appliance.config.setting import INT_MAX
from appliance.netproc.memory.admission import AddressShare
from appliance.ring.client_table import OpenConnections

_NOWHERE: Final = OpenConnections(())
_SHARE: Final = 3
"""Connections of one address for each one that there is room for."""
_HANDSHAKES: Final = 1024
"""Of one address under way; each costs some 45 KB."""
_LEAST_HANDSHAKES: Final = 16


class RefusedConnection(NamedTuple):
    """bound: the one in `config/bounds.py` that was reached. why: in words, with the remedy."""

    bound: str
    why: str


class ConnectionLimits:
    """Counts open connections; a value machine. room: the most that there are descriptors for.
    files: the limit of open files, of which `room` is a share. handshakes: of one address that may
    be under way. elsewhere: the connections of the other network processes, which are counted
    only where a limit is near enough."""

    def __init__(self) -> None:
        self.elsewhere = _NOWHERE
        self.handshakes = _HANDSHAKES
        self.room = self.files = 1 << 62
        self._total = self._per_address = 0
        self._overrides: dict[str, int] = {}
        self._open: Counter[str] = Counter()
        self._handshakes: Counter[str] = Counter()
        self._count = 0
        self._shares: dict[str, AddressShare] = {}

    def set(self, total: int, per_address: int, overrides: dict[str, int]) -> None:
        """New limits; connections that are open stay open."""
        self._total = total
        self._per_address = per_address
        self._overrides = overrides

    @property
    def count(self) -> int:
        return self._count

    def is_full(self, held: int) -> bool:
        """There is no descriptor for one more. held: sockets that are no connections."""
        return self._count + held >= self.room

    def admit(self, address: str, held: int = 0) -> RefusedConnection | None:
        """Count one more connection of `address`, or say in words which limit forbids it. held: as
        for `is_full`."""
        limit = self._overrides.get(address, self._per_address)
        others = self.elsewhere.count_all() if min(limit, self._total) < INT_MAX else 0
        of_address = self._open[address]
        if of_address + others >= limit:
            of_address += self.elsewhere.count_address(address)
        if of_address >= limit:
            why = f"{limit} connections of {address} are open: raise max.connections.per.ip"
            return RefusedConnection(CONNECTIONS_OF_ADDRESS, why)
        if self._count + others >= self._total:
            why = f"{self._total} connections are open: raise max.connections"
            return RefusedConnection(CONNECTIONS, why)
        if self.is_full(held):
            return RefusedConnection(
                OPEN_FILES,
                f"{self._count} connections are open, the share of this process's limit of"
                f" {self.files} open files: raise it (LimitNOFILE, ulimit -n)",
            )
        opened = self._open[address]
        left = self.room - self._count - held
        if opened >= _SHARE * left and address not in self._overrides:
            return RefusedConnection(
                OPEN_FILES,
                f"{opened} connections of {address} are open, and {left} are left to all others by"
                f" this process's limit of {self.files} open files: raise it (LimitNOFILE,"
                " ulimit -n) or say in max.connections.per.ip.overrides how many it may have",
            )
        self._open[address] = opened + 1
        self._count += 1
        return None

    def admit_again(self, address: str) -> None:
        """Count one that was admitted by another process, whatever the limits are."""
        self._open[address] += 1
        self._count += 1

    def begin_handshake(self, address: str) -> bool:
        """Count a handshake of `address`; False: too many are under way."""
        most = max(_LEAST_HANDSHAKES, min(self.handshakes, self.room // 8))
        if self._handshakes[address] >= most:
            return False
        self._handshakes[address] += 1
        return True

    def end_handshake(self, address: str) -> None:
        """One that `begin_handshake` has counted came to an end, whichever."""
        self._handshakes[address] -= 1
        if not self._handshakes[address]:
            del self._handshakes[address]

    def share(self, address: str) -> AddressShare:
        """The bytes of the arena that open connections of `address` hold."""
        return self._shares.setdefault(address, AddressShare())

    def release(self, address: str) -> None:
        """One connection of `address` is closed."""
        self._count -= 1
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]
            self._shares.pop(address, None)
