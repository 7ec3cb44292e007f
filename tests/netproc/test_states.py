"""The table of a connection's states: whole, and drawn as it is."""

import re
from pathlib import Path

import pytest

from appliance.netproc.connections import connection_states
from appliance.netproc.connections.connection_states import (
    CLOSE,
    CLOSED,
    EVENTS,
    HANDSHAKE,
    MOVES,
    MUTE,
    NAMES,
    OPEN,
)

README = Path(connection_states.__file__).with_name("README.md")


def test_every_state_can_be_reached_and_left_and_the_last_is_for_ever():
    reached, found = set(), {HANDSHAKE}
    while found - reached:
        reached |= found
        found |= {after for (before, _), after in MOVES.items() if before in reached}
    assert reached == set(range(len(NAMES)))
    closing = {before for (before, event) in MOVES if event == CLOSE}
    assert closing == reached - {CLOSED}, "everybody can be hung up on"
    assert not [before for before, _ in MOVES if before == CLOSED]
    assert {event for _, event in MOVES} == set(range(len(EVENTS)))


def test_what_is_not_in_the_table_cannot_happen():
    with pytest.raises(AssertionError, match="mute cannot happen to a connection that is closed"):
        connection_states.next_state(CLOSED, MUTE)
    assert connection_states.next_state(OPEN, CLOSE) == CLOSED


@pytest.mark.interpreted("an installation has no README files")
def test_the_readme_draws_the_table():
    rows = re.findall(r"^\| ([a-z]+) \|(.+)\|$", README.read_text(), re.MULTILINE)
    head = re.search(r"^\| state \|(.+)\|$", README.read_text(), re.MULTILINE)
    events = [cell.strip() for cell in head[1].split("|")]
    assert events == list(EVENTS)
    drawn = {
        (NAMES.index(name), number): NAMES.index(cell.strip())
        for name, cells in rows
        if name in NAMES
        for number, cell in enumerate(cells.split("|"))
        if cell.strip()
    }
    assert drawn == MOVES
