"""The threads of an I/O process, each for one kind of work that blocks.

Invariant: what one kind of work waits for is never behind another's. `fd`s are for the loop: a job
that ended rings.
"""

from appliance.shell.flusher import Flusher


class Workers:
    """syncs: of logs. group_writes: of journals. opener: all logs at the start. trims: log starts.
    leaving, returning: deleted partitions, into the trash and out of it. copies: moves. cleaner:
    compaction. chores: checkpoints and removals. probes: of log folders. remote: records of
    remote segments."""

    __slots__ = (
        "chores",
        "cleaner",
        "copies",
        "group_writes",
        "leaving",
        "opener",
        "probes",
        "remote",
        "returning",
        "syncs",
        "trims",
    )

    def __init__(self) -> None:
        self.syncs = Flusher()
        self.group_writes = Flusher(1)
        self.opener = Flusher(1)
        self.trims = Flusher(1)
        self.leaving = Flusher(1)
        self.returning = Flusher(1)
        self.copies = Flusher(1)
        self.cleaner = Flusher(1)
        self.chores = Flusher(1)
        self.probes = Flusher(1)
        self.remote = Flusher(1)

    def durable(self) -> tuple[Flusher, ...]:
        """Those whose results clients wait for: each turn takes them."""
        return self.syncs, self.group_writes

    def at_leisure(self) -> tuple[Flusher, ...]:
        """All whose results the chores take; nobody waits for those of `chores`."""
        both = self.opener, self.probes, self.remote
        return self.copies, self.cleaner, self.leaving, self.returning, self.trims, *both

    def everyone(self) -> tuple[Flusher, ...]:
        """All whose results somebody takes as soon as they are there."""
        return self.syncs, *self.at_leisure()
