"""Liveness and readiness of an appliance, from its tables: a value machine.

`HealthWatch.look` runs about once a second, and so knows for how long something has stood still
that must not: the loops' turns, the replay of metadata, records that are written and
not visible. `verdict` says what that means. Nothing is asked of anybody and nothing is written:
what tables cannot show, that a connection is accepted and answered, is for whoever can make one.

A loop counts a turn when it has looked at all of its rings and sockets, so a process that has
turned within the last two seconds works. What is not proven so: that a disk takes a write while
nobody writes.
"""

from collections.abc import Hashable, Iterable
from itertools import compress
from operator import ne
from time import monotonic_ns
from typing import Final, NamedTuple

from appliance.config.cluster_checks import BEGINS
from appliance.metadata.image import MetadataImage
from appliance.ring.partition_table import (
    HIGH_WATERMARK,
    LOG_END,
    NOT_OPEN,
    OFFLINE,
    STATUS,
    PartitionTable,
)
from appliance.ring.process_table import (
    CONTROL,
    IOPROC,
    NETPROC,
    READY,
    STATE_NAMES,
    Peer,
    ProcessTable,
)

_S: Final = 1_000_000_000
SILENT_NS: Final = 2 * _S
"""A loop that has not turned for so long does not work; an idle one turns every 200 ms."""
DEAD_NS: Final = 30 * _S
"""Nobody has replaced it, which takes ten seconds: this appliance does not mend itself."""
STALLED_NS: Final = 5 * _S
"""Records are visible some 50 ms after they were written."""
NOBODY_VOTES: Final = (
    f"no voter yet, and none of controller.quorum.bootstrap.servers knows one: {BEGINS}"
)
_REST: Final = 100
"""Times as long as a look at all rows took: with very many it is a percent of a core."""


class Verdict(NamedTuple):
    """missing: why it is not ready, nothing when it is. warnings: it serves, and something is
    wrong. dead: what does not come right by itself, nothing while it lives."""

    missing: tuple[str, ...]
    warnings: tuple[str, ...]
    dead: tuple[str, ...]


class _Still:
    """Counters that have not moved, and since when."""

    def __init__(self) -> None:
        self._since: dict[Hashable, tuple[object, int, bool]] = {}  # the last: it has moved once

    def update_all(self, seen: Iterable[tuple[Hashable, object]], now_ns: int) -> None:
        """These are all, as they are now; what is not among them is forgotten."""
        before, self._since = self._since, {}
        for key, value in seen:
            known = before.get(key)
            if known is None or known[0] != value:
                known = (value, now_ns, known is not None)
            self._since[key] = known

    def longer_than(self, limit_ns: int, now_ns: int) -> list[Hashable]:
        """Returns the keys whose value has been the same for so long."""
        return [key for key, (_, since, _) in self._since.items() if now_ns - since > limit_ns]

    def unknown(self, limit_ns: int, now_ns: int) -> bool:
        """Something has not been seen to move, and not been looked at for so long either."""
        known = self._since.values()
        return any(not moved and now_ns - since <= limit_ns for _, since, moved in known)

    def for_ns(self, key: Hashable, now_ns: int) -> int:
        """For how long; 0 for what was not seen."""
        known = self._since.get(key)
        return 0 if known is None else now_ns - known[1]


