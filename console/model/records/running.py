"""A search or a tail that runs in a thread of its own: begun, stopped, gone on with, looked at.

The thread alone touches the Scan; whoever shows it takes what was found from a buffer, and the last
Progress, which is a value. Nothing waits for whoever shows it: a tail's buffer is bounded and says
what fell out of it.
"""

import threading
import time
from collections import deque
from typing import Final

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.records.fetching import fetch, planned
from console.model.records.filters import Filter
from console.model.records.found import Found, found
from console.model.records.scan import Progress, Scan
from console.model.records.seeking import Key, Span

PAGE: Final = 500
"""Records found before somebody must say to go on."""
AT_A_LOOK: Final = 200
"""Records of a tail that are kept until somebody looks; a screen shows no more of them."""
PLANNING, RUNNING, STOPPED, FULL, DONE, FAILED = (
    "planning", "running", "stopped", "full", "done", "failed",
)  # fmt: skip


class Running:
    """A search for records of a topic. follows: it is a tail, which ends only when it is stopped.
    state: one of those above. failure: why it failed. progress: the last that is known. skipped:
    records that passed the filter and fell out of the buffer. passed: offsets that were not looked
    at, because they came faster than they can be."""

    def __init__(
        self, link: Link, topic: str, seek: str, filter_text: str = "", *, follows: bool = False
    ) -> None:
        """Raises Failure (USAGE) for a filter that is none."""
        self.topic = topic
        self.seek = seek
        self.filter = Filter(filter_text)
        self.follows = follows
        self.state = STOPPED
        self.failure: Failure | None = None
        self.progress = Progress()
        self.skipped = 0
        self.passed = 0
        self.heard_s = time.monotonic()
        self._link = link
        self._scan: Scan[Found] | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._buffer: deque[Found] = deque()
        self._behind: dict[Key, int] = {}

    @property
    def is_running(self) -> bool:
        """True while it is fetching."""
        return self.state in (PLANNING, RUNNING)

    def start_scan(self) -> None:
        """Begin, or go on from where it stopped; a full one may find as much again."""
        if self.is_running or self.state == DONE:
            return
        if self._thread is not None:
            self._thread.join()  # it has said its last word already
        if self._scan is not None and self._scan.is_full:
            self._scan.raise_limit()
        self.state, self.failure = PLANNING, None
        self.heard_s = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(
            target=self._work, args=(self._over,), name=f"search {self.topic}", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Fetch no more; it can go on."""
        self._over.set()

    def go_to_the_end(self) -> None:
        """Continues a stopped tail with records that arrive from now on."""
        assert not self.is_running and self.follows
        self.seek, before = "end", self._scan
        self._scan = None
        self._behind = before.positions if before is not None else {}

    def take_found(self) -> list[Found]:
        """Returns the records found since the last call."""
        with self._lock:
            taken, self._buffer = list(self._buffer), deque()
        return taken

    def looked_at(self) -> dict[Key, Span]:
        """The span examined of each partition until now."""
        return self._scan.looked_at() if self._scan is not None else {}

    def spans(self) -> dict[Key, Span]:
        """The span of each partition to examine in all; of a tail the one examined until now."""
        if self._scan is None or self.follows:
            return self.looked_at()
        return self._scan.spans

    def _work(self, over: threading.Event) -> None:
        state = FAILED
        try:
            scan = self._scan
            if scan is None:
                scan = self._scan = self._planned()
            scan.rested()
            self.state = RUNNING
            skipped = self._passed_by if self.follows else None
            fetch(self._link, scan, over, self._tell, skipped)
            state = DONE if scan.is_done else STOPPED if over.is_set() else FULL
        except Failure as failure:
            self.failure = failure
        except Exception as fault:  # whatever it is, the screen must say it
            self.failure = Failure(
                f"searching: {type(fault).__name__}: {fault}", "this is a fault of the console",
                name="FAULT",
            )  # fmt: skip
        if self._scan is not None:
            self.progress = self._scan.progress(time.monotonic())
        self.state = state

    def _planned(self) -> Scan[Found]:
        now_ms = time.time_ns() // 1_000_000
        spans = planned(self._link, self.topic, self.seek, now_ms, endless=self.follows)
        for key, at in self._behind.items():
            if key in spans:
                self.passed += max(0, spans[key].first - at)
        return Scan(spans, self.filter, found, None if self.follows else PAGE)

    def _tell(self, some: list[Found]) -> None:
        now_s = time.monotonic()
        assert self._scan is not None
        if some:
            with self._lock:
                self._buffer.extend(some)
                while self.follows and len(self._buffer) > AT_A_LOOK:
                    self._buffer.popleft()
                    self.skipped += 1
        before = self.progress
        self.progress = self._scan.progress(now_s)
        if self.progress.at != before.at:
            self.heard_s = now_s

    def _passed_by(self, count: int) -> None:
        self.passed += count
