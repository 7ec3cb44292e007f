"""How one job is, told to everybody who wants to know: its state.json, its log, the states' topic.

Used by the thread of the job alone. States: starting; running, once a batch was delivered or there
was nothing to read; waiting, for the appliance or a topic; failing, from a failure until a batch is
delivered; stopping, stopped, finished, failed.
"""

import json
import os
import time
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from spark_local.cause import JobError
from spark_local.folder import JobFolder
from spark_local.job import Job

TOPIC: Final = "__penstock_jobs"
"""Of all jobs' states, for everybody who cannot see the folder."""
_PACE_S: Final = 1.0
HEARTBEAT_S: Final = 60.0
"""A state is told again when nothing has changed for so long."""
ENDED: Final = ("stopped", "finished", "failed")
UNWELL: Final = ("failing", "waiting")
"""They last, with their cause, until a batch is delivered."""
_KEPT: Final = ("kind", "reads", "writes", "delivery", "master")
_RESTS: Final = {"rows_per_s": 0.0, "processed_per_s": 0.0, "rows_out_per_s": 0.0}
_TRACE_MOST: Final = 20_000


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Told(Protocol):
    """The publisher of job states."""

    def write_state(self, job: str, state: dict[str, Any] | None) -> None:
        """A job's state; None: it is no more."""


class Board:
    """The published state of one job. states: None where nobody else is told."""

    def __init__(self, place: JobFolder, states: Told | None, wish: int) -> None:
        self._place = place
        self._states = states
        self._wish = wish
        self._told_at = 0.0
        self._fresh = False
        self.content: dict[str, Any] = {"job": place.name, "state": "starting", "since": now_ms()}
        self.content |= {"wish": wish, "pid": os.getpid(), "cause": None, "remedy": None}
        before = place.state()
        self.content["restarts"] = int(before.get("restarts") or 0)
        self.content |= {key: before[key] for key in _KEPT if key in before}
        if before.get("wish") == wish and before.get("state") in UNWELL:  # of a former runner
            self.content |= {key: before.get(key) for key in ("state", "cause", "remedy")}
        if told := before.get("progress"):  # totals go on
            self.content["progress"] = told | _RESTS

    @property
    def state(self) -> str:
        return str(self.content["state"])

    def describe(self, job: Job, master: str) -> None:
        """Sets the fixed part of the state: kind, inputs, output, delivery and master."""
        kind = "batch" if job.batch else "once" if job.once else "stream"
        reads = [one.place.text for one in job.inputs]
        self.content |= {"kind": kind, "reads": reads, "writes": job.sink.place.text}
        self.content |= {"delivery": job.sink.delivery, "master": master}

    def set(self, state: str, cause: JobError | None = None, **more: Any) -> None:
        """The job is in another state now."""
        self.content["restarts"] += state == "failing"
        self.content |= {"state": state, "since": now_ms(), "pid": os.getpid(), **more}
        self.content["cause"] = cause.problem if cause else None
        self.content["remedy"] = (cause.remedy or None) if cause else None
        if state != "running":
            self._rest(unknown_lag=state == "waiting")
        if state in ENDED:
            self.content |= {"next_attempt": None, "note": None}
        self.log(f"{state}: {cause}" if cause else state)
        self.publish_state()

    def attempt(self, number: int) -> None:
        """Another attempt begins: the first one is a start, a later one proves nothing yet."""
        if self.state in UNWELL:
            self.content |= {"attempt": number, "next_attempt": None, "pid": os.getpid()}
            self.log(f"attempt {number}")
            self.publish_state()
        else:
            self.set("starting", attempt=number, next_attempt=None)

    def delivered(self) -> None:
        """A batch was delivered, or there is nothing to read."""
        if self.state != "running":
            self.set("running", next_attempt=None)

    def broke(self, cause: JobError, trace: str) -> None:
        """Something made it fail. It is kept until the next failure, also when the job runs
        again."""
        if self._place.path.is_dir():
            kept = {"at": now_ms(), "cause": cause.problem, "remedy": cause.remedy or None}
            self._place.keep_error(kept | {"trace": trace[-_TRACE_MOST:]})

    def progress(self, told: dict[str, Any]) -> None:
        """The job worked: published at once, or with what comes within a second."""
        self.content["progress"] = told
        self._fresh = True
        if self.pending():
            self.publish_state()

    def idle(self) -> None:
        """Clears the rates of the last batch while no records arrive."""
        if self._rest():
            self.publish_state()

    def _rest(self, *, unknown_lag: bool = False) -> bool:
        """Clears the rates; True if that changed the state."""
        progress = self.content.get("progress")
        if not progress:
            return False
        rests = _RESTS | ({"lag_records": None, "lag_s": None} if unknown_lag else {})
        self.content["progress"] = progress | rests
        return bool(self.content["progress"] != progress)

    def set_warning(self, text: str | None) -> None:
        """Something that a person should see although nothing is wrong."""
        if self.content.get("note") != text:
            self.content["note"] = text
            if text:
                self.log(text)
            self.publish_state()

    def pending(self) -> bool:
        """True if an unpublished change is due, or the next heartbeat."""
        quiet = time.monotonic() - self._told_at
        return quiet >= (_PACE_S if self._fresh else HEARTBEAT_S)

    def publish_state(self) -> None:
        """Publish what there is."""
        self._told_at = time.monotonic()
        self._fresh = False
        self.content["updated"] = now_ms()
        if self._place.path.is_dir():
            self._place.write_state(self.content)
        if self._states is not None:
            self._states.write_state(self._place.name, self.content)

    def log(self, text: str) -> None:
        """One line in the job's log."""
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if self._place.path.is_dir():
            with self._place.log_file.open("a") as file:
                file.write(f"{moment} {json.dumps(text, ensure_ascii=False)[1:-1]}\n")