class HealthWatch:
    """Looks at the tables of a running appliance. Times are ns of one monotonic clock."""

    def __init__(self, processes: ProcessTable, partitions: PartitionTable) -> None:
        self._processes = processes
        self._partitions = partitions
        self._turns = _Still()
        self._behind = _Still()
        self._hidden = _Still()
        self._rows_due_ns = 0

    @property
    def is_broker(self) -> bool:
        """True if this node is a broker: it has I/O processes."""
        return any(peer.kind == IOPROC for peer in self._processes.peers)

    def check_progress(self, now_ns: int) -> None:
        """See what has moved since the last look."""
        table = self._processes
        committed = table.metadata_offset
        ready = [peer for peer in table.peers if table.state(peer) == READY]
        self._turns.update_all(((peer, table.heartbeat(peer)) for peer in ready), now_ns)
        applied = [(peer, table.applied(peer)) for peer in ready if peer.kind != CONTROL]
        self._behind.update_all(
            ((peer, done) for peer, done in applied if done < committed), now_ns
        )
        if now_ns >= self._rows_due_ns:
            began = monotonic_ns()
            self._hidden.update_all(self._hidden_rows(), now_ns)
            self._rows_due_ns = now_ns + max(_S // 2, (monotonic_ns() - began) * _REST)

    def _hidden_rows(self) -> list[tuple[Hashable, object]]:
        """Rows with records that nobody sees yet: who has them, up to where they are seen."""
        table = self._partitions
        visible, ends = table.column(HIGH_WATERMARK), table.column(LOG_END)
        holders = table.holders()
        rows = range(min(len(visible), len(ends), len(holders)))
        differ = compress(rows, map(ne, visible, ends))
        return [(row, (holders[row], visible[row])) for row in differ if holders[row] & 1]

    def silent_ns(self, peer: Peer, now_ns: int) -> int:
        """For how long its loop has not turned; 0 of one that is not ready."""
        return self._turns.for_ns(peer, now_ns)

    def unsure(self, now_ns: int) -> bool:
        """True shortly after the first look, when a process has neither been seen to turn nor to
        stand still for long enough. It lasts for as long as an idle loop sleeps, or for SILENT_NS
        where something is wrong."""
        return any(one.unknown(SILENT_NS, now_ns) for one in (self._turns, self._behind))

    def stalled(self, now_ns: int) -> int:
        """Partitions whose records have been written and not visible for five seconds."""
        return len(self._hidden.longer_than(STALLED_NS, now_ns))

    def verdict(self, now_ns: int) -> Verdict:
        """Returns the verdict of the tables now."""
        missing, warnings = self._serving()
        lost, limp = self._partitions_open()
        missing += lost
        if not missing and (loading := self._processes.loading):
            missing.append(f"{loading} coordinators of groups and transactions are still loading")
        warnings += limp
        for peer in self._turns.longer_than(SILENT_NS, now_ns):
            seconds = self._turns.for_ns(peer, now_ns) / _S
            missing.append(f"{peer} has stood still for {seconds:.0f} s")
        for peer in self._behind.longer_than(SILENT_NS, now_ns):
            missing.append(f"{peer} does not follow the metadata")
        if count := self.stalled(now_ns):
            warnings.append(f"{count} partitions have records that do not become visible")
        dead = [
            f"{peer} has stood still for {self._turns.for_ns(peer, now_ns) / _S:.0f} s"
            for peer in self._turns.longer_than(DEAD_NS, now_ns)
        ]
        return Verdict(tuple(missing), tuple(warnings), tuple(dead))

    def _serving(self) -> tuple[list[str], list[str]]:
        """Clients are served while every I/O process has its partitions and one network process
        listens; without control only changes of the metadata have to wait."""
        table = self._processes
        if table.drain:
            return ["it is ending"], []
        if table.unvoted:
            return [NOBODY_VOTES], []
        states = {peer: table.state(peer) for peer in table.peers}
        away = [f"{peer} is {STATE_NAMES[now]}" for peer, now in states.items() if now != READY]
        if not table.cluster_ready:
            return away or ["it is starting"], []
        needed = [peer for peer in states if peer.kind == IOPROC and states[peer] != READY]
        listening = any(states[peer] == READY for peer in states if peer.kind == NETPROC)
        return (away, []) if needed or not listening else ([], away)

    def _partitions_open(self) -> tuple[list[str], list[str]]:
        table = self._partitions
        states = [
            state
            for state, holder in zip(table.column(STATUS), table.holders(), strict=False)
            if holder & 1
        ]
        opening, offline = states.count(NOT_OPEN), states.count(OFFLINE)
        missing = [f"{opening} of {len(states)} partitions are not open yet"] if opening else []
        told = [f"{offline} of {len(states)} partitions are offline"] if offline else []
        if offline == len(states):
            return missing + told, []
        return missing, told


def not_sent_to(image: MetadataImage, node_id: int) -> str:
    """Why the controller sends no client to this node, a broker; "" when it does, or while nothing
    is known of the metadata."""
    me = image.brokers.get(node_id)
    if me is not None and me.fenced:
        return "the controller has fenced this node"
    if me is None and image.applied_offset >= 0:
        return "the controller does not know this node"
    return ""
