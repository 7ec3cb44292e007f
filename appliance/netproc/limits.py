"""How many connections there may be, in all and per address (max.connections,
max.connections.per.ip), and how many the limit of open files has room for."""

from collections import Counter

from appliance.netproc.admission import AddressShare


class ConnectionLimits:
    """Counts open connections; a value machine. room: the most that there are descriptors for.
    files: the limit of open files, of which `room` is a share."""

    def __init__(self) -> None:
        self.room = self.files = 1 << 62
        self._total = self._per_address = 0
        self._overrides: dict[str, int] = {}
        self._open: Counter[str] = Counter()
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

    def admit(self, address: str, held: int = 0) -> str | None:
        """Count one more connection of `address`, or say in words which limit forbids it. held: as
        for `is_full`."""
        limit = self._overrides.get(address, self._per_address)
        if self._open[address] >= limit:
            return f"{limit} connections of {address} are open: raise max.connections.per.ip"
        if self._count >= self._total:
            return f"{self._total} connections are open: raise max.connections"
        if self.is_full(held):
            return (
                f"{self._count} connections are open, the share of this process's limit of"
                f" {self.files} open files: raise it (LimitNOFILE, ulimit -n)"
            )
        self._open[address] += 1
        self._count += 1
        return None

    def admit_again(self, address: str) -> None:
        """Count one that was admitted by another process, whatever the limits are."""
        self._open[address] += 1
        self._count += 1

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
