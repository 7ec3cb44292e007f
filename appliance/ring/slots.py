"""The meaning of a slot's numbers for each operation: no other room knows them by their letters.

`read_…` makes a named view of a message: the same tuple under the operation's names. `pack_…`
returns the arguments of `RingWriter.push`, or of `push_with_payload` where the operation carries
bytes. Each batch and each fetch has messages of its own, and calls count there
(`tests/tidy/test_calls.py`): `unpack_…` takes their numbers in one call of C, and whoever sends
them writes them in place, in the order of `push`.
"""

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any, Final, TypeVar, cast

from appliance.ring.messages import (
    ASSIGN,
    CANCEL,
    DELETED,
    ENSURE_TOPIC,
    EPOCH_ENDED,
    FOLDER_FAILED,
    FORWARD,
    ISR_REFUSED,
    KNOWS,
    LISTED,
    PRODUCER_ID_BLOCK,
    PRODUCER_IDS,
    SPENT,
    Message,
)

Slot = tuple[int, ...]
"""op, flags, handle, token, then numbers in the order of `push`, or of `push_with_payload`."""
_View = TypeVar("_View", bound=Message)


def _field(letter: str) -> int:
    """A field of a view: the slot's number of this letter, under another name."""
    return cast(int, property(itemgetter(Message._fields.index(letter))))


def _unpacker(fields: str) -> Callable[[Message], tuple[int, ...]]:
    pick: Any = itemgetter(*map(Message._fields.index, fields.split()))
    return cast(Callable[[Message], tuple[int, ...]], pick)


def _reader(view: type[_View]) -> Callable[[Message], _View]:
    make: Any = partial(tuple.__new__, view)
    return cast(Callable[[Message], _View], make)


# netproc → ioproc ---------------------------------------------------------------------------------


class ListOffsetMessage(Message):
    __slots__ = ()
    timestamp = _field("a")
    leader_epoch = _field("b")


class MoveMessage(Message):
    """folder: number of the log folder."""

    __slots__ = ()
    folder = _field("a")


class KnowsMessage(Message):
    __slots__ = ()
    producer_id = _field("a")


# ioproc → netproc ---------------------------------------------------------------------------------


class UnverifiedMessage(Message):
    __slots__ = ()
    guard = _field("a")


class ListedMessage(Message):
    """timestamp: ms."""

    __slots__ = ()
    timestamp = _field("a")
    offset = _field("b")
    leader_epoch = _field("c")


class EpochEndedMessage(Message):
    """end_offset, leader_epoch: -1 when the epoch is not known."""

    __slots__ = ()
    end_offset = _field("a")
    leader_epoch = _field("b")


class DeletedMessage(Message):
    __slots__ = ()
    low_watermark = _field("a")


class SpentMessage(Message):
    """spent_ns: the ioproc's time for the request."""

    __slots__ = ()
    spent_ns = _field("a")


# ioproc → control, and back -----------------------------------------------------------------------


class FolderMessage(Message):
    """An ASSIGN or a FOLDER_FAILED. folder: number of the log folder, -1: the partition is lost."""

    __slots__ = ()
    folder = _field("a")


class IdBlockMessage(Message):
    """A PRODUCER_ID_BLOCK. size: how many ids, 0 beside an error."""

    __slots__ = ()
    first = _field("a")
    size = _field("e")


class IsrRefusedMessage(Message):
    """partition_epoch: of the proposal."""

    __slots__ = ()
    partition_epoch = _field("a")


# netproc → control, and back ----------------------------------------------------------------------


class ForwardMessage(Message):
    """position, length: of the request in the netproc's arena, from its header on. api: key << 16 |
    version."""

    __slots__ = ()
    position = _field("a")
    api = _field("b")
    length = _field("e")


class EnsureTopicMessage(Message):
    """asked_before: 1 when the client is a consumer that was asking for the topic when it was
    deleted. named: bytes of the caller at the start of the payload."""

    __slots__ = ()
    asked_before = _field("a")
    named = _field("e")


read_list_offset: Final = _reader(ListOffsetMessage)
read_move: Final = _reader(MoveMessage)
read_knows: Final = _reader(KnowsMessage)
read_unverified: Final = _reader(UnverifiedMessage)
read_listed: Final = _reader(ListedMessage)
read_epoch_ended: Final = _reader(EpochEndedMessage)
read_deleted: Final = _reader(DeletedMessage)
read_spent: Final = _reader(SpentMessage)
read_folder: Final = _reader(FolderMessage)
read_id_block: Final = _reader(IdBlockMessage)
read_isr_refused: Final = _reader(IsrRefusedMessage)
read_forward: Final = _reader(ForwardMessage)
read_ensure_topic: Final = _reader(EnsureTopicMessage)

