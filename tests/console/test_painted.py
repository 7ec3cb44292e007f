"""What is written to the terminal: only cells that differ, and all that do."""

import asyncio
import random

from rich.cells import get_character_cell_size as _size
from textual.app import App
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.widgets import Static

from console.screens.painted import Changed, Painted

WIDTH, HEIGHT = 60, 12
CHARS = "abc 123─│█▲日本é👍"


class Screenful:
    """A terminal that knows nothing but where it writes: a cell is a character."""

    def __init__(self):
        self.cells = [[" "] * WIDTH for _ in range(HEIGHT)]

    def take(self, runs):
        for y, x, strip in runs:
            for segment in strip:
                for char in segment.text:
                    size = _size(char)
                    self.cells[y][x : x + size] = [(char, str(segment.style)), ""][:size]
                    x += size

    def put(self, strips):
        for y, strip in enumerate(strips):
            self.take([(y, 0, strip)])


class _Above(ModalScreen):
    def compose(self):
        yield Static("above it", id="box")


class _Two(App):
    def compose(self):
        with Horizontal():
            yield Static("", id="one")
            yield Static("", id="two")

    def __init__(self):
        super().__init__()
        self.painted, self.terminal, self.updates = Painted(), Screenful(), []

    def _display(self, screen, renderable):
        if renderable is not None:
            update = self.painted.find_changes(renderable)
            self.updates.append(update)
            if isinstance(update, Changed):
                self.terminal.take(update.runs)
            elif update is not None:
                self.terminal.put(screen._compositor.render_strips())
        super()._display(screen, renderable)

    def shown(self):
        whole = Screenful()
        whole.put(self.screen._compositor.render_strips())
        return whole.cells


def _text(chance):
    lines = []
    for _ in range(HEIGHT):
        text, size = "", 0
        while size < 20 + chance.randrange(9):
            text += (char := chance.choice(CHARS))
            size += _size(char)
        lines.append(text)
    return "\n".join(lines)


def play(act):
    async def run():
        app = _Two()
        async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
            await act(app, pilot)

    asyncio.run(run())


def test_the_terminal_shows_what_was_drawn_whatever_changes():
    chance = random.Random(5)

    async def act(app, pilot):
        for turn in range(60):
            part = app.query_one(chance.choice(("#one", "#two")), Static)
            if turn % 10 == 9:
                part.display = not part.display
            elif turn % 20 == 5:
                await app.push_screen(_Above())
                await pilot.pause()
                assert app.terminal.cells == app.shown()
                app.pop_screen()
            else:
                part.update(_text(chance), layout=turn % 3 == 0)
            await pilot.pause()
            assert app.terminal.cells == app.shown()

    play(act)


def test_one_figure_is_written_alone():
    async def act(app, pilot):
        part = app.query_one("#one", Static)
        part.update("\n".join(f"line {n}: 41 records" for n in range(9)))
        await pilot.pause()
        app.updates.clear()
        part.update("\n".join(f"line {n}: {42 if n == 5 else 41} records" for n in range(9)))
        await pilot.pause()
        (update,) = [one for one in app.updates if one is not None]
        assert [(y, x, strip.text) for y, x, strip in update.runs] == [(5, 9, "2")]
        app.updates.clear()
        part.refresh(layout=True)
        await pilot.pause()
        assert app.updates and not any(app.updates)  # drawn, and nothing to be written

    play(act)


def test_what_is_not_known_any_more_is_written_whole():
    async def act(app, pilot):
        app.painted.forget_all()
        app.updates.clear()
        app.query_one("#one", Static).update("changed")
        await pilot.pause()
        last = app.updates[-1]
        assert [(y, x, strip.cell_length) for y, x, strip in last.runs] == [
            (y, 0, WIDTH) for y in range(HEIGHT)
        ]

    play(act)


def test_cells_that_stayed_between_two_that_changed_are_written_where_that_is_shorter():
    async def act(app, pilot):
        part = app.query_one("#one", Static)
        part.update("a...b" + "." * 9 + "c")
        await pilot.pause()
        app.updates.clear()
        part.update("A...B" + "." * 9 + "C")
        await pilot.pause()
        (update,) = [one for one in app.updates if one is not None]
        assert [strip.text for _, _, strip in update.runs] == ["A...B", "C"]

    play(act)
