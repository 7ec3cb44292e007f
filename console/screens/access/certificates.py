"""Certificates: what each TLS listener shows, and when it ends."""

import time
from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from console.model.access.certificates import AT_ONCE_S, SOON_S, Shown, describe_problem
from console.screens.access import around
from console.screens.actions import ALL_CERTIFICATES, bindings
from console.screens.places import keeps
from console.screens.rows import Cell, Column, Rows
from console.screens.view import View, Words
from console.show.figures import NOT_KNOWN, age, moment, some

_WIDE: Final = 110
_COLUMNS: Final = (
    Column("LISTENER", 16),
    Column("ADDRESS", 26),
    Column("ENDS", 10),
    Column("IN", 11, right=True),
    Column("SUBJECT", 0, from_width=_WIDE),
    Column("", 0, below_width=_WIDE),
)


class CertificatesView(View):
    """The list; below it the names that the certificate under the cursor is for."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ALL_CERTIFICATES)
    DEFAULT_CSS = """
    CertificatesView #about { height: 4; padding: 0 1; border-top: solid $foreground 20%; }
    CertificatesView.large #about { height: 5; }
    """
    has_filter: ClassVar[bool] = True
    frames: ClassVar[Mapping[str, str]] = {
        "certificates": "Certificates  {}", "about": "This certificate",
    }  # fmt: skip

    def compose(self) -> ComposeResult:
        yield Words(name="summary", classes="summary")
        yield Rows(_COLUMNS, name="certificates", opens=False)
        yield Words(name="about")

    def on_mount(self) -> None:
        """Starts without certificates."""
        self._found: dict[str, Shown] = {}

    def paint(self) -> None:
        seen, rows = self.world.certificates.shown.value, self.query_one("#certificates", Rows)
        words = self.query_one("#summary", Words)
        if seen is None:
            words.show_parts(*around.titles(self.place.kind))
            rows.show_rows([], lambda key: (key,), empty=self.waiting())
            return
        now_s = time.time()
        found = {_address(one): one for one in seen if keeps(self.filter_text, _text(one))}
        self._found = found
        words.show_parts(*around.titles(self.place.kind), some(len(found), "TLS listener"))
        rows.show_rows(
            list(found), lambda key: _cells(found[key], now_s), lambda key, n: _by(found[key], n),
            empty="no certificate is so" if self.filter_text else "no listener speaks TLS",
        )  # fmt: skip
        self._about()

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Another listener is under the cursor."""
        event.stop()
        self._about()

    def action_other(self) -> None:
        """The users."""
        around.go_to_next(self)

    def _about(self) -> None:
        one = self._found.get(self.query_one("#certificates", Rows).key or "")
        about = self.query_one("#about", Words)
        if one is None or one.certificate is None:
            about.show_parts((one.problem, "bold red") if one is not None else "")
            return
        found = one.certificate
        wrong = describe_problem(found, time.time())
        about.show_parts(
            (found.subject, "bold"), (f"  {wrong}" if wrong else "", "bold red"),
            f"\nfor {', '.join(found.names) or 'no name'}"
            f"\nfrom {moment(int(found.begins_s * 1000))} to {moment(int(found.ends_s * 1000))}",
        )  # fmt: skip


def _address(one: Shown) -> str:
    return f"{one.listener.host}:{one.listener.port}"


def _text(one: Shown) -> str:
    found = one.certificate
    more = f"{found.subject} {' '.join(found.names)}" if found is not None else one.problem
    return f"{one.listener.name} {_address(one)} {more}"


def _cells(one: Shown, now_s: float) -> tuple[Cell, ...]:
    name, found = one.listener.name or NOT_KNOWN, one.certificate
    if found is None:
        return name, _address(one), ("none", "bad"), "", (one.problem, "bad"), ""
    left_s = found.ends_s - now_s
    ink = "bad" if left_s < AT_ONCE_S else "warn" if left_s < SOON_S else "good"
    left = age(left_s) if left_s > 0 else "ended"
    day = moment(int(found.ends_s * 1000))[:10]
    return name, _address(one), (day, ink), (left, ink), found.subject, ""


def _by(one: Shown, column: int) -> str | float:
    ends_s = -one.certificate.ends_s if one.certificate is not None else 0.0
    subject = one.certificate.subject if one.certificate is not None else ""
    values: tuple[str | float, ...] = (
        one.listener.name, _address(one), ends_s, ends_s, subject, ""
    )  # fmt: skip
    return values[column]
