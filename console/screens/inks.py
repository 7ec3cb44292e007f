"""The sixteen colours of a terminal as the light theme shows them: dark enough to be read on it."""

from typing import Final

from rich.terminal_theme import TerminalTheme

LIGHT: Final = TerminalTheme(
    (247, 247, 247),
    (0, 0, 0),
    [
        (0, 0, 0), (170, 40, 35), (45, 110, 25), (140, 85, 0),
        (40, 80, 180), (115, 50, 150), (0, 105, 145), (90, 90, 90), (110, 110, 110),
    ],
    [
        (200, 40, 40), (45, 125, 0), (160, 95, 0), (0, 100, 180),
        (180, 40, 180), (0, 120, 145), (60, 60, 60),
    ],
)  # fmt: skip
