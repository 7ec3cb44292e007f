"""The console: one screen with a place in its middle.

    source (a thread asks) → answer, a value → `on_told` (the loop) → view.paint (widgets read it)

Nothing here asks a broker, and no thread touches a widget.
"""

import asyncio
import gc
import time
from typing import Any, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.local.attention import of_cluster
from console.model.local.local import NOT_LOCAL
from console.screens import lines, places, sources, topology
from console.screens.actions import ACTIONS, APP, CHANGES, KINDS, Action, bindings, works
from console.screens.at_terminal import AtTerminal, prepare
from console.screens.changes.door import Door
from console.screens.help import HelpScreen, list_keys
from console.screens.journal import Journal
from console.screens.key_time import KeyTime
from console.screens.keys import Keys
from console.screens.log import LogView
from console.screens.palette import Everything
from console.screens.places import HOME, LOG, History, NoPlace, Place
from console.screens.prompt import FILTER, JUMP, Prompt
from console.screens.sources import Source
from console.screens.tabs import Tabs
from console.screens.view import FRAMED, View, Words
from console.screens.views import VIEWS
from console.screens.world import World
from console.screens.zone import Zone
from console.show.figures import age

_OURS: Final = frozenset(one.call.partition("(")[0] for one in ACTIONS if one.scope == APP)
_BESIDE: Final = ("quit", "suspend_process")
"""Work beside a dialog too."""
_TICK_S: Final = 0.25
_TOGETHER_S: Final = 0.05
"""Answers that come so soon after each other are painted together."""
_EARLY_S: Final = 0.3
"""A source is asked so much earlier where another is asked anyway: then they are together."""
_OLD_S: Final = 10.0
_VIEWS_MOST: Final = 8


