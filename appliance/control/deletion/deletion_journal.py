"""No topic goes before this node has noted it, whoever decided that it goes: this node, which then
appends the record behind the note, or another one, whose record is replayed behind it.

Invariant: there is one note at a time on its way to the disk, on a thread; what expires and what
must make room is this node's own matter, whether it leads or not, once it knows what was agreed.
Called by `shell.py`.
"""

from collections.abc import Callable, Sequence
from typing import Final

from appliance.config.broker import BrokerConfig
from appliance.control.deletion.deletion_barrier import DecidedBatch
from appliance.control.deletion.topic_trash import TopicTrash
from appliance.control.folder.startup import Started
from appliance.control.threads import InterruptibleThreads
from appliance.metadata import effective
from appliance.metadata.image import MetadataImage
from appliance.metadata.trash import RETENTION_MS
from appliance.shell.log import Log
from appliance.shell.seat import Seat
from appliance.wire import kraft_records as kraft

NOTE: Final = 2
"""The kind of its jobs among control's."""


class Burying:
    """trash: what is noted. level: whether this node has had all that was agreed at its start.
    writing: a note is on its way."""

    def __init__(
        self,
        seat: Seat,
        started: Started,
        threads: InterruptibleThreads,
        level: Callable[[], bool],
        log: Log,
    ) -> None:
        self._config = seat.config
        self._quorum = started.quorum
        self._rows = started.rows
        self._clock = started.clock
        self._threads = threads
        self._level = level
        self.writing = False
        self.trash = TopicTrash(
            started.disk,
            seat.log_dirs,
            started.identity.node_id,
            started.rows.everyone_has,
            log,
            seat.config.several,
            lambda: started.clock.monotonic_ns() // 1_000_000,
        )
        started.quorum.deletions.notice = self._notice

    def before(self, records: Sequence[object], now_ms: int) -> int:
        """These are about to be appended here: the note that must be on the disk before, or 0."""
        if not any(isinstance(one, kraft.TopicRecord | kraft.RemoveTopicRecord) for one in records):
            return 0
        image = self._quorum.image
        end = image.applied_offset + 1 + len(records)
        settings, sizes = self._settings(image), self._rows.size
        return self.trash.before(records, image, settings, sizes, now_ms, end=end)

    def _notice(self, decided: DecidedBatch, image: MetadataImage) -> int:
        """Another node has decided this: now, or, as far as this one knows no better, before it
        began. Then nobody here has seen it, and one note for all of that is soon enough."""
        now_ms, settings = self._clock.wall_ms(), self._settings(image)
        at_ms = now_ms if self._level() else min(decided.at_ms, now_ms)
        if at_ms < now_ms and at_ms + settings.int(RETENTION_MS) <= now_ms:
            return 0
        sizes, end = self._rows.size, decided.end
        note = self.trash.before(decided.records, image, settings, sizes, at_ms, end=end)
        return note if self._level() else 0

    @property
    def unwritten(self) -> bool:
        """True if a journalled deletion is not on the disk yet."""
        return self.writing or self.trash.unwritten

    def begin_note(self) -> bool:
        """Write the next note; whether there is one."""
        if self.writing or (note := self.trash.job()) is None:
            return False
        self.writing = True
        self._threads.submit((NOTE, note[0]), note[1])
        return True

    def wrote(self, note: int, failure: Exception | None) -> None:
        """The job has ended."""
        self.writing = False
        self.trash.wrote(note, failure)

    def drop_expired(self, now_ms: int) -> bool:
        """Now and then: let go of what is over. Whether a note was begun."""
        if self._level() and self.trash.due(now_ms):
            quorum = self._quorum
            self.trash.tick(quorum.image, self._settings(quorum.image), quorum.replayed_end, now_ms)
        return self.begin_note()

    def blocked_ms(self, name: str) -> int:
        """For how long the name must not be created by who goes on asking for it."""
        now_ms, image = self._clock.wall_ms(), self._quorum.image
        return self.trash.blocked_ms(name, lambda: self._settings(image), now_ms)

    def _settings(self, image: MetadataImage) -> BrokerConfig:
        """Those of the file with what was set while we run on top."""
        return effective.broker_config(image, self._config)
