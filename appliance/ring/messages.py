"""Ring messages: one fixed slot per message, integers only, never bytes and never a view.

A slot is 96 bytes. Every operation uses the same fields, so one precompiled Struct packs them all;
what a field means is said beside the operation. Bytes are named by their place in the sender's
arena (position, length). A message that must carry bytes of its own (an encoded answer, say) puts
them in the payload area of its ring and is popped with a copy of them as `payload`; its i and j
belong to the ring.

Fields of a slot, native byte order:
    sequence  u64   set by the ring: generation << 48 | index; only the expected one is accepted
    op        u16   one of the operations below
    flags     u16   bits of the operation; in a completion: the Kafka error code + 1 (so -1 fits)
    handle    u32   row of the partition table
    token     u64   chosen by whoever asks, returned as it came
    a … h     i64   eight numbers
    e, f      i32   two more: mostly a length and a limit
"""

from struct import Struct
from typing import Final, NamedTuple

from appliance.ring.process_table import CONTROL, IOPROC, NETPROC

SLOT: Final = Struct("<QHHIQqqqqqqqqii")
SLOT_SIZE: Final = 96
assert SLOT.size == SLOT_SIZE

# netproc → ioproc ---------------------------------------------------------------------------------

APPEND: Final = 1
"""Append one record batch. a: position in the asking netproc's arena, e: length in bytes, f: acks
(-1, 0, 1), b: the guard of a batch that was verified, else 0. flags: TRANSACTIONAL when it may be
of a transaction, with ADDS when verifying it adds the partition to that, with TRUSTED when it need
not be verified; OLD_SET when it may be a message set of format 0 or 1. Always answered by APPENDED,
also for acks=0 (the netproc must learn when the bytes are free), or by UNVERIFIED."""

READ: Final = 2
"""Find the bytes at an offset. a: fetch offset, b: current leader epoch of the client (-1: none),
e: max bytes, f: bytes that must be there before a parked read is answered, flags: READ_WAIT parks
the read until there is something to answer; READ_COMMITTED stops at the last stable offset;
READ_GONE: the file that was named last for this offset could not be opened, so look whether it is
there; ANY_REPLICA: a follower answers, too; READ_NEAREST: the nodes c, d, g and h (-1: no more)
stand nearer to the consumer, which may read from them instead; READ_REPLICA: another replica reads
up to the log end, and has what lies below a; c: leader epoch of the last record that it has (-1:
not told), d: its log start offset, g: its broker epoch (-1: not told), h: its node id, i: a parked
read is answered, too, when the high watermark is that or higher (0: that is no reason). The first
batch is always returned whole, however big. Answered by FOUND."""

CANCEL: Final = 3
"""Forget the parked reads whose token >> 32 equals this token >> 32. Not answered. To control: what
this token asks need not be decided, if it is not yet: its client is gone. Then it is answered."""

LIST_OFFSET: Final = 4
"""Offset for a timestamp. a: timestamp in ms or -1 latest, -2 earliest, -3 max timestamp, -4
earliest local, -5 latest tiered, b: current leader epoch (-1: none), flags: READ_COMMITTED.
READ_REPLICA: another replica asks, for which the latest one is the log end; ANY_REPLICA: a follower
answers, too. Answered by LISTED."""

EPOCH_END: Final = 5
"""End offset of a leader epoch (OffsetForLeaderEpoch, KIP-101/279). a: epoch asked for,
b: current leader epoch (-1: none). Answered by EPOCH_ENDED."""

DELETE_RECORDS: Final = 6
"""Advance the log start offset. a: offset, -1 for the high watermark. Answered by DELETED."""

COORDINATE: Final = 7
"""A request for the groups of one partition of `__consumer_offsets`; handle: its row. a: 1 when
more pieces of the request follow, b: API key << 16 | version, e: length of the caller at the start
of the first piece, 0 in later ones. Payload: a piece of the caller (`base/caller.py`) and the
request body (header excluded). Answered by ANSWERED, for which JoinGroup and SyncGroup may wait
long: that is why nothing here lies in the arena. A request that writes within a transaction may be
answered by UNVERIFIED; it comes again with flags: error code of the transaction's coordinator + 1,
and the guard (GUARD) before the body."""

MOVE: Final = 8
"""Move the partition to another log folder. a: its number. Answered by MOVED at once; the move goes
on (`ioproc/log_folders/alter_log_dirs.py`)."""

MARK: Final = 9
"""End a producer's transaction in the partition by a marker (also ioproc → ioproc: from who
coordinates it). a: producer id, b: epoch of the coordinator, e: epoch of the producer, f:
transaction.version to check them by, flags: MARK_COMMIT, else it is aborted. Answered by APPENDED
when the marker is below the high watermark; one that is there already is not written again."""

DESCRIBE_PRODUCERS: Final = 10
"""Who has written to the partition with a producer id. Answered by PRODUCERS_TOLD."""

