"""Process table in shared memory: liveness and progress, one row of words per process and a few
words for all.

Every word has exactly one writer, named beside it; whoever reads sees a whole old or a whole new
value (aligned native 8-byte stores, x86-64 order). The supervisor changes a row and then moves
`epoch`, so a process that compares one word at the start of its turn misses nothing. What a process
says about itself (`phase`) carries its generation: words left by its dead predecessor say nothing.

Written by the supervisor, control and every process for its own row; read by all.
"""

from typing import Final, NamedTuple

from appliance.ring.log_levels import LogLevels

CONTROL: Final = 0
IOPROC: Final = 1
NETPROC: Final = 2
KIND_NAMES: Final = ("control", "ioproc", "netproc")

DOWN: Final = 0
"""No process: it died or was never started. Its rings must not be touched."""
STARTING: Final = 1
READY: Final = 2
DRAINING: Final = 3
STATE_NAMES: Final = ("down", "starting", "ready", "draining")

UNBOUND: Final = 0
"""`confirmed` of a process that has never looked at the table: it holds no ring yet."""

FIRST_EPOCH: Final = 2
"""Below it, `confirmed` says UNBOUND or (1) that the process is about to look for the first
time."""

# Words for all, each writer on its own cache line (8 words).
EPOCH: Final = 0  # supervisor
_CLUSTER_READY: Final = 1  # supervisor
DRAIN: Final = 2  # supervisor
_WAS_CLEAN: Final = 3  # supervisor
_LEAVING: Final = 4  # supervisor
_SETTINGS: Final = 5  # supervisor
METADATA_OFFSET: Final = 8  # control
_LEADER: Final = 9  # control: epoch << 32 | node id + 1, of who leads the metadata log
_MEMBER: Final = 10  # control
_COMMITS: Final = 11  # control
_COMMIT_NS: Final = 12  # control
_NODES: Final = 13  # control: brokers there are << 32 | those of them that are away
_LOG_LEVELS: Final = 14  # control
_ANSWERED: Final = 15  # control
_ROWS_AT: Final = 16

# Words of a row, again one cache line per writer; `asleep` alone because peers read it at every
# flush.
_ALIVE: Final = 0  # supervisor
_GENERATION: Final = 1  # supervisor
_PID: Final = 2  # supervisor
_PHASE: Final = 8  # the process: generation << 8 | state
HEARTBEAT: Final = 9  # the process
_APPLIED: Final = 10  # the process
_CONFIRMED: Final = 11  # the process
_ACCUSED: Final = 12  # the process: 1 + row << 16 | generation of a peer whose ring is broken
LONGEST_TURN: Final = 13  # the process; who measures sets it to zero
_WITHOUT_ROOM: Final = 14  # the process: 1 << 32, while it moves partitions, | folders
_ISOLATED: Final = 15  # the process
ASLEEP: Final = 16  # the process
_UNVOTED: Final = 17  # the process: control, once in a life
_LOADING: Final = 18  # the process, so seldom that it costs no reader of the word before
_REMOTE: Final = 19  # the process: an I/O process, the words of RemoteFigures up to 23
_FLUSHES: Final = 24  # the process: an I/O process
_FLUSH_NS: Final = 25  # the process: an I/O process
_DELAYED: Final = 26  # the process: a netproc, produces << 32 | fetches
_REMOTE_READS: Final = 27  # the process: an I/O process, the other words of RemoteFigures
_ROW: Final = 32
_MOVES: Final = 1 << 32


class RemoteFigures(NamedTuple):
    """Tiered storage of an I/O process: counted by all processes that had the place. The lag alone
    is that of now: closed segments that are to be copied."""

    copied_bytes: int = 0
    copies_failed: int = 0
    deletes_failed: int = 0
    lag_bytes: int = 0
    lag_segments: int = 0
    fetched_bytes: int = 0
    fetches: int = 0
    fetches_failed: int = 0


_REMOTE_WORDS: Final = (*range(_REMOTE, _REMOTE + 5), *range(_REMOTE_READS, _REMOTE_READS + 3))


class Peer(NamedTuple):
    """A place for a process, whoever fills it at the moment."""

    kind: int
    index: int  # type: ignore[assignment]  # nobody searches in a Peer as in a tuple

    def __str__(self) -> str:
        name = KIND_NAMES[self.kind]
        return name if self.kind == CONTROL else f"{name}-{self.index}"


def linked(one: Peer, other: Peer) -> bool:
    """True if there are rings between two processes: between those of different kinds, and between
    I/O processes, whose coordinators end transactions in each other's partitions."""
    return one.kind != other.kind or (one.kind == IOPROC and one != other)


