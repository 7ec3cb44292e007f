"""How many connections there may be, in all and per address (max.connections,
max.connections.per.ip)."""

from collections import Counter


class ConnectionLimits:
    """Counts open connections; a value machine."""

    def __init__(self) -> None:
        self._total = self._per_address = 0
        self._overrides: dict[str, int] = {}
        self._open: Counter[str] = Counter()
        self._count = 0

    def set(self, total: int, per_address: int, overrides: dict[str, int]) -> None:
        """New limits; connections that are open stay open."""
        self._total = total
        self._per_address = per_address
        self._overrides = overrides

    @property
    def count(self) -> int:
        return self._count

    def admit(self, address: str) -> str | None:
        """Count one more connection of `address`, or say in words which limit forbids it."""
        limit = self._overrides.get(address, self._per_address)
        if self._open[address] >= limit:
            return f"{limit} connections of {address} are open: raise max.connections.per.ip"
        if self._count >= self._total:
            return f"{self._total} connections are open: raise max.connections"
        self._open[address] += 1
        self._count += 1
        return None

    def admit_again(self, address: str) -> None:
        """Count one that was admitted by another process, whatever the limits are."""
        self._open[address] += 1
        self._count += 1

    def release(self, address: str) -> None:
        """One connection of `address` is closed."""
        self._count -= 1
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]