KNOWS: Final = 11
"""Does a coordinator here know a transaction that is open in the partition (ioproc → ioproc)? a:
producer id. Answered by KNOWN."""

WATCH: Final = 12
"""Tell once when any of many partitions has something new (a fetch that waits for more of them than
are worth a parked READ each). handle: of the first of them. Payload: WATCHED for each, handle << 32
| the lowest 32 bits of the version of its row at which there was nothing. flags: what is new, any
of WATCH_VISIBLE (the high watermark is another), WATCH_STABLE (the last stable offset),
WATCH_WRITTEN (the log end); where a partition is served, and by whom, always is. Ended by CANCEL,
as reads are; answered by NEWS."""

TRANSACTIONAL: Final = 1
ADDS: Final = 2
TRUSTED: Final = 4
OLD_SET: Final = 8

GUARD: Final = Struct("<q")
NO_GUARD: Final = 0
TRUSTED_GUARD: Final = -1
"""Of a request that need not be verified."""

READ_WAIT: Final = 1
READ_COMMITTED: Final = 2
READ_GONE: Final = 4
READ_REPLICA: Final = 8
ANY_REPLICA: Final = 16
READ_NEAREST: Final = 32

MARK_COMMIT: Final = 1

WATCHED: Final = "Q"
"""As `struct` says it, in native byte order."""
WATCHED_BYTES: Final = 8
WATCH_VISIBLE: Final = 1
WATCH_STABLE: Final = 2
WATCH_WRITTEN: Final = 4

# ioproc → netproc, all with flags = error code + 1 ------------------------------------------------

APPENDED: Final = 33
"""a: base offset, b: log append time in ms or -1, c: log start offset, also beside what the batch
was refused for, d: current leader epoch, g: when the I/O process took it (monotonic ns), 0 beside
an error, h: since when it has waited for a sync or for replicas, 0: it did not."""

UNVERIFIED: Final = 40
"""Nothing was appended: the producer's transaction is not known to be open in this partition. a: a
guard. Once the coordinator has said that the partition belongs to the transaction, the same APPEND
with the guard is taken, unless the transaction has ended since."""

FOUND: Final = 34
"""a: high watermark, b: last stable offset, c: log start offset, d: base offset of the segment, g:
position in the segment file, e: length in bytes (0: nothing there), f: length of the first batch,
h: current leader epoch, i: layout of the segments for which d and g hold, j: 1 when what a replica
has is not what lies here: then d is an epoch that both may have, and g where that ends here
(KIP-595). To a consumer: node id + 1 of the replica to read from, 0: this one (KIP-392). i < 0: of
a remote segment (KIP-405): REMOTE_COMES, and nothing yet; else -i is the number of a file in the
home's cache, and g a position in it."""

REMOTE_COMES: Final = -1
"""Instead of a layout: the bytes are on their way from the remote store."""

ABORTED: Final = 39
"""Goes before the FOUND of a READ_COMMITTED read, as often as it takes: aborted transactions that
have records in the range. Payload: as `wire/aborted.py` says."""

PRODUCERS: Final = 41
"""Goes before PRODUCERS_TOLD, as often as it takes. Payload: as `wire/producers.py` says."""

PRODUCERS_TOLD: Final = 42
"""Those were all."""

KNOWN: Final = 43
"""flags: NONE when nobody here knows it, CONCURRENT_TRANSACTIONS when it is going to end there,
COORDINATOR_LOAD_IN_PROGRESS: ask again."""

NEWS: Final = 44
"""Something moved in a partition that was watched: its row is another by now. None is: one of them
is not open here (yet). flags: THROTTLING_QUOTA_EXCEEDED when so much is watched already that this
is not."""

SPENT: Final = 45
"""Goes before an answer while some client has a quota on its requests. a: ns that this process has
spent for the request."""

LISTED: Final = 35
"""a: timestamp in ms, b: offset, c: leader epoch."""

EPOCH_ENDED: Final = 36
"""a: end offset or -1, b: the epoch it belongs to or -1."""

DELETED: Final = 37
"""a: the new low watermark (log start offset)."""

MOVED: Final = 38
"""The move has begun, or need not begin."""

# ioproc → control ---------------------------------------------------------------------------------

ASSIGN: Final = 67
"""The partition is about to lie in log folder a (-1: it is lost): control sees to it that this is
written down, which is the answer."""

PRODUCER_IDS: Final = 68
"""A block of producer ids, for the transaction coordinators here. Answered by PRODUCER_ID_BLOCK."""

ISR_CHANGE: Final = 69
"""The leader of a partition proposes its in-sync replicas anew. handle: its row. Payload: as
`replication/isr_change.py` says. What the metadata says then is the answer; when the controller
says that this was not done and will not be, ISR_REFUSED is. Without either it comes again."""

FOLDER_FAILED: Final = 70
"""Log folder a takes no file any more: control tells the controller, and the metadata is the
answer; or it ends, when that is the folder of the metadata."""

# netproc → control --------------------------------------------------------------------------------

