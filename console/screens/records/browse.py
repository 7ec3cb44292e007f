"""Records of a topic: a search that runs by itself, or the tail; one box says where, one what."""

import time
from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal
from textual.widgets import Input

from console.model.asking.failure import Failure
from console.model.decoding.decoded import KEY, VALUE
from console.model.records.export import Export
from console.model.records.filter_text import GRAMMAR as FILTERS
from console.model.records.found import Found
from console.model.records.leaf import Leaf
from console.model.records.running import DONE, FAILED, PLANNING, STOPPED, Running
from console.model.records.seeking import GRAMMAR as SEEKS
from console.model.records.seeking import parse_seek
from console.screens import lines
from console.screens.actions import IN_RECORDS, bindings
from console.screens.beside import look_beside
from console.screens.places import RECORD, RECORDS, TAIL, Place
from console.screens.records import decoder
from console.screens.records.asked import Asked
from console.screens.records.cells import COLUMNS, by, cells, record_lines
from console.screens.records.export_screen import ExportScreen
from console.screens.records.progress import exported, searched, tailed
from console.screens.records.schema import flags
from console.screens.records.sending import Sending
from console.screens.rows import Column, Rows
from console.screens.view import Part, Words

_LOOK_S: Final = 0.1
_PACE_S: Final = 2.0
"""A tail is drawn so seldom while records come: each time all its lines move."""
_KEPT: Final = 10_000
_TAIL_KEPT: Final = 2_000
"""Records that are listed at most; older ones leave the list, and that is said."""


_GRAMMAR: Final = (
    ("From", "start, end, 47, +2, -3, @2013-01-31 12:00, @12:00, 2h ago"),
    ("", "FROM..TO ends before TO; 0:47 3-5:-10: only these partitions"),
    ("Filter", 'all of: word, "Exact words", /regex/, /regex/i, !not this'),
    ("", "key:… value:… header:… header.NAME:… partition:0,3-5"),
    ("", "value:null: a tombstone; key:null: it has no key"),
    ("", '$.a["b c"][0] = 5, and != < <= > >= ~; [*]: any element'),
)


class SearchBox(Input):
    """Where a seek or a filter is typed; Enter searches."""

    DEFAULT_CSS = """
    SearchBox { border: none; height: 1; padding: 0; background: $surface; }
    """


