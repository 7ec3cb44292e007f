"""The work of an I/O process beside requests: partitions that come and go, timed work, jobs on
threads.

Not in each turn: when something was stirred up (`ServedPartitions.stirred`), and else as often as
the last round asked for. Invariant: each round does a bounded piece (docs/decisions/0017). Called
by the shell before the end of a turn.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from appliance.ioproc.coordination.group_lag_sampler import GroupLagSampler
from appliance.ioproc.coordination.orphaned_transactions import OrphanedTransactions
from appliance.ioproc.lifecycle.isolation import IsolationCheck
from appliance.ioproc.lifecycle.partition_manager import PartitionManager
from appliance.ioproc.log_folders.alter_log_dirs import LogDirMoves
from appliance.ioproc.log_folders.directory_reports import DirectoryReports
from appliance.ioproc.log_folders.folder_probe import FolderProbe
from appliance.ioproc.metadata_replay import CoordinatorFollowing
from appliance.ioproc.remote.remote_storage import RemoteStorage
from appliance.ioproc.replication.replicas import Replicas
from appliance.ioproc.retention.housekeeping import Housekeeping
from appliance.ioproc.retention.log_cleaner import LogCleaner
from appliance.shell.bugs import Bugs

BUSY_MS: Final = 1
"""While something is under way on a thread."""
EVERY_MS: Final = 100
"""While something has a pace of its own: moves that are throttled, a doubt whether we are heard."""
QUIET_MS: Final = 200
"""Else: then nothing is due that would not stir it up."""


class Chores:
    """Everything that is done by and by. bugs: tells what chores raise: one run of them is lost.
    Without it, as in a simulation, an exception ends everything."""

    __slots__ = (
        "_behind",
        "_cleaning",
        "_following",
        "_home",
        "_housekeeping",
        "_isolating",
        "_left",
        "_moves",
        "_probing",
        "_remote",
        "_replicas",
        "_whereabouts",
        "bugs",
        "due_ns",
    )

    def __init__(
        self,
        home: PartitionManager,
        following: CoordinatorFollowing,
        housekeeping: Housekeeping,
        moves: LogDirMoves,
        cleaning: LogCleaner,
        behind: GroupLagSampler,
        left: OrphanedTransactions,
        replicas: Replicas,
        whereabouts: DirectoryReports,
        probing: FolderProbe,
        isolating: IsolationCheck,
        remote: RemoteStorage | None = None,
    ) -> None:
        self.bugs: Bugs | None = None
        self._home = home
        self._following = following
        self._housekeeping = housekeeping
        self._moves = moves
        self._cleaning = cleaning
        self._behind = behind
        self._left = left
        self._replicas = replicas
        self._whereabouts = whereabouts
        self._probing = probing
        self._isolating = isolating
        self._remote = remote
        self.due_ns = 0

    def run_slice(self, now_ns: int, now_ms: int, *, draining: bool) -> bool:
        """A piece of everything; False when there is more of it at once. draining: nothing new is
        begun."""
        opened = self._ask(
            "partitions that come and go", partial(self._home.open_slice, now_ns, now_ms)
        )
        if now_ms >= self._left.due_ms:
            self.guard("transactions left open", partial(self._left.ask_due, now_ms))
        if now_ms >= self._replicas.due_ms:
            self.guard("replicas", partial(self._replicas.tick, now_ms))
        self.guard("whereabouts", partial(self._whereabouts.tick, now_ms))
        self.guard("probing", partial(self._probing.tick, now_ms))
        self.guard("isolating", partial(self._isolating.tick, now_ns))
        self.guard("topics that are gone", partial(self._following.tell_gone, now_ms))
        housekeeping = self._housekeeping
        self.guard("log starts", housekeeping.trims.trim_next)
        idle = self._ask("housekeeping", partial(housekeeping.tick, now_ns, now_ms))
        idle = idle and self._ask("moves", partial(self._moves.tick, now_ns, now_ms))
        if not draining:
            if self._remote is not None:
                self.guard("tiered storage", partial(self._remote.run_slice, now_ns, now_ms))
            self.guard("compaction", partial(self._cleaning.tick, now_ns, now_ms))
            idle = self._ask("lags of groups", partial(self._behind.sample_slice, now_ns)) and idle
        under_way = housekeeping.trims.busy or self._home.busy or self._cleaning.busy
        under_way = under_way or self._replicas.due_ms <= now_ms or self._probing.busy
        paced = self._moves.under_way or self._isolating.doubts
        rest_ms = EVERY_MS if paced else QUIET_MS
        rest_ms = min(rest_ms, max(BUSY_MS, self._replicas.due_ms - now_ms))
        rest_ms = BUSY_MS if under_way or not idle else rest_ms
        self.due_ns = now_ns + rest_ms * 1_000_000
        return opened

    def _ask(self, where: str, chore: Callable[[], bool]) -> bool:
        """True if nothing of the chore is left to do at once, also when it raised."""
        done: list[bool] = []
        self.guard(where, lambda: done.append(chore()))
        return False not in done

    def guard(self, where: str, chore: Callable[[], object]) -> None:
        """Run something whose exceptions cost one run of it."""
        if self.bugs is None:
            chore()
        else:
            self.bugs.guard(where, chore)
