"""The door: everything that the console changes goes through here, and nothing else has a Link that
may write.

It makes plans and carries them out in threads, lets dialogs and forms ask, pauses the refresh while
something is on its way, writes what happened into the journal, and knows how to take it back.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from textual.app import App

from console.model.asking.change import Change, Proposal, Tier, carry_out
from console.model.asking.failure import Failure
from console.model.asking.link import Link, asking
from console.screens import lines
from console.screens.changes.dialog import PlanDialog, describe_failure
from console.screens.changes.form import Form
from console.screens.changes.form_screen import FormScreen
from console.screens.journal import Journal
from console.screens.sources import answered
from console.show.output import plain

T = TypeVar("T")
_REST_S: Final = 0.5
_TRIES: Final = 60
"""So often a broker that does not answer is asked about a change: half a minute."""
_TOAST_S: Final = 10.0


class Door:
    """reading: for plans, and for what became of a lost answer. writing: for changes; one that only
    reads refuses them where requests are made. changed: called after each one; its argument says
    whether what is shown is gone."""

    def __init__(
        self,
        app: App[Any],
        reading: Link,
        writing: Link,
        journal: Journal,
        changed: Callable[[bool], object],
    ) -> None:
        assert reading.read_only, "plans change nothing"
        self.drafts: dict[str, dict[str, str]] = {}
        """Title of a form → what was typed in it and not sent."""
        self._app = app
        self._reading = reading
        self._writing = writing
        self._journal = journal
        self._changed = changed
        self._busy = ""
        self._undo: tuple[str, Proposal | None] = ("", None)
        self._stopped = threading.Event()
        self._is_in_flight = False

    @property
    def read_only(self) -> bool:
        """True if changes are disabled."""
        return self._writing.read_only

    @property
    def in_flight(self) -> bool:
        """A change is on its way, and nothing has been lost of it: nothing else is asked."""
        return self._is_in_flight

    def open_proposal(self, wanted: Proposal | Form) -> None:
        """Somebody wants to change something: ask them what has to be asked, then do it."""
        if self.read_only:
            self._say(f"{wanted.title}: nothing can be changed with --read-only", failed=True)
        elif self._busy:
            self._say(f"{self._busy} is still on its way", failed=True)
        elif isinstance(wanted, Form):
            self._app.push_screen(FormScreen(self, wanted))
        elif wanted.tier is Tier.UNDO:
            self._at_once(wanted)
        else:
            self._app.push_screen(PlanDialog(self, wanted))

    def undo(self) -> None:
        """Take the last change back."""
        title, proposal = self._undo
        if proposal is not None:
            self.open_proposal(proposal)
        else:
            self._say(f"{title}: this cannot be taken back" if title else "nothing was changed yet")

    def line(self, change: Change) -> str:
        """The command that does the same, "" where a secret would stand in it."""
        return lines.of_words(change.words, self._reading.bootstrap) if change.words else ""

    def copy(self, line: str) -> None:
        """To the terminal's clipboard (OSC 52)."""
        if not line:
            self._say("nothing was copied: a secret would be in that line")
            return
        self._app.copy_to_clipboard(line)
        self._journal.add_entry("copied", time.time(), line=line)
        self._say(f"copied: {line}")

    def plan(self, proposal: Proposal, then: Callable[[Any], object]) -> None:
        """Find out what it would do. then: is given the Change or a Failure, in the loop."""

        def made() -> Change:
            with asking(self._reading):
                return proposal.plan(self._reading)

        self._in_thread(proposal.title, made, then)

    def carry_out(
        self,
        proposal: Proposal,
        change: Change,
        tell: Callable[[str], object],
        ended: Callable[[Any], object],
        *,
        unsure: bool = False,
    ) -> None:
        """Do it. tell: is given sentences meanwhile; ended: what happened, or a Failure; both in
        the loop."""
        began = time.monotonic()
        self._stopped.clear()
        self._is_in_flight = True
        tries = iter(range(_TRIES))

        def lost(words: str) -> None:
            self._is_in_flight = False  # who waits wants to see whether the broker is back
            tell(words)

        def done() -> str:
            return carry_out(
                change, self._reading, self._writing, unsure=unsure,
                tell=lambda words: self._hand_over(lost, words),
                rest=lambda: self._stopped.wait(_REST_S) or next(tries, None) is None,
            )  # fmt: skip

        def over(answer: str | Failure) -> None:
            self._is_in_flight = False
            self._noted(proposal, change, answer, time.monotonic() - began)
            ended(answer)
            is_gone = proposal.leaves and not isinstance(answer, Failure)
            self._app.call_later(self._changed, is_gone)

        self._in_thread(proposal.title, done, over)

    def stop_waiting(self) -> None:
        """Stops waiting for an answer that may not come."""
        self._stopped.set()

    def _at_once(self, proposal: Proposal) -> None:
        self._busy = proposal.title

        def planned(answer: Change | Failure) -> None:
            if isinstance(answer, Failure):
                ended(answer)
            else:
                self.carry_out(proposal, answer, self._say, ended)

        def ended(answer: str | Failure) -> None:
            self._busy = ""
            if isinstance(answer, Failure):
                self._say(f"{proposal.title}: {describe_failure(answer)}", failed=True)

        self.plan(proposal, planned)

    def _noted(
        self, proposal: Proposal, change: Change, answer: str | Failure, took_s: float
    ) -> None:
        failed = isinstance(answer, Failure)
        self._journal.add_entry(
            proposal.title, time.time(), line=self.line(change), took_s=took_s,
            problem=answer.message if isinstance(answer, Failure) else "",
            outcome="" if isinstance(answer, Failure) else answer, is_change=True,
        )  # fmt: skip
        if not failed:
            self._undo = (proposal.title, change.undo)
            back = "   u takes it back" if change.undo is not None else ""
            self._say(f"{proposal.title}: {answer}{back}")

    def _say(self, words: str, *, failed: bool = False) -> None:
        self._app.notify(
            plain(words), severity="error" if failed else "information", timeout=_TOAST_S,
            markup=False,
        )  # fmt: skip

    def _in_thread(
        self, title: str, work: Callable[[], T], then: Callable[[T | Failure], object]
    ) -> None:
        def run() -> None:
            self._hand_over(then, answered(title, work))

        threading.Thread(target=run, name=title, daemon=True).start()

    def _hand_over(self, then: Callable[..., object], *given: object) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._app.call_later(then, *given)
