"""How far one partition is: written, held here, held by the other replicas, and so visible.

Two roles. The leader hears from its own log and from each follower, and says how far the high
watermark is: the offset below which every replica that must have a record has it. A follower hears
from its own log and is told the leader's. The disk is a replica like the others where a record
counts only when it is synced (docs/decisions/0002): whoever drives this calls `holds` with what is
on the disk then, and with what is written otherwise. One node is the leader without followers.

With fewer in sync than min.insync.replicas asks for nothing new becomes visible (KIP-966). A
follower that is about to be in sync is waited for too: else one that is alone in sync would show
each record at once, and who comes back would run after it for ever.

Who waits is released by comparing its end offset with an attribute: acks=1 with `log_end`, acks=all
with `high_watermark`, reads with `high_watermark`, or `last_stable` when they are read_committed.

Invariant: log start ≤ last stable offset ≤ high watermark ≤ log end, and held ≤ log end; the high
watermark never goes back while this node leads, epochs never do. Offsets count records; an end is
the offset behind the last one. No clock: times come in, in ms.
"""

from collections.abc import Container, Iterable, Mapping
from typing import Final

ALONE: Final[dict[int, "FollowerProgress"]] = {}


class FollowerProgress:
    """Another replica as its leader sees it. end: its log end offset, -1 before it first fetched.
    log_start: its log start offset. broker_epoch: the one under which it fetches. Each -1: not
    known.

    caught_up_ms: when it last had all that there was (KIP-16): at this fetch, or, when this one
    begins where the log ended at the one before, at that one, or when the log went on behind what
    it had. 0: never under this leader, or not since it was in sync.
    """

    __slots__ = ("_asked_end", "_asked_ms", "broker_epoch", "caught_up_ms", "end", "log_start")

    def __init__(self, caught_up_ms: int) -> None:
        self.end = self.log_start = self.broker_epoch = self._asked_end = -1
        self.caught_up_ms = caught_up_ms
        self._asked_ms = 0

    def at(self, end: int, log_end: int, now_ms: int) -> None:
        """It fetches from `end`, which it therefore has, while the leader's log ends at
        `log_end`."""
        if end >= log_end:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif 0 <= self._asked_end <= end:
            self.caught_up_ms = max(self.caught_up_ms, self._asked_ms)
        self._asked_end, self._asked_ms = log_end, now_ms
        self.end = end

    def forget_progress(self) -> None:
        """It is in sync no more, or has lost what it had: whether it ever had everything counts
        from its next fetch on. It may not even be there."""
        self._asked_end = -1
        self.caught_up_ms = self._asked_ms = 0

    def had_all(self, log_end: int, now_ms: int) -> None:
        """The log, which ended there, goes on: who had fetched all of it had nothing to ask for
        until now."""
        if self.end == log_end and self._asked_end >= 0:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)


