"""stdout and stderr of the command: what a write that fails means, and what a terminal never gets.

A failed write to stdout ends the command (`ReaderGone`, `OutputFailed`); one to stderr is nothing.
A terminal gets control characters escaped whoever wrote them, because names, keys and values are
made by strangers; `paint` is the way of our own escape sequences.
"""

import codecs
import io
import os
import re
import select
import sys
from contextlib import suppress
from typing import Any, Final, TextIO

from console.plain_shapes import ERRORS, register_errors

_STDIN, _STDOUT, _STDERR = range(3)
_HARMFUL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters apart from newline and tab, those that turn the direction of text, and what
is no character."""


_HARMFUL_IN_JSON: Final = re.compile(
    "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""The same without what JSON escapes anyway."""


class OutputFailed(Exception):
    """A write to stdout failed; the text says why. It is no OSError, so that a command does not
    take it for one of its files."""


class ReaderGone(OutputFailed):
    """Raised when the reader of stdout is gone."""


class _Outlet(io.FileIO):
    """The descriptor behind a standard stream. fails: whether a failed write is told. escapes: what
    a terminal is not to get."""

    def __init__(self, fd: int, encoding: str, *, fails: bool, escapes: bool = True) -> None:
        super().__init__(fd, "w", closefd=False)
        self._fails = fails
        self._decoder: codecs.IncrementalDecoder | None = None
        self._encoding = encoding
        if escapes and self.isatty():
            self._decoder = codecs.getincrementaldecoder(encoding)("surrogateescape")

    def write(self, data: Any, /) -> int:
        """All of the bytes, escaped on a terminal; their number."""
        count = len(data)
        self.paint(data if self._decoder is None else self._escaped(self._decoder, data))
        return count

    def paint(self, data: Any) -> None:
        """All of the bytes as they are."""
        rest = memoryview(data).cast("B")
        try:
            while rest:
                sent = super().write(rest)
                if sent is None:  # it does not wait by itself, and is full
                    select.select([], [self], [])
                rest = rest[sent or 0 :]
        except OSError as why:
            if not self._fails:
                return
            if isinstance(why, BrokenPipeError):
                raise ReaderGone from None
            raise OutputFailed(why.strerror or str(why)) from None

    def _escaped(self, decoder: codecs.IncrementalDecoder, data: Any) -> bytes:
        text = _HARMFUL.sub(lambda found: _escape(found[0]), decoder.decode(bytes(data)))
        return text.encode(self._encoding, "backslashreplace")


def escaped(text: str) -> str:
    r"""The text with \xNN and \uNNNN for what a terminal or a reader might be misled by."""
    return _HARMFUL.sub(lambda found: _escape(found[0]), text)


def escaped_in_json(line: str) -> str:
    """A text of JSON that says the same: harmful characters stand in its strings alone."""
    return _HARMFUL_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def _escape(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no character
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def settle_streams() -> None:
    """Put streams that know these rules in the place of this process's stdout and stderr."""
    for fd, flags in ((_STDIN, os.O_WRONLY), (_STDOUT, os.O_RDONLY), (_STDERR, os.O_WRONLY)):
        # What is opened later must not be taken for a stream that was not there: reading and
        # writing it fails.
        with suppress(OSError):
            os.fstat(fd)
            continue
        os.open(os.devnull, flags)
    sys.stdout = _stream(sys.stdout, _STDOUT)
    sys.stderr = _stream(sys.stderr, _STDERR)
    if sys.stdin is None:
        sys.stdin = os.fdopen(_STDIN, encoding="utf-8", closefd=False)


def _stream(before: TextIO | None, fd: int) -> TextIO:
    encoding = (before.encoding if before is not None else None) or "utf-8"
    is_unicode = codecs.lookup(encoding).name == "utf-8"
    is_out = fd == _STDOUT
    outlet = _Outlet(fd, encoding, fails=is_out)
    return io.TextIOWrapper(
        io.BufferedWriter(outlet),
        encoding,
        # A file name keeps its bytes; what an alphabet lacks is escaped.
        "surrogateescape" if is_unicode and is_out else "backslashreplace",
        line_buffering=not is_out or outlet.isatty(),
    )


def is_unicode(stream: TextIO) -> bool:
    """True when every character can be written there."""
    return codecs.lookup(stream.encoding or "ascii").name == "utf-8"


def paint(text: str, *, err: bool = False) -> None:
    """Write our own escape sequences. The text has none of a stranger's."""
    stream = sys.stderr if err else sys.stdout
    stream.flush()
    outlet = getattr(getattr(stream, "buffer", None), "raw", None)
    if isinstance(outlet, _Outlet):
        outlet.paint(text.encode(stream.encoding, "backslashreplace"))
    else:
        stream.write(text)
        stream.flush()


def write_raw(data: bytes) -> None:
    """Bytes to stdout as they are, on a terminal too."""
    out = sys.stdout.buffer
    out.flush()
    outlet = getattr(out, "raw", None)
    if isinstance(outlet, _Outlet):
        outlet.paint(data)
    else:
        out.write(data)


def painter() -> TextIO:
    """stderr for a library that draws with escape sequences, in shapes that its alphabet has."""
    register_errors()
    if not isinstance(getattr(getattr(sys.stderr, "buffer", None), "raw", None), _Outlet):
        return sys.stderr
    bare = io.BufferedWriter(_Outlet(_STDERR, sys.stderr.encoding, fails=False, escapes=False))
    return io.TextIOWrapper(bare, sys.stderr.encoding, ERRORS, line_buffering=True)


def flush() -> None:
    """Write what stdout still holds. Raises OutputFailed."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as why:
        raise OutputFailed(why.strerror or str(why)) from None


def hush() -> None:
    """Forget what stdout still holds: it cannot be written, and the interpreter would try again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError):
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
