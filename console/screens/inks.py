"""The two themes, dark and light: colours by what they mean, and the sixteen colours of a terminal
as each theme shows them, so that a word is as red in a sentence as it is in a table.
"""

from typing import Final

from rich.terminal_theme import TerminalTheme
from textual.app import App
from textual.theme import Theme

CURSOR: Final = "cursor-background"
"""The variable for the row under the cursor: its words keep their own colours on it."""
_DARK_INKS: Final = {
    "red": "#ff7b72", "green": "#7fcf7a", "yellow": "#e9b84a", "blue": "#9db2ff",
    "magenta": "#d3a1f5", "cyan": "#5fc4dc",
}  # fmt: skip
_LIGHT_INKS: Final = {
    "red": "#b3202c", "green": "#1b7a34", "yellow": "#8f5600", "blue": "#4353c4",
    "magenta": "#8232a8", "cyan": "#00718c",
}  # fmt: skip


def _theme(name: str, ground: str, text: str, cursor: str, key: str, inks: dict[str, str]) -> Theme:
    """ground, text, cursor: of the screen. key: of keys to press, and of the tab that is open."""
    is_dark = inks is _DARK_INKS
    first = "#62b0ff" if is_dark else "#0a5fb4"
    surface, panel = ("#161b22", "#1e2630") if is_dark else ("#f1f4f7", "#e2e8ee")
    return Theme(
        name, primary=first, secondary=inks["cyan"], accent=key, foreground=text, background=ground,
        success=inks["green"], warning=inks["yellow"], error=inks["red"], surface=surface,
        panel=panel, dark=is_dark,
        variables={
            CURSOR: cursor, "text-primary": first, "text-error": inks["red"],
            "text-warning": inks["yellow"], "text-success": inks["green"],
            "footer-key-foreground": key, "border": first, "input-selection-background": cursor,
        },
    )  # fmt: skip


DARK: Final = _theme("penstock-dark", "#0e1217", "#d8dee6", "#1f3c5c", "#f0b64c", _DARK_INKS)
LIGHT: Final = _theme("penstock-light", "#fcfdfe", "#1d242c", "#cfe3f8", "#8a3f00", _LIGHT_INKS)


def _rgb(color: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(color[1:])
    return red, green, blue


def _terminal(theme: Theme, inks: dict[str, str], blacks: tuple[str, str]) -> TerminalTheme:
    """blacks: black and white, plain; bright ones are the same in both themes."""
    colors = [_rgb(blacks[0]), *map(_rgb, inks.values()), _rgb(blacks[1])]
    ground, text = theme.background or "", theme.foreground or ""
    return TerminalTheme(_rgb(ground), _rgb(text), colors, colors)


ON_DARK: Final = _terminal(DARK, _DARK_INKS, ("#0e1217", "#d8dee6"))
ON_LIGHT: Final = _terminal(LIGHT, _LIGHT_INKS, ("#1d242c", "#5b6672"))


class Inked(App[None]):
    """An app with the two themes, dark at first."""

    def begin_themes(self) -> None:
        """Makes both known. A terminal of sixteen colours or of none shows the cursor reversed: the
        colour behind it would be black there."""
        self.ansi_theme_dark, self.ansi_theme_light = ON_DARK, ON_LIGHT
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = DARK.name
        self.set_class(self.console.color_system in (None, "standard"), "few-colors")

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Adds the cursor of themes that are not ours."""
        return super().get_theme_variable_defaults() | {CURSOR: "#808080"}

    def action_theme(self) -> None:
        """Light or dark."""
        self.theme = (LIGHT if self.theme == DARK.name else DARK).name