class Progress:
    """One partition's. Read the attributes, never write them.

    held: what this replica counts for. epoch: of the leader, -1 before anybody led. followers: the
    other replicas, while this one leads. in_sync: those of them that must have a record before it
    is visible. near: those that are about to be in sync, and are waited for, too. enough: whether
    so many are in sync that anything becomes visible.
    """

    __slots__ = (
        "_began",
        "_ended",
        "_open",
        "enough",
        "epoch",
        "followers",
        "held",
        "high_watermark",
        "in_sync",
        "last_stable",
        "leads",
        "log_end",
        "log_start",
        "near",
    )

    def __init__(self, log_start: int, log_end: int, high_watermark: int) -> None:
        assert log_start <= high_watermark <= log_end, (log_start, high_watermark, log_end)
        self.log_start = log_start
        self.log_end = self.held = log_end
        self.high_watermark = self.last_stable = high_watermark
        self.epoch = -1
        self.leads = False
        self._began = log_end  # where the log ended when this node began to lead
        self.followers = ALONE
        self.in_sync: tuple[int, ...] = ()
        self.near: tuple[int, ...] = ()
        self.enough = True
        self._open: dict[int, int] = {}  # producer id → first offset of its transaction
        self._ended: dict[int, int] = {}  # first offset → end of a marker that is not visible yet

    # Roles ----------------------------------------------------------------------------------------

    def lead(
        self,
        epoch: int,
        replicas: Iterable[int] = (),
        in_sync: Iterable[int] = (),
        now_ms: int = 0,
        *,
        enough: bool = True,
    ) -> bool:
        """This replica leads, in this epoch. replicas, in_sync: the others, without it. The same
        epoch again says who is in sync now. enough: whether those that are, by agreement, are as
        many as min.insync.replicas. Whether the high watermark rose."""
        assert epoch >= self.epoch, (epoch, self.epoch)
        goes_on = self.leads and epoch == self.epoch
        known = self.followers if goes_on else ALONE
        if not goes_on:
            self._began = self.log_end
        self.epoch = epoch
        self.leads = True
        self.enough = enough
        both = tuple(in_sync)
        for one in self.in_sync if goes_on else ():
            if one not in both:
                known[one].forget_progress()
        self.in_sync = both
        self.followers = {
            one: known.get(one) or FollowerProgress(now_ms if one in both else 0)
            for one in replicas
        }
        assert all(one in self.followers for one in both)
        near = self.near if goes_on else ()
        self.near = tuple(one for one in near if one in self.followers and one not in both)
        return self._rise(self.held)

    def follow(self, epoch: int) -> None:
        """Another replica leads, in this epoch: what it says is visible here."""
        assert epoch >= self.epoch, (epoch, self.epoch)
        assert not (self.leads and epoch == self.epoch), "two leaders in one epoch"
        self.epoch = epoch
        self.leads = False
        self.followers = ALONE
        self.in_sync = self.near = ()
        self.enough = True

    # What happens ---------------------------------------------------------------------------------

    def appended(self, end: int, held: int, now_ms: int = 0) -> bool:
        """The log ends at `end` now, of which this replica holds all below `held`. Whether the high
        watermark rose."""
        assert self.log_end <= end and held <= end, (self.log_end, end, held)
        if self.followers:
            for follower in self.followers.values():
                follower.had_all(self.log_end, now_ms)
        self.log_end = end
        return held > self.held and self.holds(held)

    def holds(self, end: int) -> bool:
        """This replica holds everything below `end`. Whether the high watermark rose."""
        if end <= self.held:
            return False
        assert end <= self.log_end, (end, self.log_end)
        self.held = end
        if not self.leads:
            return False
        if self.followers or self._open or self._ended:
            return self._rise(end)
        if end <= self.high_watermark:
            return False
        self.high_watermark = self.last_stable = end
        return True

    def replica_at(self, replica: int, end: int, now_ms: int, longest_ms: int = -1) -> bool:
        """A follower fetches from `end`: it has what is below. Whether the high watermark rose. A
        replica that is none of this partition's is not heard. longest_ms: it may come to be in
        sync, and is about to, when it had everything so long ago; -1: it may not."""
        assert self.leads
        follower = self.followers.get(replica)
        if follower is None or end > self.log_end:
            return False
        lost = end < follower.end and replica not in self.in_sync
        if lost:
            follower.forget_progress()
            self.near = tuple(one for one in self.near if one != replica)
        follower.at(end, self.log_end, now_ms)
        if lost or replica in self.in_sync or replica in self.near:
            return self._rise(self.held)
        if now_ms - follower.caught_up_ms <= longest_ms:
            self.near += (replica,)
        return False

    def lost(self, replica: int) -> None:
        """Forgets the log end offset of a follower outside of the ISR until its next fetch."""
        assert self.leads and replica not in self.in_sync
        follower = self.followers[replica]
        follower.forget_progress()
        follower.end = -1
        self.near = tuple(one for one in self.near if one != replica)

    def on_leader_high_watermark(self, high_watermark: int) -> bool:
        """The leader's high watermark, as it came with its records. Whether it rose here."""
        assert not self.leads
        return self._show(min(high_watermark, self.log_end))

    def truncated(self, end: int, transactions: Mapping[int, int]) -> None:
        """The log ends at `end` again: a follower's that had what its leader has not. transactions:
        those open there, producer id → first offset."""
        assert not self.leads, "a leader's log is what counts"
        assert self.log_start <= end <= self.log_end, (self.log_start, end, self.log_end)
        self.log_end = end
        self.held = min(self.held, end)
        self.high_watermark = min(self.high_watermark, end)
        self._open = dict(transactions)
        self._ended = {first: at for first, at in self._ended.items() if at <= end}
        self.last_stable = self._stable()

    def starts_at(self, offset: int) -> None:
        """Records below are gone: the log starts there now."""
        assert self.log_start <= offset <= self.high_watermark, (offset, self.high_watermark)
        self.log_start = offset
        if offset > self.last_stable:
            self.last_stable = offset

    # Transactions ---------------------------------------------------------------------------------

    def begun(self, producer_id: int, first: int) -> None:
        """A producer's transaction begins with the record at `first`, which is not visible yet."""
        assert producer_id not in self._open, "one transaction at a time"
        assert first >= self.last_stable or not self.leads, "what was stable cannot be undone"
        self._open[producer_id] = first
        self.last_stable = self._stable()

    def ended(self, producer_id: int, end: int) -> bool:
        """Its marker was appended, the log end is `end` behind it: when that is visible, so are the
        records, or for ever not. Whether the last stable offset rose now."""
        first = self._open.pop(producer_id, -1)
        if first < 0:
            return False  # a marker without a transaction changes nothing
        self._ended[first] = end
        before = self.last_stable
        self.last_stable = self._stable()
        return self.last_stable > before

    # Who is in sync -------------------------------------------------------------------------------

    def behind(self, now_ms: int, longest_ms: int) -> list[int]:
        """Returns the ISR members that have not been caught up for longer than that
        (replica.lag.time.max.ms)."""
        return [
            one
            for one in self.in_sync
            if self.followers[one].end != self.log_end
            and now_ms - self.followers[one].caught_up_ms > longest_ms
        ]

    def forget_late(self, now_ms: int, longest_ms: int, gone: Container[int] = ()) -> bool:
        """Stops waiting for replicas that were about to join the ISR and fell behind or are gone.
        Returns whether the high watermark advanced."""
        self.near = tuple(
            one
            for one in self.near
            if one not in gone
            and (
                self.followers[one].end == self.log_end
                or now_ms - self.followers[one].caught_up_ms <= longest_ms
            )
        )
        return self._rise(self.held)

    def may_join(self, replica: int) -> bool:
        """True if a follower has reached the high watermark and may join the ISR. The leader that
        proposes it counts it as in sync from then on (`lead`), before the controller agrees
        (KIP-497).

        That is not below the high watermark alone: a new leader's may be behind what the one before
        showed, though never behind where its own log ended when it began (KIP-320)."""
        follower = self.followers.get(replica)
        return (
            follower is not None
            and replica not in self.in_sync
            and follower.end >= max(self.high_watermark, self._began)
        )

    # ----------------------------------------------------------------------------------------------

    @property
    def behind_its_epoch(self) -> bool:
        """True if a new leader does not know its predecessor's high watermark yet (KIP-207)."""
        return bool(self.followers) and self.high_watermark < self._began

    def _rise(self, end: int) -> bool:
        if not self.enough:
            return False
        followers = self.followers
        for near in (self.in_sync, self.near):
            for one in near:
                if followers[one].end < end:
                    end = followers[one].end
        return self._show(end)

    def _show(self, end: int) -> bool:
        risen = end > self.high_watermark
        if risen:
            self.high_watermark = end
            self._ended = {first: at for first, at in self._ended.items() if at > end}
            self.last_stable = self._stable()
        return risen

    def _stable(self) -> int:
        stable = self.high_watermark
        for first in (*self._open.values(), *self._ended):
            if first < stable:
                stable = first
        return max(stable, self.log_start)