def peers_of(ioprocs: int, netprocs: int) -> tuple[Peer, ...]:
    """Every place of an appliance in the order of its rows: control, ioprocs, netprocs."""
    return (
        Peer(CONTROL, 0),
        *(Peer(IOPROC, n) for n in range(ioprocs)),
        *(Peer(NETPROC, n) for n in range(netprocs)),
    )


class ProcessTable:
    """The table over a memory of `bytes_needed` bytes, all zero at first."""

    __slots__ = ("_at", "_words", "peers")

    def __init__(self, memory: memoryview, *, ioprocs: int, netprocs: int) -> None:
        self.peers = peers_of(ioprocs, netprocs)
        size = self.bytes_needed(ioprocs, netprocs)
        assert len(memory) >= size
        self._words = memory[:size].cast("q")
        self._at = {peer: _ROWS_AT + n * _ROW for n, peer in enumerate(self.peers)}

    @staticmethod
    def bytes_needed(ioprocs: int, netprocs: int) -> int:
        """Size of the table's memory in bytes."""
        return (_ROWS_AT + (1 + ioprocs + netprocs) * _ROW) * 8

    # For all --------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """Moves whenever a process went down or a successor took its place."""
        return self._words[EPOCH]

    @property
    def cluster_ready(self) -> bool:
        """Control and every ioproc have been ready since the start: clients may be accepted."""
        return self._words[_CLUSTER_READY] != 0

    @property
    def drain(self) -> int:
        """0, or the stage of the orderly end: 1 netprocs finish, 2 ioprocs flush, 3 control
        stops."""
        return self._words[DRAIN]

    @property
    def was_clean(self) -> bool:
        """The appliance before us ended in order: its logs need no recovery."""
        return self._words[_WAS_CLEAN] != 0

    @property
    def leaving(self) -> bool:
        """The appliance is about to end: its broker leaves the cluster first."""
        return self._words[_LEAVING] != 0

    @property
    def member(self) -> bool:
        """Other nodes count on this one, so that it must leave before it ends."""
        return self._words[_MEMBER] != 0

    @property
    def metadata_offset(self) -> int:
        """Offset after the last committed metadata record; 0 until control has published one."""
        return self._words[METADATA_OFFSET]

    @property
    def leader(self) -> tuple[int, int]:
        """(node id, epoch) of who leads the metadata log, -1 for a node that nobody knows: the
        controller of the cluster."""
        epoch, node = divmod(self._words[_LEADER], 1 << 32)
        return node - 1, epoch

    @property
    def nodes(self) -> tuple[int, int]:
        """(brokers of the cluster, those of them that are fenced), as this node knows; (0, 0) until
        it does."""
        return divmod(self._words[_NODES], 1 << 32)

    @property
    def settings(self) -> int:
        """How often the settings were read again. Moves before `epoch` does."""
        return self._words[_SETTINGS]

    def word(self, which: int) -> memoryview:
        """EPOCH, DRAIN or METADATA_OFFSET as a memory of one word, for who looks all the time."""
        return self._words[which : which + 1]

    @property
    def log_levels(self) -> LogLevels:
        """How much each process writes of what happens; control sets it."""
        return LogLevels(self.word(_LOG_LEVELS))

    def row_word(self, peer: Peer, which: int) -> memoryview:
        """HEARTBEAT, ASLEEP or LONGEST_TURN of one process as a memory of one word. Only that
        process writes there."""
        at = self._at[peer] + which
        return self._words[at : at + 1]

    def publish_leader(self, node_id: int, epoch: int) -> None:
        """Control: this node, or -1, leads since this epoch."""
        words = self._words
        assert -1 <= node_id < (1 << 31) and epoch >= words[_LEADER] >> 32, "epochs only rise"
        assert epoch < (1 << 31) - 1, "nobody leads behind the last epoch"
        words[_LEADER] = epoch << 32 | (node_id + 1)

    def publish_metadata(self, offset: int) -> None:
        """Control: records below `offset` are committed."""
        words = self._words
        assert offset >= words[METADATA_OFFSET], "what is committed stays committed"
        words[METADATA_OFFSET] = offset

    @property
    def commits(self) -> tuple[int, int]:
        """(how many, ns): commits of the metadata log that this node measured while it led it, from
        the append to the agreement, and what they took together."""
        return self._words[_COMMITS], self._words[_COMMIT_NS]

    def add_commits(self, count: int, took_ns: int) -> None:
        """Control: so many more were measured."""
        self._words[_COMMITS] += count
        self._words[_COMMIT_NS] += took_ns

    def set_member(self, member: bool) -> None:
        """Control: see `member`."""
        self._words[_MEMBER] = member

    @property
    def answered_ms(self) -> int:
        """When this broker last asked what the active controller answered, or, while this node is
        it, when a majority last followed: ms, monotonic. 0: never yet, or it is alone."""
        return self._words[_ANSWERED]

    def set_answered(self, now_ms: int) -> None:
        """Control: see `answered_ms`."""
        self._words[_ANSWERED] = now_ms

    def set_nodes(self, count: int, away: int) -> None:
        """Control: see `nodes`."""
        assert 0 <= away <= count
        self._words[_NODES] = count << 32 | away

    # One row, read --------------------------------------------------------------------------------

    def generation(self, peer: Peer) -> int:
        """How many processes have had this place, the present one included."""
        return self._words[self._at[peer] + _GENERATION]

    def state(self, peer: Peer) -> int:
        """DOWN, STARTING, READY or DRAINING."""
        at = self._at[peer]
        words = self._words
        if not words[at + _ALIVE]:
            return DOWN
        generation, state = divmod(words[at + _PHASE], 256)
        return state if generation == words[at + _GENERATION] else STARTING

    def pid(self, peer: Peer) -> int:
        """Process id, 0 when down."""
        return self._words[self._at[peer] + _PID]

    def heartbeat(self, peer: Peer) -> int:
        """Turns of its loop and of those who had the place before; standing still means stopped or
        wedged."""
        return self._words[self._at[peer] + HEARTBEAT]

    def applied(self, peer: Peer) -> int:
        """Offset after the last metadata record it has replayed."""
        return self._words[self._at[peer] + _APPLIED]

    def confirmed(self, peer: Peer) -> int:
        """The epoch it has acted upon."""
        return self._words[self._at[peer] + _CONFIRMED]

    def longest_turn(self, peer: Peer) -> int:
        """The longest turn of its loop in ns, waiting left out, since the process began or since
        `forget_turns`."""
        return self._words[self._at[peer] + LONGEST_TURN]

    def without_room(self, peer: Peer) -> int:
        """Log folders in which this process takes no records, because their disks are nearly
        full."""
        return self._words[self._at[peer] + _WITHOUT_ROOM] % _MOVES

    @property
    def all_without_room(self) -> int:
        """Returns the sum over all processes."""
        return sum(self._words[at + _WITHOUT_ROOM] % _MOVES for at in self._at.values())

    @property
    def moving(self) -> int:
        """How many processes move partitions to other log folders."""
        return sum(self._words[at + _WITHOUT_ROOM] >= _MOVES for at in self._at.values())

    @property
    def loading(self) -> int:
        """Coordinators, of groups and of transactions, that still read their logs and refuse
        clients until then: those of all processes together."""
        return sum(self._words[at + _LOADING] for at in self._at.values())

    @property
    def isolated_ms(self) -> int:
        """Since when some I/O process refuses what others lead by now, it seems, because nobody
        hears this node: ms, monotonic; 0: none does."""
        since = [self._words[at + _ISOLATED] for at in self._at.values()]
        return max(since)

    @property
    def unvoted(self) -> bool:
        """Control waits for somebody to vote on the metadata log, and nobody it asks knows any."""
        return self._words[self._at[Peer(CONTROL, 0)] + _UNVOTED] != 0

    def flushes(self, peer: Peer) -> tuple[int, int]:
        """(how many, ns): flushes of logs to the disk by the processes that had this place, and
        what they took together. A write of the journal counts once for all logs in it."""
        at = self._at[peer]
        return self._words[at + _FLUSHES], self._words[at + _FLUSH_NS]

    def remote_figures(self, peer: Peer) -> RemoteFigures:
        """How tiered storage goes in an I/O process, as of the last second."""
        at = self._at[peer]
        return RemoteFigures(*[self._words[at + word] for word in _REMOTE_WORDS])

    def delayed(self, peer: Peer) -> tuple[int, int]:
        """Returns how many (Produce, Fetch) requests of this process's connections wait for an
        answer of partitions, as of the last second."""
        return divmod(self._words[self._at[peer] + _DELAYED], 1 << 32)

    def asleep(self, peer: Peer) -> bool:
        """It waits for its doorbell."""
        return self._words[self._at[peer] + ASLEEP] != 0

    def accused(self, peer: Peer) -> tuple[Peer, int] | None:
        """The (peer, generation) that this process says has broken their ring."""
        row, generation = divmod(self._words[self._at[peer] + _ACCUSED], 1 << 32)
        return (self.peers[row - 1], generation) if 0 < row <= len(self.peers) else None

    # One row, written by its process --------------------------------------------------------------

    def set_state(self, me: Peer, state: int) -> None:
        """The process in place `me` says what it does."""
        at = self._at[me]
        self._words[at + _PHASE] = self._words[at + _GENERATION] << 8 | state

    def forget_turns(self, peer: Peer) -> None:
        """Begin to look for the longest turn anew. For who measures: the one word with a second
        writer, where a turn that is lost to the race is no more than a turn not measured."""
        self._words[self._at[peer] + LONGEST_TURN] = 0

    def set_without_room(self, me: Peer, folders: int) -> None:
        """See `without_room`."""
        at = self._at[me] + _WITHOUT_ROOM
        self._words[at] += folders - self._words[at] % _MOVES

    def set_moving(self, me: Peer, *, moving: bool) -> None:
        """Writes whether this process moves partitions between log directories."""
        at = self._at[me] + _WITHOUT_ROOM
        self._words[at] = self._words[at] % _MOVES + _MOVES * moving

    def set_loading(self, me: Peer, coordinators: int) -> None:
        """See `loading`."""
        self._words[self._at[me] + _LOADING] = coordinators

    def count_flush(self, me: Peer, took_ns: int) -> None:
        """See `flushes`."""
        at = self._at[me]
        self._words[at + _FLUSHES] += 1
        self._words[at + _FLUSH_NS] += took_ns

    def set_remote_figures(self, me: Peer, figures: RemoteFigures) -> None:
        """See `remote_figures`."""
        at = self._at[me]
        for word, value in zip(_REMOTE_WORDS, figures, strict=True):
            self._words[at + word] = value

    def set_delayed(self, me: Peer, produces: int, fetches: int) -> None:
        """See `delayed`."""
        assert 0 <= produces < 1 << 31 and 0 <= fetches < 1 << 32
        self._words[self._at[me] + _DELAYED] = produces << 32 | fetches

    def set_isolated(self, me: Peer, since_ms: int) -> None:
        """See `isolated_ms`."""
        self._words[self._at[me] + _ISOLATED] = since_ms

    def set_unvoted(self, unvoted: bool) -> None:
        """Control: see `unvoted`."""
        self._words[self._at[Peer(CONTROL, 0)] + _UNVOTED] = unvoted

    def set_applied(self, me: Peer, offset: int) -> None:
        """Metadata records below `offset` have been replayed."""
        self._words[self._at[me] + _APPLIED] = offset

    def confirm(self, me: Peer, epoch: int) -> None:
        """Every ring of a peer that was down at `epoch` has been let go."""
        self._words[self._at[me] + _CONFIRMED] = epoch

    def set_asleep(self, me: Peer, asleep: bool) -> None:
        """Writes whether `me` sleeps: then a publisher rings its doorbell."""
        self._words[self._at[me] + ASLEEP] = asleep

    def accuse(self, me: Peer, peer: Peer, generation: int) -> None:
        """The ring from `peer` is broken; the supervisor replaces that process."""
        row = self.peers.index(peer) + 1
        self._words[self._at[me] + _ACCUSED] = row << 32 | generation

    # Written by the supervisor --------------------------------------------------------------------

    def move_epoch(self) -> int:
        """Rows have changed: let everybody look. Returns the new epoch."""
        epoch = max(self._words[EPOCH] + 1, FIRST_EPOCH)
        self._words[EPOCH] = epoch
        return epoch

    def occupy(self, peer: Peer) -> int:
        """A new process is about to take this place: its generation. Its own words start at
        zero, but it goes on counting the turns of the place."""
        at = self._at[peer]
        words = self._words
        assert not words[at + _ALIVE], "the place is taken"
        words[at + _GENERATION] += 1
        for word in range(_PHASE, _LOADING + 1):
            if word != HEARTBEAT:
                words[at + word] = 0
        words[at + _ALIVE] = 1
        return words[at + _GENERATION]

    def set_pid(self, peer: Peer, pid: int) -> None:
        """The process that fills the place."""
        self._words[self._at[peer] + _PID] = pid

    def vacate(self, peer: Peer) -> None:
        """The process of this place is dead."""
        at = self._at[peer]
        self._words[at + _ALIVE] = 0
        self._words[at + _PID] = 0

    def set_cluster_ready(self, ready: bool) -> None:
        """See `cluster_ready`."""
        self._words[_CLUSTER_READY] = ready

    def set_drain(self, stage: int) -> None:
        """See `drain`."""
        self._words[DRAIN] = stage

    def set_leaving(self, leaving: bool) -> None:
        """See `leaving`."""
        self._words[_LEAVING] = leaving

    def settings_changed(self) -> None:
        """See `settings`."""
        self._words[_SETTINGS] += 1

    def set_was_clean(self, clean: bool) -> None:
        """See `was_clean`."""
        self._words[_WAS_CLEAN] = clean
