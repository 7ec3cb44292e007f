"""The numbers of a ring's slots have letters inside `appliance/ring` only; elsewhere they have the
names of their operation (`ring/slots.py`)."""

import ast
from pathlib import Path

import pytest

from appliance.ring import slots
from appliance.ring.messages import Message

APPLIANCE = Path(__file__).parents[2] / "appliance"
LETTERS = set("abcdefghij")


def letters_in(text):
    """Lines that reach a number of a slot by its letter."""
    for node in ast.walk(ast.parse(text)):
        name = getattr(node, "attr", None) or getattr(node, "arg", None)
        if isinstance(node, ast.Attribute | ast.keyword) and name in LETTERS:
            yield node.value.lineno, name


def test_no_room_but_the_ring_knows_a_number_by_its_letter():
    found = [
        (str(path.relative_to(APPLIANCE)), *one)
        for path in APPLIANCE.rglob("*.py")
        if path.parent.name != "ring"
        for one in letters_in(path.read_text())
    ]
    assert not found


def test_a_letter_is_found():
    assert list(letters_in("x = message.a")) == [(1, "a")]
    assert list(letters_in("push(e=3)")) == [(1, "e")]


SLOT = Message(1, 2, 3, 4, *range(10, 20), b"payload")
VIEWS = [name for name in vars(slots) if name.startswith("read_")]


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_the_message_under_other_names(name):
    view = getattr(slots, name)(SLOT)
    assert view == SLOT
    assert (view.op, view.flags, view.handle, view.token, view.payload) == (1, 2, 3, 4, b"payload")
    own = {key for key in vars(type(view)) if not key.startswith("_")}
    assert own and all(getattr(view, key) in SLOT[4:14] for key in own)


def test_hot_messages_give_their_numbers_in_the_order_that_is_said():
    assert slots.unpack_append(SLOT) == slots.unpack_mark(SLOT) == (2, 3, 4, 10, 11, 18, 19)
    assert slots.unpack_read(SLOT) == (2, 4, 10, 11, 18, 19)
    assert slots.unpack_replica_read(SLOT) == (2, 4, 10, 11, 15, 16, 18, 19)
    assert slots.unpack_found(SLOT) == (10, 11, 12, 13, 14, 18, 19, 16, 17)
