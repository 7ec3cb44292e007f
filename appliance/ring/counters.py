"""Counters of requests, responses and errors in shared memory without locks.

Every process has a region of its own in which it alone writes; a reader sums over the regions. A
count is one aligned 8-byte store (x86-64: seen whole, old or new), so nothing is locked and nothing
is torn. A process that is killed between two stores has counted a request in some of its words and
not in the others; its successor goes on adding to the same region, so no count ever goes back while
the appliance runs.

    every process   errors: how many of each code, by API key
    each netproc    answers: bytes in, bytes out and a histogram of latencies, by API key, and
                    coarse ones of the stages of a request, Fetch of followers apart

What is counted of a partition stands in its row of the partition table. Pages that nobody touched
take no memory: an API key takes three of 4 KiB at the netproc that answers it, the rest of a table
nothing. Readers therefore look only where a total says that there is something: even a read of an
untouched page of shared memory makes the page.
"""

from collections.abc import Iterator
from typing import Final

from appliance.ring.histogram import (
    BUCKETS,
    COARSE,
    COARSE_BUCKETS,
    EXACT,
    LONGEST_US,
    coarse_bucket_of,
)

API_KEYS: Final = 96
"""Kafka's keys below this one are counted; those in use end at 92."""
CODES: Final = 136
"""Error codes -1 … 134."""

STAGES: Final = 5
TOTAL, QUEUE, LOCAL, REMOTE, SEND = range(STAGES)
"""Stages of a request, and all of them but SEND together. SEND counts only what did not go out in
the turn that began to send it."""
FOLLOWER_FETCH: Final = API_KEYS - 1
"""Stands among the stages for Fetch of other replicas; key 1 is that of consumers."""

_ERROR_WORDS: Final = API_KEYS * (1 + CODES)  # a total of each key, then the codes of each
_TRAFFIC: Final = 2
_BYTES_IN: Final = 0
_BYTES_OUT: Final = 1
_STAGES_AT: Final = API_KEYS * (_TRAFFIC + BUCKETS)
_STAGE_WORDS: Final = STAGES * COARSE_BUCKETS
_ANSWER_WORDS: Final = _STAGES_AT + API_KEYS * _STAGE_WORDS

_EXACT_BITS: Final = EXACT.bit_length()
_LAST: Final = BUCKETS - 1
_COARSE_BITS: Final = COARSE.bit_length()
_COARSE_LAST: Final = COARSE_BUCKETS - 1

assert _ERROR_WORDS % 8 == _ANSWER_WORDS % 8 == 0, "regions begin at cache lines"


class ErrorCounts:
    """The errors that one process told its peers. Written by that process."""

    __slots__ = ("_words",)

    def __init__(self, words: memoryview) -> None:
        self._words = words

    def failed(self, key: int, code: int, times: int = 1) -> None:
        """An answer to `key` tells of this error: once for each partition, group, … that has it."""
        assert 0 <= key < API_KEYS and -1 <= code < CODES - 1 and code and times > 0
        words = self._words
        words[API_KEYS + key * CODES + code + 1] += times
        words[key] += times

    def of(self, key: int) -> dict[int, int]:
        """Code → how many, for one key."""
        words = self._words
        if not words[key]:
            return {}
        begin = API_KEYS + key * CODES
        counts = words[begin : begin + CODES].tolist()
        return {number - 1: count for number, count in enumerate(counts) if count}


class AnswerCounts:
    """Response counters of one netproc. Written by that netproc."""

    __slots__ = ("_words",)

    def __init__(self, words: memoryview) -> None:
        self._words = words

    def answered(
        self,
        key: int,
        received: int,
        sent: int,
        took_ns: int,
        row: int = -1,
        now_ns: int = 0,
        taken_ns: int = 0,
        waits_ns: int = 0,
    ) -> None:
        """One request of `key` was answered. received, sent: bytes on the wire, frames and all.
        row: where its stages are counted, FOLLOWER_FETCH or, -1, the key. now_ns: its end.
        taken_ns: when it left a queue, waits_ns: since when it waited for others, 0: it did not."""
        words = self._words
        at = key * _TRAFFIC
        words[at] += received
        words[at + _BYTES_OUT] += sent
        us = took_ns // 1000
        if us < EXACT:
            bucket = us if us > 0 else 0
        elif us < LONGEST_US:
            shift = us.bit_length() - _EXACT_BITS
            bucket = shift * EXACT + (us >> shift)
        else:
            bucket = _LAST
        words[API_KEYS * _TRAFFIC + key * BUCKETS + bucket] += 1
        at = _STAGES_AT + (key if row < 0 else row) * _STAGE_WORDS
        queue_ns = max(0, took_ns - now_ns + taken_ns) if taken_ns else 0
        remote_ns = now_ns - waits_ns if waits_ns else 0
        for stage_ns in (took_ns, queue_ns, took_ns - queue_ns - remote_ns, remote_ns):
            us = stage_ns // 1000
            if us >= LONGEST_US:
                words[at + _COARSE_LAST] += 1
            elif us >= COARSE:
                shift = us.bit_length() - _COARSE_BITS
                words[at + shift * COARSE + (us >> shift)] += 1
            else:
                words[at + us if us > 0 else at] += 1
            at += COARSE_BUCKETS

    def sent_late(self, row: int, took_ns: int) -> None:
        """The bytes of one answer did not go out in the turn that began to send them, but so long
        after it. row: as in `answered`, never -1."""
        at = _STAGES_AT + row * _STAGE_WORDS + SEND * COARSE_BUCKETS
        self._words[at + coarse_bucket_of(took_ns // 1000)] += 1

    def stages(self, row: int) -> list[list[int]]:
        """A coarse histogram (`histogram.COARSE`) for each of the STAGES. row: as there."""
        at = _STAGES_AT + row * _STAGE_WORDS
        words = self._words[at : at + _STAGE_WORDS].tolist()
        return [words[n : n + COARSE_BUCKETS] for n in range(0, _STAGE_WORDS, COARSE_BUCKETS)]

    def traffic(self, key: int) -> tuple[int, int]:
        """Bytes in and out of one key; (0, 0): it was never asked."""
        at = key * _TRAFFIC
        return self._words[at + _BYTES_IN], self._words[at + _BYTES_OUT]

    def latencies(self, key: int) -> list[int]:
        """The histogram of one key; its sum is the number of requests."""
        at = API_KEYS * _TRAFFIC + key * BUCKETS
        counts: list[int] = self._words[at : at + BUCKETS].tolist()
        return counts


class Counters:
    """The whole table over `bytes_needed(...)` bytes, all zero at first. errors: one for each
    process, in the order of the process table. answers: one for each netproc."""

    __slots__ = ("answers", "errors")

    def __init__(self, memory: memoryview, *, ioprocs: int, netprocs: int) -> None:
        size = self.bytes_needed(ioprocs, netprocs)
        assert len(memory) >= size
        words = memory[:size].cast("q")
        split = (1 + ioprocs + netprocs) * _ERROR_WORDS
        self.errors = tuple(map(ErrorCounts, _cut(words[:split], _ERROR_WORDS)))
        self.answers = tuple(map(AnswerCounts, _cut(words[split:], _ANSWER_WORDS)))

    @staticmethod
    def bytes_needed(ioprocs: int, netprocs: int) -> int:
        """Size of the table's memory in bytes."""
        return ((1 + ioprocs + netprocs) * _ERROR_WORDS + netprocs * _ANSWER_WORDS) * 8


def _cut(words: memoryview, size: int) -> Iterator[memoryview]:
    return (words[at : at + size] for at in range(0, len(words), size))
