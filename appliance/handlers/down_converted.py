"""Answers to Fetch versions 0 to 3: records as message sets of format 0 or 1.

Batches are read from the segment one at a time and converted over several turns; bytes that are not
in memory are waited for. An answer is bounded by MOST_BYTES, or by one entry that is larger; what
is beyond goes with a later answer, and the partition that is served first is another one each time.
Versions 0 to 2 cut off what is beyond a partition's limit, by which a consumer sees that it must
ask for more; version 3 tells whole messages. Called by `k01_fetch.py`.
"""

from collections.abc import Callable, Generator
from typing import Final

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.handlers.exchange import Exchange, FileRange, Host, Steps
from appliance.handlers.fetch_sessions import SessionPartition
from appliance.wire import fetch
from appliance.wire.batch_header import HEADER_SIZE, MAGIC, MAGIC_AT, read_header
from appliance.wire.down_conversion import MessageSet

WAITING: Final = 0xFFFFFFFE
"""The index by which an exchange waits for the disk; that of its work is the next one."""
MOST_BYTES: Final = 1 << 20
"""Of the message sets of one answer."""

_Rows = list[tuple[int, fetch.PartitionData, FileRange | bytes | None]]
_FIRST_WITH_TIME: Final = 2
_PAUSE_NS: Final = 1_000_000
_PATIENCE: Final = 1000
"""Pauses after which a read waits for the disk."""


class Conversion:
    """The records of one answer on their way to message sets, which take their place in its rows.

    told: some are in the answer. failed: a partition has an error now. behind: where partitions
    (indices) go on of which nothing is told, though there was something: control batches.
    """

    __slots__ = ("_asked", "_host", "_misses", "_rows", "_steps", "_used", "_x", "behind",
                 "failed", "is_waiting", "told")  # fmt: skip

    def __init__(self, host: Host, x: Exchange, rows: _Rows, asked: list[SessionPartition]) -> None:
        self._host = host
        self._x = x
        self._rows = rows
        self._asked = asked
        self._used = 0
        self._misses = 0
        self.behind: dict[int, int] = {}
        self.told = self.failed = False
        self.is_waiting = False
        self._steps = self._convert()

    def run_steps(self) -> Steps:
        """Go on to the end, or until something is missing in memory (`is_waiting`)."""
        self.is_waiting = False
        for _ in self._steps:
            if self.is_waiting:
                return
            yield

    def _convert(self) -> Steps:
        rows, count = self._rows, len(self._rows)
        first = self._x.correlation_id % count if count else 0
        for number in (*range(first, count), *range(first)):
            index, data, records = rows[number]
            if records is None:
                continue
            assert isinstance(records, FileRange)
            partition = self._asked[index].partition
            made = self._new_set(partition.fetch_offset, partition.max_bytes)
            code = errors.NONE
            try:
                yield from self._add_batches(made, records)
            except PeerError as error:
                code = error.code
            except OSError:
                code = errors.KAFKA_STORAGE_ERROR
            if code and not made.out:
                self.failed = True
                data = fetch.PartitionData(data.topic, data.partition, code, -1, -1, -1, 0)
                rows[number] = index, data, None
            else:
                told = bytes(made.out)
                self._used += len(told)
                self.told = self.told or bool(told)
                rows[number] = index, data._replace(length=len(told)), told or None
                if not told and not made.is_full:
                    self.behind[index] = made.next_offset

    def _new_set(self, offset: int, limit: int) -> MessageSet:
        version = self._x.version
        limit = max(0, limit)

        def room_for(size: int) -> int:
            used = len(made.out)
            everything = self._used + used
            if everything and everything + size > MOST_BYTES:
                return 0
            if version >= fetch.FIRST_MAX_BYTES:
                return size if not everything or used + size <= limit else 0
            return min(size, limit - used)

        made = MessageSet(int(version >= _FIRST_WITH_TIME), offset, room_for)
        return made

    def _add_batches(self, made: MessageSet, records: FileRange) -> Steps:
        """The whole batches of that range."""
        at, end = records.position, records.position + records.length
        while end - at >= HEADER_SIZE and not made.is_full:
            head = yield from self._read(records, at, HEADER_SIZE)
            if len(head) < HEADER_SIZE or head[MAGIC_AT] != MAGIC:
                raise PeerError(errors.CORRUPT_MESSAGE, f"there is no batch at byte {at}")
            size = read_header(head).size
            if size < HEADER_SIZE:
                raise PeerError(errors.CORRUPT_MESSAGE, f"there is no batch at byte {at}")
            if at + size > end:
                return
            batch = yield from self._read(records, at, size)
            if len(batch) < size:
                raise PeerError(errors.CORRUPT_MESSAGE, f"the batch at byte {at} is cut off")
            yield from made.add_batch(batch)
            at += size
            yield

    def _read(self, records: FileRange, at: int, size: int) -> Generator[None, None, bytes]:
        """These bytes of the file, fewer at its end."""
        while True:
            patient = self._misses < _PATIENCE
            data = self._host.read_file(records.file, at, size, at_once=patient)
            if data is not None:
                self._misses = 0
                return data
            self._misses += 1
            self.is_waiting = True
            yield


def resume_conversion(
    host: Host, x: Exchange, conversion: Conversion, then: Callable[[], None]
) -> None:
    """Convert on, and call `then` at the end."""

    def finish_steps() -> None:
        if conversion.is_waiting:
            host.later(x, WAITING, _PAUSE_NS)
        else:
            then()

    host.work(x, conversion.run_steps(), finish_steps)
