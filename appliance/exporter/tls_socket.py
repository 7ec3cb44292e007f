"""A TLS connection that waits as one in the clear does: by BlockingIOError. Imported where the
listener of metrics speaks TLS."""

import ssl
from contextlib import suppress
from typing import Any


class TlsSocket(ssl.SSLSocket):
    """Shakes hands with the first `recv`. What a server says meanwhile, a few KiB, fits into the
    buffer of a new connection."""

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Receives up to so many bytes. Raises BlockingIOError; OSError, also for a client whose
        certificate is not believed."""
        try:
            return super().recv(buflen, flags)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as wait:
            raise BlockingIOError from wait

    def _send_part(self, data: Any, flags: int = 0) -> int:
        """Sends a part; returns its number of bytes. Raises BlockingIOError, OSError."""
        try:
            return super().send(data, flags)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as wait:
            raise BlockingIOError from wait

    send = _send_part

    def shutdown(self, how: int) -> None:
        """Says that this is all, and waits for no answer to it. Raises OSError."""
        with suppress(ssl.SSLError):
            self.unwrap()
        super().shutdown(how)
