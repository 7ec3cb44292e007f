"""Shared by the views about access: going around them, asking whether somebody may do
something."""

from typing import Final

from console.screens.places import ACCESS, ACLS, AUDIT, CAN, CERTIFICATES, USERS, Place
from console.screens.prompt import JUMP, Prompt
from console.screens.view import Part, View

_TITLES: Final = {USERS: "Users", ACLS: "ACLs", AUDIT: "Audit", CERTIFICATES: "Certificates"}
FREE: Final = "no authorizer: all is allowed"


def after(kind: str) -> str:
    """The kind of place that follows one of ACCESS."""
    return ACCESS[(ACCESS.index(kind) + 1) % len(ACCESS)]


def go_to_next(view: View) -> None:
    """To the next of them."""
    view.post_message(View.Go(Place(after(view.place.kind))))


def titles(kind: str) -> tuple[Part, ...]:
    """The names of all of them, for a summary; the one that is seen stands out."""
    parts: list[Part] = []
    for one, title in _TITLES.items():
        parts += [(title, "bold underline" if one == kind else "dim"), "  "]
    return tuple(parts)


def ask_whether(view: View, begun: str = "") -> None:
    """Let a question be typed; Enter leads to its answer. begun: what stands there at first."""
    view.app.query_one(Prompt).open_prompt(JUMP, f"{CAN} {begun}" if begun else f"{CAN} ")