# Of each batch and each fetch ---------------------------------------------------------------------

unpack_append: Final = _unpacker("flags handle token a b e f")
"""APPEND: flags, handle and token, then position in the asking netproc's arena, guard, length in
bytes, acks."""
unpack_read: Final = _unpacker("flags token a b e f")
"""READ: flags and token, then offset, leader epoch, max bytes, and bytes that must be there before
a parked read is answered."""
unpack_replica_read: Final = _unpacker("flags token a b h i e f")
"""READ of another replica: as `unpack_read`, before max bytes its node id and the high watermark
that it knows."""
unpack_mark: Final = _unpacker("flags handle token a b e f")
"""MARK: flags, handle and token, then producer id, epoch of the coordinator, epoch of the producer,
transaction.version."""
unpack_coordinate: Final = _unpacker("a b e")
"""COORDINATE: 1 while more pieces follow, API key << 16 | version, bytes of the caller at the start
of the first piece."""
unpack_appended: Final = _unpacker("a b c g h")
"""APPENDED: base offset, log append time in ms or -1, log start offset, when it was taken and since
when it has waited (monotonic ns, 0: not)."""
unpack_found: Final = _unpacker("a b c d g e f i j")
"""FOUND: high watermark, last stable offset, log start offset, base offset of the segment, position
in its file, length and length of the first batch in bytes, layout, and who has something else: 1
for a replica that diverges, whose epoch and end stand for base offset and position; node id + 1 of
the replica that a consumer reads from."""
answer_goes_on: Final = itemgetter(Message._fields.index("a"))
"""ANSWERED: 1 while more pieces follow."""

# Made here ----------------------------------------------------------------------------------------


def make_message(op: int, token: int = 0, payload: bytes = b"") -> Message:
    """A completion without an error and without numbers, as if a ring had brought it."""
    return Message(op, 1, 0, token, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, payload)


# Packers ------------------------------------------------------------------------------------------


def pack_assign(handle: int, folder: int) -> Slot:
    """ASSIGN. folder: -1 for a partition that is lost."""
    return ASSIGN, 0, handle, 0, folder


def pack_folder_failed(folder: int) -> Slot:
    """FOLDER_FAILED."""
    return FOLDER_FAILED, 0, 0, 0, folder


def pack_producer_ids() -> Slot:
    """PRODUCER_IDS."""
    return PRODUCER_IDS, 0, 0, 0


def pack_id_block(code: int, first: int, size: int) -> Slot:
    """PRODUCER_ID_BLOCK. size: how many ids, 0 beside an error code."""
    return PRODUCER_ID_BLOCK, code + 1, 0, 0, first, 0, 0, 0, 0, 0, 0, 0, size


def pack_isr_refused(handle: int, code: int, partition_epoch: int) -> Slot:
    """ISR_REFUSED. partition_epoch: of the proposal."""
    return ISR_REFUSED, code + 1, handle, 0, partition_epoch


def pack_knows(handle: int, token: int, producer_id: int) -> Slot:
    """KNOWS."""
    return KNOWS, 0, handle, token, producer_id


def pack_cancel(token: int) -> Slot:
    """CANCEL."""
    return CANCEL, 0, 0, token


def pack_listed(handle: int, token: int, timestamp: int, offset: int, leader_epoch: int) -> Slot:
    """LISTED. timestamp: ms."""
    return LISTED, 1, handle, token, timestamp, offset, leader_epoch


def pack_epoch_ended(handle: int, token: int, end_offset: int, leader_epoch: int) -> Slot:
    """EPOCH_ENDED."""
    return EPOCH_ENDED, 1, handle, token, end_offset, leader_epoch


def pack_deleted(handle: int, token: int, low_watermark: int) -> Slot:
    """DELETED."""
    return DELETED, 1, handle, token, low_watermark


def pack_spent(token: int, spent_ns: int) -> Slot:
    """SPENT."""
    return SPENT, 1, 0, token, spent_ns


def pack_forward(token: int, position: int, api: int, length: int) -> Slot:
    """FORWARD, whose payload is the caller."""
    return FORWARD, 0, 0, token, position, api, length


def pack_ensure_topic(token: int, asked_before: int, named: int) -> Slot:
    """ENSURE_TOPIC, whose payload is the caller, of so many bytes, and the name."""
    return ENSURE_TOPIC, 0, 0, token, asked_before, 0, named