class ConsoleApp(AtTerminal):
    """Everything that an operator sees. `world`: what is known; `here`: where they are."""

    TITLE: str | None = "penstock console"
    BINDINGS: ClassVar[list[BindingType]] = bindings(APP)
    COMMANDS: ClassVar[set[Any]] = {Everything}
    CSS = """
    #head { height: 1; background: $panel; }
    #title { width: 1fr; height: 1; padding: 0 1; }
    #age { width: auto; height: 1; padding: 0 1; }
    #trouble { display: none; max-height: 2; padding: 0 1; color: $text-error; text-style: bold; }
    #trouble.there { display: block; }
    #body { height: 1fr; }
    #line { color: $text-muted; }
    #line { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    ConsoleApp.few-colors Rows > .rows--cursor { text-style: reverse; }
    .large #title, .large #age, .large #trouble, .large #line { padding: 0 2; }
    .large #tabs { padding: 0 2; }
    .large #tabs.roomy { padding: 0 1; }
    """

    class Told(Message):
        """A source has its answer."""

        def __init__(self, source: Source[Any], answer: Any) -> None:
            super().__init__()
            self.source = source
            self.answer = answer

    def __init__(
        self,
        link: Link,
        first: Place = HOME,
        jobs: str | None = None,
        *,
        changing: Link | None = None,
    ) -> None:
        """link: read-only. jobs: the jobs folder that somebody named. changing: what changes go
        over; without it there are none."""
        super().__init__()
        self.world = World(link, jobs)
        self.journal = Journal()
        self.door = Door(self, link, changing or link, self.journal, self._changed)
        self.history = History(first)
        self.is_paused = False
        self.zone = Zone()
        self._shown: dict[Place, View] = {}
        self._head, self._age_words = Words(name="title"), Words(name="age")
        self._trouble, self._command_line = Words(name="trouble"), Words(name="line")
        self._tabs = Tabs()
        self._framed: object = None
        self._paints: asyncio.TimerHandle | None = None
        self._key_time = KeyTime(self.world.hush)

    @property
    def here(self) -> Place:
        """Where somebody is."""
        return self.history.here

    @property
    def view(self) -> View:
        """The view of the current place."""
        return self._shown[self.here]

    def compose(self) -> ComposeResult:
        with Horizontal(id="head"):
            yield self._head
            yield self._age_words
        yield self._tabs
        yield self._trouble
        yield Vertical(id="body")
        yield Prompt(self.world.names)
        yield self._command_line
        yield Keys()

    async def on_mount(self) -> None:
        """Begin to ask."""
        self.begin_themes()
        self.watch_terminal()
        await self._show()
        self.set_interval(_TICK_S, self._tick)
        self._tick()

    # Sources ------------------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Holds background work back while a key is handled. A key comes twice: from the terminal,
        and from the widgets that have no use for it; then its action runs."""
        if isinstance(event, events.Key | events.MouseDown):
            self.world.hasten()
        if isinstance(event, events.Key) and not event.is_forwarded:
            self._key_time.begin_key()
        await super().on_event(event)
        if isinstance(event, events.Key) and event.is_forwarded:
            self._key_time.end_soon()

    @property
    def _is_there(self) -> bool:
        """Its parts are there: not yet, or not any more, while it begins or ends."""
        running = self.is_running and self.screen_stack  # as it ends, its parts go one by one
        return bool(running and self._command_line.is_attached) and self.here in self._shown

    @property
    def _ground(self) -> Screen[Any]:
        """The screen of the places, below dialogs."""
        return self.screen_stack[0]

    def _tick(self) -> None:
        self._key_time.release_late()
        if not self._is_there or self.is_hung_up():
            return
        now = time.monotonic()
        if not self.is_paused and not self.door.in_flight:
            asked = tuple(self.world.asked(self.here))
            early_s = _EARLY_S if any(one.due(now) for one in asked) else 0.0
            for source in asked:
                if source.due(now + early_s):
                    sources.run(
                        source, lambda one, answer: self.post_message(self.Told(one, answer))
                    )
        self._age(now)
        seen = (self.size, self.here, self.view.is_measured, self.view.is_large)
        if seen != self._framed:
            self._framed = seen
            self._frame(now)

    def on_console_app_told(self, event: Told) -> None:
        """A thread has handed over what it heard."""
        source, answer, is_first = event.source, event.answer, event.source.shown.value is None
        if self.world.is_large(source) and source.shown.value is None:
            gc.freeze()  # it stays: looking through it for garbage holds up keys for 200 ms
        source.ended(time.monotonic(), answer)
        told = answer.message if isinstance(answer, Failure) else ""
        is_usual = _is_not_local(answer)
        self.journal.add_entry(
            source.name, time.time(), line=source.line, took_s=source.took_s,
            problem="" if is_usual else told, outcome=told if is_usual else "",
        )  # fmt: skip
        if is_first:
            self._paint()
        elif self._paints is None:
            self._paints = asyncio.get_running_loop().call_later(_TOGETHER_S, self._paint)

    def _paint(self) -> None:
        self._paints = None
        if not self._is_there:
            return
        if self.view.is_ready:
            self.view.paint()
        self._frame(time.monotonic())

    def _frame(self, now: float) -> None:
        """Paints the title and the lines around the view."""
        link, cluster = self.world.link, self.world.cluster.shown
        name = cluster.value.id if cluster.value is not None else ""
        self._head.show_parts(
            ("penstock console", "bold"), "  ",
            (" READ-ONLY " if self.door.read_only else "", "reverse"),
            f"{'  ' if self.door.read_only else ''}{link.bootstrap}",
            (f"  {name}  {self.zone.zone_name}" if self.size.width >= FRAMED.width else "", "dim"),
        )  # fmt: skip
        self._age(now)
        self._tabs.show_tabs(self.size.width, self.here.tab)
        main = self.world.main(self.here).shown
        failure = cluster.failure or main.failure
        if _is_not_local(failure):
            failure = None
        # A change costs the styles of all that is on the screen: none while a view is made.
        view, body = self.view, self._ground.query_one("#body").size
        large = view.is_large if view.is_measured else view.has_frames_in(body)
        self._ground.set_class(large, "large")
        words = ""
        if failure is not None:
            words = f"! {failure.message}" + (f"  → {failure.hint}" if failure.hint else "")
        elif self.here.kind not in (places.OVERVIEW, places.NODES):
            words = self._wrong_in_cluster()
        self._trouble.set_class(bool(words) and self.here != HOME, "there")
        self._trouble.show_parts(words)
        self._command_line.show_parts(f"$ {self._line()}")

    def _wrong_in_cluster(self) -> str:
        """In one line, wherever somebody is."""
        found = [one.what for one in of_cluster(self.world.nodes.shown.value)]
        return f"! {'; '.join(found)}  → {places.key_of(places.NODES)}" if found else ""

    def _age(self, now: float) -> None:
        shown = self.world.main(self.here).shown
        words, style = "asking …", "yellow"
        if shown.value is not None:
            old = now - shown.at_s
            sick = shown.failure is not None
            style = "bold red" if sick else "yellow" if old > _OLD_S else "green"
            words = f"{'✗ lost, this is' if sick else '●'} {age(old)}{' old' if sick else ''}"
        elif shown.failure is not None:
            words, style = "✗ no answer", "bold red"
        if self.is_paused:
            words, style = f"paused  {words}", "bold yellow"
        self._age_words.show_parts((words, style))

    def _line(self) -> str:
        view = self.view
        if view.is_ready and (line := view.line()):
            return line
        world = self.world
        return lines.line(self.here, world.link.bootstrap, world.data_dir, world.jobs_folder)

    # Places -------------------------------------------------------------------------------------

    async def go_to(self, place: Place) -> None:
        """Show another place."""
        self.history.go_to(place)
        await self._show()

    async def _show(self) -> None:
        """Keys are handled in other tasks than answers are: at any moment there is a view for the
        place where somebody is, and it is painted from when it is ready."""
        here = self.here
        view = self._shown.pop(here, None)
        made = view is None
        if view is None:
            view = self._made(here)
        self._shown[here] = view  # the one that was seen last is the last
        gone = []
        for place, other in list(self._shown.items())[:-1]:
            other.display = False
            if len(self._shown) > _VIEWS_MOST and place.name:
                gone.append(self._shown.pop(place))
        view.display = True
        if made:
            await self._ground.query_one("#body", Vertical).mount(view)
        for other in gone:
            await other.remove()
        if self.here == here and self._is_there:
            self._typed()
            self._tick()

    def _made(self, place: Place) -> View:
        if place.kind == LOG:
            return LogView(place, self.world, self.journal)
        return VIEWS[place.kind](place, self.world)

    async def on_view_go(self, event: View.Go) -> None:
        """A view or a tab leads somewhere."""
        await self.go_to(event.place)

    async def action_go(self, kind: str) -> None:
        """To one of the lists."""
        await self.go_to(Place(kind))

    async def action_topology(self) -> None:
        """Show writers and readers of what is under the cursor."""
        part = topology.part_under(self.focused, self.here)
        await self.go_to(Place(places.TOPOLOGY))
        if part is not None and isinstance(self.view, topology.TopologyView):
            self.view.walk_to(part)

    async def action_heat(self) -> None:
        """The partitions of the topic that is seen, or of all."""
        is_one = self.here.kind in (places.TOPIC, places.RECORDS, places.TAIL)
        await self.go_to(Place(places.HEAT, self.here.name if is_one else ""))

    async def action_back(self) -> None:
        """To where they were before."""
        if self.history.back():
            await self._show()

    async def action_forward(self) -> None:
        """And ahead again."""
        if self.history.forward():
            await self._show()

    async def action_up(self) -> None:
        """Out of what is being typed, out of a filter, or up."""
        prompt, view = self._ground.query_one(Prompt), self.view
        if not prompt.is_open and view.escape():
            return
        if prompt.is_open or view.filter_text:
            if prompt.kind != JUMP:
                view.filter_text = ""
            self._typed()
        else:
            await self.go_to(self.here.above)

    # What is typed ------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disables actions: the prompt's own while one is typed into, and all but leaving beside a
        dialog.
        """
        if action in ("jump", "filter") and isinstance(self.focused, Input):
            return False
        if action in _OURS and len(self.screen_stack) > 1 and action not in _BESIDE:
            return False
        return super().check_action(action, parameters)

    def action_jump(self) -> None:
        """Ask where to."""
        self.query_one(Prompt).open_prompt(JUMP)

    def action_filter(self) -> None:
        """Ask what to keep."""
        if (box := self.view.filter_box()) is not None:
            box.focus()
        elif self.view.has_filter:
            self.view.filter_text = ""
            self.query_one(Prompt).open_prompt(FILTER)
            self._paint()
        else:
            self.notify("there is nothing to filter here", markup=False)

    def on_input_changed(self, event: Input.Changed) -> None:
        """A filter works while it is typed."""
        prompt = self._ground.query_one(Prompt)
        if prompt.kind == FILTER and event.value != self.view.filter_text:
            self.view.filter_text = event.value
            self._paint()

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go there, or keep the filter."""
        if self._ground.query_one(Prompt).kind == JUMP:
            try:
                place = places.jump(event.value)
            except NoPlace as wrong:
                self.notify(str(wrong), severity="error", markup=False)
                return
            await self.go_to(place)
        else:
            self._typed()
            self.world.groups.request_update()

    def _typed(self) -> None:
        self._ground.query_one(Prompt).close()
        if table := self.view.first_table():
            table.focus()
        self._paint()

    # Changes ------------------------------------------------------------------------------------

    def action_undo(self) -> None:
        """Take the last change back."""
        self.door.undo()

    async def _changed(self, is_gone: bool) -> None:
        """Something was changed, or tried: everything is asked anew. is_gone: what is seen here is
        not there any more."""
        self.world.request_updates()
        if is_gone:
            await self.go_to(self.here.above)
        self._tick()

    def on_key(self, event: events.Key) -> None:
        """A change that cannot be made here says where it can."""
        changes = CHANGES.get(event.character or "")
        is_typing = len(self.screen_stack) > 1 or isinstance(self.focused, Input)
        if changes and not is_typing and event.key not in self.screen.active_bindings:
            self.notify(
                "; ".join(f"{one.title} works {one.scope}" for one in changes), markup=False
            )

    async def act(self, action: Action) -> None:
        """Runs an action of the palette: at the list that it belongs to; on one thing where the
        place has one, else tells where it works.
        """
        kind = KINDS.get(action.scope)
        if kind is None:
            await self.run_action(action.call)
            return
        if not works(action.scope, self.here.kind) and not Place(kind).needs_name:
            await self.go_to(Place(kind))
        if works(action.scope, self.here.kind):
            await self.run_action(action.call, self.view)
        else:
            scopes = [one.scope for one in ACTIONS if one.title == action.title]
            self.notify(
                f"{action.title} works {' or '.join(scopes)}: go to one first", markup=False
            )

    # Everything else ----------------------------------------------------------------------------

    def action_copy(self) -> None:
        """The command line, to the terminal's clipboard."""
        line = self._line()
        self.copy_to_clipboard(line)
        self.journal.add_entry("copied", time.time(), line=line)
        self.notify(f"copied: {line}", markup=False)

    def action_refresh(self) -> None:
        """Ask again now, also while it is paused; and write the screen anew."""
        self.paint_anew()
        for source in self.world.asked(self.here):
            source.request_update()
        paused, self.is_paused = self.is_paused, False
        self._tick()
        self.is_paused = paused

    def action_pause(self) -> None:
        """Ask no more, or again."""
        if self.view.pause():
            return
        self.is_paused = not self.is_paused
        self._tick()

    def action_zone(self) -> None:
        """Times in UTC, or in the zone of this host."""
        self.notify(f"times are in {self.zone.switch()}", markup=False)
        self._paint()

    def on_unmount(self) -> None:
        """The process has its own zone and its collector of garbage back."""
        self.zone.restore()
        self._key_time.end_key()

    def action_help(self) -> None:
        """The keys that work here."""
        active = self.screen.active_bindings
        live = [(key, one.binding.action) for key, one in active.items() if one.enabled]
        self.push_screen(HelpScreen(list_keys(live, self.here.kind) + self.view.grammar()))


def _is_not_local(answer: object) -> bool:
    """True if the failure only means that the data is not on this host: its place shows a sentence
    instead.
    """
    return isinstance(answer, Failure) and answer.name == NOT_LOCAL


def run(
    link: Link, first: Place, jobs: str | None, changing: Link | None, *, mouse: bool = True
) -> int:
    """The console until somebody leaves it: the exit code. mouse: it is asked of the terminal; the
    other arguments are ConsoleApp's."""
    prepare()
    app = ConsoleApp(link, first, jobs, changing=changing)
    try:
        app.run(mouse=mouse)
    finally:
        app.world.close()
    return app.return_code or 0
