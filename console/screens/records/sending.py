"""Shared parts of views of records: writing (another record, a copy of the one under the cursor, a
tombstone), and the schema by which records are decoded.
"""

import threading
from contextlib import suppress
from functools import partial

from console.model.asking.failure import Failure
from console.model.decoding.decoded import KEY, VALUE
from console.model.decoding.memory import Choice
from console.model.records.one import Whole, one
from console.screens import record_forms
from console.screens.changes.dialog import describe_failure
from console.screens.records.schema import SchemaScreen
from console.screens.sources import answered
from console.screens.view import View
from console.show.output import plain


class Sending(View):
    """A view of records. A record that is listed may be cut, so it is read again before it is
    edited."""

    _is_read = False
    """A record is being read to be edited."""

    @property
    def topic(self) -> str:
        """The topic of these records."""
        raise AssertionError("a view of records says of which topic")

    def under_cursor(self) -> tuple[int, int] | None:
        """Partition and offset of the record that is meant; None when there is none."""
        raise AssertionError("a view of records says which one is meant")

    def action_produce(self) -> None:
        """Another record for the topic."""
        self.propose(record_forms.produce(self.topic, self.world.link.bootstrap))

    def action_resend(self) -> None:
        """Edit the record and send it once more."""
        if self._is_read or (where := self._meant()) is None:
            return
        self._is_read = True
        title = f"read {self.topic} {where[0]}:{where[1]}"
        read = partial(one, self.world.link, self.topic, *where)

        def run() -> None:
            found = answered(title, read)
            with suppress(RuntimeError):  # the loop has ended
                self.app.call_later(self._edit, found)

        threading.Thread(target=run, name=title, daemon=True).start()

    def action_tombstone(self) -> None:
        """The key of the record is gone."""
        if (where := self._meant()) is not None:
            self.propose(record_forms.tombstone(self.topic, *where))

    def action_schema(self) -> None:
        """Say by which schema file keys or values are read."""
        choices = self.world.choices
        known = {part: choices.of(self.topic, part) for part in (KEY, VALUE)}
        self.app.push_screen(SchemaScreen(self.topic, known), self._by_schema)

    def _by_schema(self, wanted: tuple[str, Choice] | None) -> None:
        if wanted is not None:
            self.world.read_as(self.topic, *wanted)
            self.read_anew()

    def read_anew(self) -> None:
        """Keys and values are read another way now."""
        raise AssertionError("a view of records shows them")

    def _edit(self, found: Whole | Failure) -> None:
        self._is_read = False
        if not self.display or not self.is_attached:
            return  # they have gone elsewhere
        try:
            if isinstance(found, Failure):
                raise found
            self.propose(record_forms.resend(found.record, self.world.link.bootstrap))
        except Failure as failure:
            self.notify(plain(describe_failure(failure)), severity="error", markup=False)

    def _meant(self) -> tuple[int, int] | None:
        where = self.under_cursor()
        if where is None:
            self.notify("there is no record under the cursor", markup=False)
        return where