FORWARD: Final = 65
"""A whole request for control to answer. a: position in the netproc's arena, e: length (from the
request header on, without the 4-byte frame length), b: API key << 16 | version. Payload: the caller
(`base/caller.py`). Answered by ANSWERED."""

ENSURE_TOPIC: Final = 66
"""Create a topic as broker defaults say because a client asked for it (auto.create.topics.enable).
a: 1 when the client is a consumer that was asking for the topic when it was deleted, e: length of
the caller. Payload: the caller (`base/caller.py`), then the name. Answered by ANSWERED with flags
and the name."""

# control and ioproc → netproc ---------------------------------------------------------------------

ANSWERED: Final = 97
"""flags: error code + 1, a: 1 when more pieces follow. Payload: a piece of the encoded response
body (header excluded)."""

# control → ioproc ---------------------------------------------------------------------------------

PRODUCER_ID_BLOCK: Final = 98
"""flags: error code + 1, a: the first id, e: how many there are (0 beside an error: ask again)."""

ISR_REFUSED: Final = 99
"""What ISR_CHANGE proposed was not applied and never will be: the controller answered with
INELIGIBLE_REPLICA or OPERATION_NOT_ATTEMPTED. handle: the partition's row, a: the partition epoch
of the proposal, flags: error code + 1."""

# What a ring checks -------------------------------------------------------------------------------

OPERATIONS: Final = frozenset(
    (
        *(APPEND, READ, CANCEL, LIST_OFFSET, EPOCH_END, DELETE_RECORDS, COORDINATE, MOVE, MARK),
        *(DESCRIBE_PRODUCERS, PRODUCERS, PRODUCERS_TOLD, KNOWS, KNOWN, WATCH, NEWS, SPENT),
        *(FORWARD, ENSURE_TOPIC, ASSIGN, PRODUCER_IDS, PRODUCER_ID_BLOCK, ISR_CHANGE, ISR_REFUSED),
        FOLDER_FAILED,
        *(APPENDED, UNVERIFIED, FOUND, ABORTED, LISTED, EPOCH_ENDED, DELETED, MOVED, ANSWERED),
    )
)
CARRIES: Final = frozenset((ABORTED, PRODUCERS))
"""Completions that carry bytes and are followed by another one with the same token."""
GOES_BEFORE: Final = CARRIES | {SPENT}
"""Completions that are followed by another one with the same token."""
WITH_PAYLOAD: Final = (
    frozenset((COORDINATE, FORWARD, ENSURE_TOPIC, ANSWERED, ISR_CHANGE, WATCH)) | CARRIES
)
WITH_ARENA: Final = frozenset((APPEND, FORWARD))
"""Operations whose a and e name bytes of the sender's arena."""

_FLAGS: Final = frozenset(
    (
        *("TRANSACTIONAL", "ADDS", "TRUSTED", "MARK_COMMIT"),
        *("READ_WAIT", "READ_COMMITTED", "READ_GONE", "READ_REPLICA"),
        *("ANY_REPLICA", "READ_NEAREST"),
        *("WATCH_VISIBLE", "WATCH_STABLE", "WATCH_WRITTEN", "WATCHED_BYTES"),
    )
)
NAMES: Final = {
    value: name
    for name, value in list(globals().items())
    if name.isupper() and value in OPERATIONS and name not in _FLAGS
}

SENT: Final = {
    (NETPROC, IOPROC): frozenset(
        (APPEND, READ, CANCEL, LIST_OFFSET, EPOCH_END, DELETE_RECORDS, COORDINATE, MOVE, MARK,
         DESCRIBE_PRODUCERS, WATCH)
    ),
    (IOPROC, NETPROC): frozenset(
        (APPENDED, UNVERIFIED, FOUND, ABORTED, PRODUCERS, PRODUCERS_TOLD, NEWS, SPENT, LISTED,
         EPOCH_ENDED, DELETED, MOVED, ANSWERED)
    ),
    (IOPROC, IOPROC): frozenset((MARK, APPENDED, KNOWS, KNOWN)),
    (IOPROC, CONTROL): frozenset((ASSIGN, PRODUCER_IDS, ISR_CHANGE, FOLDER_FAILED)),
    (NETPROC, CONTROL): frozenset((FORWARD, ENSURE_TOPIC, CANCEL)),
    (CONTROL, NETPROC): frozenset((ANSWERED,)),
    (CONTROL, IOPROC): frozenset((PRODUCER_ID_BLOCK, ISR_REFUSED)),
}  # fmt: skip
"""Operations by the kinds of the process that sends them and of the one that gets them. Another
operation breaks the ring: a netproc that was taken over answers no marker in an ioproc's name."""


class Message(NamedTuple):
    """One popped slot without its sequence: fields as above, then the bytes it carried."""

    op: int
    flags: int
    handle: int
    token: int
    a: int
    b: int
    c: int
    d: int
    g: int
    h: int
    i: int
    j: int
    e: int
    f: int
    payload: bytes = b""
