"""The forms for moving a group's offsets."""

from collections.abc import Sequence
from typing import Final

from console.model.asking.change import Proposal
from console.model.asking.failure import Failure
from console.model.groups import group_changes
from console.model.groups.lag import Position
from console.model.groups.seek import read_to
from console.screens.changes.form import Field, Form, Values

_MOST: Final = 5


def seek_form(name: str, positions: Sequence[Position]) -> Form:
    """For the group of that name. positions: where it is; its topics are named."""
    topics = sorted({one.topic for one in positions})
    named = ", ".join(topics[:_MOST]) + (", …" if topics[_MOST:] else "")

    def propose(values: Values) -> Proposal:
        return group_changes.propose_move(
            name,
            to=values["to"].strip(),
            to_group=values["group"],
            to_file=values["file"].strip(),
            topics=tuple(values["topics"].split()),
        )

    return Form(
        f"Reset offsets of {name}",
        (
            Field(
                "to", "Where to", hint="start, end, 47, +5, -5, start+5, end-5, @2013-01-31, 2h",
                about="+5 and -5 count from the committed offset; 2h is that long ago.",
                check=_right,
            ),
            Field("group", "Or as group", about="Where another group is."),
            Field("file", "Or as file", about="Lines of TOPIC PARTITION OFFSET, CSV or JSON."),
            Field(
                "topics", "Only topics", hint=named,
                about="TOPIC or TOPIC:0,2; also topics that it has not committed yet.",
            ),
        ),
        propose,
    )  # fmt: skip


def _right(text: str) -> str:
    if not text.strip():
        return ""
    try:
        read_to(text.strip())
    except Failure as wrong:
        return wrong.hint or wrong.message
    return ""
