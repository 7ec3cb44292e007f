"""The command palette: every action, and every topic and group that was seen, by name."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from rich.text import Text
from textual.command import DiscoveryHit, Hit, Hits, Provider

from console.screens.actions import ACTIONS, Action, shown, works
from console.screens.places import Place
from console.show.output import plain

if TYPE_CHECKING:
    from console.screens.app import ConsoleApp


_BREATH: Final = 100


class Everything(Provider):
    """Search over everything, with names drawn as they are: a name with brackets in it is no
    markup.
    """

    async def discover(self) -> Hits:
        """The actions."""
        for action, run in self._actions():
            yield DiscoveryHit(Text(action.title), run, action.title, _help(action))

    async def search(self, query: str) -> Hits:
        """Actions and names that are like it."""
        matcher = self.matcher(query)
        for action, run in self._actions():
            if (score := matcher.match(action.title)) > 0:
                yield Hit(score, Text(action.title), run, action.title, _help(action))
        console = self._console
        for kind, names in console.world.names().items():
            for number, name in enumerate(names):
                if not number % _BREATH:
                    await asyncio.sleep(0)  # of 10,000 names no key waits for the last
                if (score := matcher.match(name)) > 0:
                    told = plain(f"{kind} {name}")
                    yield Hit(score, Text(told), partial(console.go_to, Place(kind, name)), told)

    @property
    def _console(self) -> "ConsoleApp":
        return cast("ConsoleApp", self.app)

    def _actions(self) -> Iterator[tuple[Action, Callable[[], object]]]:
        here = self._console.here.kind
        told = set()
        for action in sorted(ACTIONS, key=lambda one: not works(one.scope, here)):
            if action.palette and action.title not in told:  # what works here comes first
                told.add(action.title)
                yield action, partial(self._console.act, action)


def _help(action: Action) -> str:
    return f"{shown(action.keys[0])}: {action.about}".replace("[", r"\[")
