"""The two themes, dark and light: colours by what they mean, and the sixteen colours of a terminal
as each theme shows them, so that a word is as red in a sentence as it is in a table. A terminal of
sixteen colours has both themes in those.
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
_SIXTEEN, _MILLIONS = "standard", "truecolor"
"""Rich's names for terminals of so many colours. A picture without a terminal has all."""
_BRIGHT_INKS: Final = {
    "red": "#ff5555", "green": "#55ff55", "yellow": "#ffff55", "blue": "#5555ff",
    "magenta": "#ff55ff", "cyan": "#55ffff",
}  # fmt: skip
"""The inks of a dark terminal of sixteen colours, as exactly those: of the usual ones, the nearest
is white for most."""
_DEEP_INKS: Final = {
    "red": "#aa0000", "green": "#00aa00", "yellow": "#aa5500", "blue": "#0000aa",
    "magenta": "#aa00aa", "cyan": "#00aaaa",
}  # fmt: skip
"""The same for a light one."""


def _theme(
    name: str,
    ground: str,
    text: str,
    cursor: str,
    key: str,
    inks: dict[str, str],
    fills: tuple[str, str, str],
) -> Theme:
    """ground, text, cursor: of the screen. key: of keys to press. fills: the first colour, which
    titles and the open tab have; the grounds of dialogs and of bars."""
    first, surface, panel = fills
    is_dark = name == _DARK
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


_DARK, _LIGHT = "penstock-dark", "penstock-light"
DARK: Final = _theme(
    _DARK, "#0e1217", "#d8dee6", "#1f3c5c", "#f0b64c", _DARK_INKS,
    ("#62b0ff", "#161b22", "#1e2630"),
)  # fmt: skip
LIGHT: Final = _theme(
    _LIGHT, "#fcfdfe", "#1d242c", "#cfe3f8", "#8a3f00", _LIGHT_INKS,
    ("#0a5fb4", "#f1f4f7", "#e2e8ee"),
)  # fmt: skip
_DARK_16: Final = _theme(
    _DARK, "#000000", "#ffffff", "#0000aa", "#ffff55", _BRIGHT_INKS,
    ("#55ffff", "#000000", "#000000"),
)  # fmt: skip
_LIGHT_16: Final = _theme(
    _LIGHT, "#ffffff", "#000000", "#55ffff", "#aa5500", _DEEP_INKS,
    ("#0000aa", "#ffffff", "#ffffff"),
)  # fmt: skip


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
_ON_DARK_16: Final = _terminal(_DARK_16, _BRIGHT_INKS, ("#000000", "#ffffff"))
_ON_LIGHT_16: Final = _terminal(_LIGHT_16, _DEEP_INKS, ("#000000", "#555555"))


class Inked(App[None]):
    """An app with the two themes, dark at first."""

    def begin_themes(self) -> None:
        """Makes both known. A terminal of sixteen colours or of none shows the cursor reversed: the
        colour behind it would be black there."""
        colors = _MILLIONS if self.is_headless else self.console.color_system
        few = colors == _SIXTEEN
        self.ansi_theme_dark = _ON_DARK_16 if few else ON_DARK
        self.ansi_theme_light = _ON_LIGHT_16 if few else ON_LIGHT
        self.register_theme(_DARK_16 if few else DARK)
        self.register_theme(_LIGHT_16 if few else LIGHT)
        self.theme = DARK.name
        self.set_class(colors in (None, _SIXTEEN), "few-colors")

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Adds the cursor of themes that are not ours."""
        return super().get_theme_variable_defaults() | {CURSOR: "#808080"}

    def action_theme(self) -> None:
        """Light or dark."""
        self.theme = (LIGHT if self.theme == DARK.name else DARK).name
