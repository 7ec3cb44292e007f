"""Where what is shown comes from: a Source asks in a thread of its own and keeps the last answer.

A Source is a value machine: `began` and `ended` are told to it, `due` says whether to ask.
Invariant: one request is in flight at most; whoever wants a newer answer meanwhile gets one more,
not one each. What came last stays, with its age, when a later request fails. The thread touches no
widget: it hands its result to the loop. While answers stay the same it is asked less often, until
somebody presses a key.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from console.model.asking.failure import Failure

T = TypeVar("T")
_HUSH_S: Final = 0.1
_REST: Final = 4
"""After an answer that took a second a source rests for at least so many: a broker with 100,000
partitions is not asked all the time."""
_LONGEST_S: Final = 5.0
"""Seconds to which the rest of a source grows while its answers stay the same."""


@dataclass(slots=True, frozen=True)
class Shown(Generic[T]):
    """value: the last answer, None before there is one; at_s: when it came, monotonic. failure: why
    the last request failed, None when it did not."""

    value: T | None = None
    at_s: float = 0.0
    failure: Failure | None = None


class Source(Generic[T]):
    """name: what it is called in the log. line: the command that asks the same, or what gives it
    where it depends on what was found out. every_s: how long it rests after an answer; retry_s:
    after a failure. still: what of an answer changes when something happens, where that is less
    than all of it. is_repeated: nothing of that was new in the last answer."""

    def __init__(
        self,
        name: str,
        line: str | Callable[[], str],
        ask: Callable[[], T],
        *,
        every_s: float,
        retry_s: float = 1.0,
        still: Callable[[T], object] | None = None,
    ) -> None:
        self.name = name
        self.ask = ask
        self._line = line
        self.shown: Shown[T] = Shown()
        self.took_s = 0.0
        self._every_s = every_s
        self._retry_s = retry_s
        self._began_s: float | None = None
        self._due_s = self._hasty_s = 0.0
        self._still = still
        self._was: object = None
        self._is_same, self._grown = False, 1.0
        self.is_repeated = False

    @property
    def line(self) -> str:
        """The command that asks the same, "" where there is none."""
        return self._line if isinstance(self._line, str) else self._line()

    @property
    def in_flight(self) -> bool:
        """True while a request is under way."""
        return self._began_s is not None

    def due(self, now_s: float) -> bool:
        """True if it is time for the next request."""
        return not self.in_flight and now_s >= self._due_s

    def request_update(self) -> None:
        """An answer newer than this moment: at once, or after the request in flight."""
        self._due_s = 0.0

    def hasten(self) -> None:
        """Asks what stayed the same as often as at first, because somebody looks."""
        self._grown, self._due_s = 1.0, min(self._due_s, self._hasty_s)

    def compare_answer(self, answer: T | Failure) -> None:
        """Finds out whether an answer is the last one again. For the thread that asked, before
        `ended`: of many topics it takes a while."""
        if isinstance(answer, Failure):
            self._is_same = False
            return
        was, self._was = self._was, answer if self._still is None else self._still(answer)
        self._is_same = was == self._was

    def began(self, now_s: float) -> None:
        """It is being asked."""
        assert not self.in_flight, "one request at a time"
        self._began_s = now_s
        self._due_s = self._hasty_s = float("inf")

    def ended(self, now_s: float, answer: T | Failure) -> None:
        """Takes the result of the request."""
        assert self._began_s is not None, "nothing was asked"
        self.took_s = now_s - self._began_s
        self._began_s = None
        self.is_repeated = self._is_same and self.shown.failure is None
        if isinstance(answer, Failure):
            self.shown = replace(self.shown, failure=answer)
            rest = self._retry_s
        else:
            first = self.shown.value is None  # it also connected, and loaded what it needs
            self.shown = Shown(answer, now_s)
            rest = self._every_s if first else max(self._every_s, self.took_s * _REST)
        self._hasty_s = now_s + rest
        self._grown, self._is_same = self._grown * 2 if self._is_same else 1.0, False
        rest = max(rest, min(rest * self._grown, _LONGEST_S))
        self._due_s = min(self._due_s, now_s + rest)  # 0 when more was wanted meanwhile


class Hush:
    """Threads that read much stand back while the loop answers a key: Python runs one of them at a
    time, and would share it fairly."""

    def __init__(self) -> None:
        self._free = threading.Event()
        self._free.set()
        self._until_s = 0.0

    def begin_hush(self) -> None:
        """A key was pressed."""
        self._until_s = time.monotonic() + _HUSH_S
        self._free.clear()

    def end_hush(self) -> None:
        """Resumes background work: the effect of the key is shown."""
        self._free.set()

    def breathe(self) -> None:
        """For the threads: go on when nobody is waiting, or has been for long enough."""
        if not self._free.is_set():
            self._free.wait(max(0.0, self._until_s - time.monotonic()))


def run(source: Source[Any], hand_over: Callable[[Source[Any], Any], object]) -> None:
    """Ask a source in a thread, which does not keep the program from ending. hand_over: takes the
    source and its answer, a Failure or a value, to the loop; it raises RuntimeError when that has
    ended."""
    source.began(time.monotonic())

    def work() -> None:
        answer = answered(source.name, source.ask)
        source.compare_answer(answer)
        with suppress(RuntimeError):
            hand_over(source, answer)

    threading.Thread(target=work, name=f"ask {source.name}", daemon=True).start()


def answered(name: str, ask: Callable[[], T]) -> T | Failure:
    """The result of a request made in this thread, or its Failure: it raises nothing. name: of the
    source.
    """
    try:
        return ask()
    except Failure as failure:
        return failure
    except Exception as fault:  # whatever it is, the screen must say it
        return Failure(
            f"{name}: {type(fault).__name__}: {fault}", "this is a fault of the console",
            name="FAULT",
        )  # fmt: skip
