"""How far something is that goes through many bytes, on a terminal."""

import sys
import time
from typing import Final

from console.streams import paint

_EVERY_S: Final = 0.5
_MB: Final = 1_000_000
_MINUTE_S: Final = 60


class Progress:
    """How far it is, on a terminal."""

    def __init__(self, total: int) -> None:
        self._total, self._read = total, 0
        self._began_s = self._told_s = time.monotonic()
        self._shows = sys.stderr.isatty()

    def add_bytes(self, more: int) -> None:
        """So many bytes more."""
        self.is_at(self._read + more, self._total)

    def is_at(self, read: int, total: int) -> None:
        """So many bytes, of so many."""
        self._read, self._total = read, total
        now_s = time.monotonic()
        if not self._shows or now_s - self._told_s < _EVERY_S:
            return
        self._told_s = now_s
        told = progress(self._read, self._total, now_s - self._began_s)
        paint(f"\r\033[K{told}", err=True)

    def wipe(self) -> None:
        """Make room for a line."""
        if self._shows:
            paint("\r\033[K", err=True)


def progress(read: int, total: int, took_s: float) -> str:
    """Bytes, share, rate and time left as a person reads them."""
    rate = read / took_s if took_s else 0.0
    text = f"{read / _MB:.0f} of {total / _MB:.0f} MB"
    if not total or not rate:
        return text
    left_s = max(total - read, 0) / rate
    left = f"{left_s:.0f} s" if left_s < 2 * _MINUTE_S else f"{left_s / _MINUTE_S:.0f} min"
    return f"{text} ({min(100 * read / total, 100):.0f} %), {rate / _MB:.0f} MB/s, {left} left"