class RecordsView(Sending):
    """The search, or the tail. What was typed is kept for the topic as long as the console runs."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(IN_RECORDS)
    DEFAULT_CSS = """
    RecordsView .boxes { height: 1; padding: 0 1; }
    RecordsView .boxes Words { width: auto; color: $text-muted; }
    RecordsView #seek { width: 1fr; }
    RecordsView #keep { width: 2fr; }
    RecordsView .told { height: auto; max-height: 3; padding: 0 1; }
    RecordsView.large .boxes, RecordsView.large .told { padding: 0 2; }
    RecordsView.wide #records { width: 3fr; }
    RecordsView.wide #beside { width: 2fr; }
    """
    has_below: ClassVar[bool] = True
    frames: ClassVar[Mapping[str, str]] = {"records": "Records  {}", "beside": ""}

    def compose(self) -> ComposeResult:
        with Horizontal(classes="boxes"):
            yield Words(name="from")
            yield SearchBox(id="seek", compact=True, placeholder=SEEKS, disabled=self._follows)
            yield Words(name="only")
            yield SearchBox(id="keep", compact=True, placeholder=FILTERS)
        yield Words(name="progress", classes="told")
        with Container(classes="panes"):
            yield Rows(COLUMNS, name="records", empty="")
            yield Rows((Column("", 0),), name="beside", opens=False, classes="beside")

    def on_mount(self) -> None:
        """Begin with what was typed the last time."""
        self._rows: list[Found] = []
        self._dropped = 0
        self._wrong: Failure | None = None
        self._export: Export | None = None
        self._at_work: Running | None = None
        self._seen: object = None
        self._painted_s = 0.0
        self._rests = False
        self._leaf: tuple[Leaf, int] | None = None
        asked = self._asked
        self.query_one("#from", Words).show_parts("tail " if self._follows else "o From ")
        self.query_one("#only", Words).show_parts("  / Filter ")
        self.query_one("#seek", SearchBox).value = "end" if self._follows else asked.seek
        self.query_one("#keep", SearchBox).value = asked.keep
        self._search()
        self.set_interval(_LOOK_S, self._look)

    def on_unmount(self) -> None:
        """Stops the search."""
        self._stop()

    @property
    def topic(self) -> str:
        """The topic of the records."""
        return self.place.name

    def under_cursor(self) -> tuple[int, int] | None:
        """Its row is called so."""
        key = self.query_one("#records", Rows).key
        if key is None:
            return None
        partition, _, offset = key.partition(":")
        return int(partition), int(offset)

    @property
    def _follows(self) -> bool:
        return self.place.kind == TAIL

    @property
    def _asked(self) -> Asked:
        return self.world.asked_records.setdefault(self.place.name, Asked())

    # Searching ----------------------------------------------------------------------------------

    def _search(self) -> None:
        seek, keep = (
            self.query_one("#seek", SearchBox).value,
            self.query_one("#keep", SearchBox).value,
        )
        self._stop()
        try:
            parse_seek(seek, time.time_ns() // 1_000_000)
            running = Running(self.world.link, self.place.name, seek, keep, follows=self._follows)
        except Failure as wrong:
            self._wrong = wrong
            self.paint()
            return
        self._wrong = None
        before = self._asked
        self.world.asked_records[self.place.name] = Asked(
            before.seek if self._follows else seek, keep
        )
        self._rows, self._dropped = [], 0
        self._at_work = running
        running.start_scan()
        self.paint()

    def _stop(self) -> None:
        if self._at_work is not None:
            self._at_work.stop()

    def _look(self) -> None:
        """Takes the results since the last call."""
        running, export = self._at_work, self._export
        if running is None or not self.is_ready:
            return
        if self._follows:
            self._rest(running)
        self._take_found(running)
        seen = (
            running.state, running.progress, running.skipped, running.passed,
            export.progress if export is not None else None,
            export.is_over if export is not None else None,
            running.is_running and int(time.monotonic()), len(self._rows) + self._dropped,
        )  # fmt: skip
        now = time.monotonic()
        waits = self._follows and running.is_running and now - self._painted_s < _PACE_S
        if seen != self._seen and self.display and not waits:
            self._seen, self._painted_s = seen, now
            self.paint()

    def _take_found(self, running: Running) -> None:
        found = running.take_found()
        if found:
            self._rows += found
            if not self._follows:
                self._rows.sort(key=lambda one: one.order)
            gone = len(self._rows) - (_TAIL_KEPT if self._follows else _KEPT)
            if gone > 0:
                del self._rows[:gone]
                self._dropped += gone

    def _rest(self, running: Running) -> None:
        """A tail that nobody sees fetches nothing, and goes on where it was when it is seen."""
        if running.is_running and not self.display:
            self._rests = True
            running.stop()
        elif self._rests and self.display and not running.is_running:
            self._rests = False
            running.start_scan()

    def paint(self) -> None:
        running = self._at_work
        if not self.is_ready or (running is None and self._wrong is None):
            return
        told, empty = self._told(), self._empty()
        if running is not None:
            self._take_found(running)  # later than what is told: the list has all of it
        self.query_one("#progress", Words).show_parts(*told)
        rows = self.query_one("#records", Rows)
        follows = self._follows and rows.at_end
        newest = self.world.newest_first and not self._follows
        at_start = newest and rows.at_start
        listed = reversed(self._rows) if newest else self._rows
        known = {one.place_name: one for one in listed}
        decoders = self.world.decoders
        rows.show_rows(
            list(known), lambda key: cells(known[key], decoders), lambda key, n: by(known[key], n),
            empty=empty,
        )  # fmt: skip
        if follows and not rows.at_end:
            rows.action_end(True)
        elif at_start and not rows.at_start:
            rows.action_end(False)
        self._beside()

    def _beside(self) -> None:
        """Shows the record under the cursor, whole."""
        rows, key = self.query_one("#beside", Rows), self.query_one("#records", Rows).key
        name = f"{self.topic} {key}" if key is not None else None
        leaf = look_beside(self, rows, RECORD, name, "{name}")
        if not isinstance(leaf, Leaf):
            self._leaf = None
            return
        width = max(8, rows.size.width - 1)
        if self._leaf is None or self._leaf[0] is not leaf or self._leaf[1] != width:
            self._leaf = leaf, width
            told = record_lines(leaf, width)
            rows.show_rows(list(map(str, range(len(told)))), lambda at: (told[int(at)],))
            rows.action_end(False)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Another record is under the cursor."""
        event.stop()
        if event.rows.id == "records":
            self._beside()

    def _told(self) -> list[Part]:
        if self._wrong is not None:
            return [(f"✗ {self._wrong.message}", "bold red"), f"  → {self._wrong.hint}"]
        running = self._at_work
        assert running is not None
        if self._export is not None and not self._export.is_over:
            return exported(self._export)
        parts = tailed(running) if self._follows else searched(running)
        if self._dropped:
            parts.append((f"  the first {self._dropped:,} have left the list", "yellow"))
        return parts + (exported(self._export) if self._export is not None else [])

    def _empty(self) -> str:
        running = self._at_work
        if self._wrong is not None or running is None or running.state in (PLANNING, FAILED):
            return ""
        if self._follows:
            return "nothing has come yet"
        return (
            "nothing is there"
            if running.state == DONE and not running.filter.text
            else (
                "nothing was found" if running.state in (DONE, STOPPED) else "nothing was found yet"
            )
        )

    # Keys ---------------------------------------------------------------------------------------

    def grammar(self) -> list[tuple[str, str]]:
        return list(_GRAMMAR)

    def filter_box(self) -> Input | None:
        return self.query_one("#keep", SearchBox)

    def action_seek(self) -> None:
        """Type where to look; a tail is at its end."""
        box = self.query_one("#keep" if self._follows else "#seek", SearchBox)
        box.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Keeps typing from starting a search."""
        event.stop()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Search for what was typed, from the beginning."""
        event.stop()
        self._search()
        if self._wrong is None:
            self.query_one("#records", Rows).focus()

    def escape(self) -> bool:
        """Out of a box, else an export or a search ends; with nothing of it there is nothing to
        do."""
        if isinstance(self.app.focused, SearchBox):
            self.query_one("#records", Rows).focus()
        elif self._export is not None and not self._export.is_over:
            self._export.cancel()
        elif self._at_work is not None and self._at_work.is_running and not self._follows:
            self._at_work.stop()
        else:
            return False
        return True

    def pause(self) -> bool:
        """A search or a tail stands still, or goes on where it was."""
        if self._at_work is not None:
            if self._at_work.is_running:
                self._at_work.stop()
            else:
                self._at_work.start_scan()
        return True

    def action_order(self) -> None:
        """The newest first, or the oldest; the cursor goes to the beginning."""
        if self._follows:
            self.notify("a tail shows records as they come", markup=False)
            return
        self.world.newest_first = not self.world.newest_first
        self.paint()
        self.query_one("#records", Rows).action_end(False)

    def action_more(self) -> None:
        """Go on from where the search has stopped."""
        if self._at_work is not None:
            self._at_work.start_scan()
        self.paint()

    def action_tail(self) -> None:
        """The end of the topic: of a paused tail, what has come meanwhile is passed over."""
        if not self._follows:
            self.post_message(self.Go(Place(TAIL, self.place.name)))
        elif self._at_work is not None and not self._at_work.is_running:
            self._at_work.go_to_the_end()
            self._at_work.start_scan()

    def action_browse(self) -> None:
        """Look at what is there already."""
        self.post_message(self.Go(Place(RECORDS, self.place.name)))

    def action_decoder(self) -> None:
        """Values are read by another decoder."""
        self.notify(decoder.change(self.world.choices, self.place.name), markup=False)
        self.read_anew()

    def read_anew(self) -> None:
        """Repaints the list, and the record beside it."""
        self.world.forget_decoded(self.topic)
        self.paint()

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """One record, whole."""
        event.stop()
        self.post_message(self.Go(Place(RECORD, f"{self.place.name} {event.key}")))

    # Export -------------------------------------------------------------------------------------

    def action_export(self) -> None:
        """Say to which file."""
        running = self._at_work
        if running is None or not running.spans():
            self.notify("there is nothing to export yet", markup=False)
        elif self._export is not None and not self._export.is_over:
            self.notify("an export is running: Esc ends it", markup=False)
        else:
            self.app.push_screen(ExportScreen(running, self.world.link), self._begin)

    def _begin(self, export: Export | None) -> None:
        if export is not None:
            self._export = export
            export.start_export()

    def line(self) -> str:
        topic, asked = lines.quoted(self.place.name), self._asked
        where = "end" if self._follows else asked.seek
        words = f"penstock consume {topic} -o {lines.quoted(where or 'start')}"
        words += "" if self._follows else " -e"
        if asked.keep:
            words += f" --filter {lines.quoted(asked.keep)}"
        choices = self.world.choices
        words += flags(choices.of(self.topic, VALUE), choices.of(self.topic, KEY))
        return lines.asking(words, self.world.link.bootstrap)
