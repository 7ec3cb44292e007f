"""TLS towards another node (RFC 8446, RFC 5246), by OpenSSL: the client's side of a connection.

Imported with the first connection that is encrypted.
"""

import select
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from appliance.peers.carrier import BLOCKED, ENDED, Carrier

_RECORD: Final = 16384
"""The most plain bytes of a TLS record, in bytes."""
_MOST: Final = 16 * _RECORD  # received in one call


class TlsCarrier(Carrier):
    """The client's side of TLS. `do_handshake` raises ConnectionAbortedError with a sentence for an
    operator if the nodes cannot agree."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, host: str) -> None:
        """host: the name or address that the certificate of the other side must carry, where the
        context checks names."""
        self._tls = context.wrap_socket(
            sock, server_hostname=host, do_handshake_on_connect=False, suppress_ragged_eofs=True
        )
        super().__init__(self._tls)

    def do_handshake(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self.wants = select.EPOLLIN
            return False
        except ssl.SSLWantWriteError:
            self.wants = select.EPOLLOUT
            return False
        except ssl.SSLCertVerificationError as cause:
            raise ConnectionAbortedError(
                f"its certificate is not accepted: {cause.verify_message}"
            ) from None
        except ssl.SSLError as cause:
            reason = (cause.reason or "the connection was closed").lower().replace("_", " ")
            raise ConnectionAbortedError(f"the TLS handshake failed: {reason}") from None
        self.wants = 0
        return True

    def receive_into(self, into: memoryview) -> int:
        count, most = 0, min(len(into), _MOST)
        self.buffered = False
        try:
            while count < most:
                got = self._tls.recv_into(into[count:most])
                if not got:
                    return count or ENDED
                count += got
            self.buffered = True
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass  # a new key that cannot be sent yet goes out with the next bytes
        return count or BLOCKED

    def send_pieces(self, pieces: Sequence[memoryview]) -> int:
        data = memoryview(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        sent = 0
        try:
            while sent < len(data):
                # One record a call: after WANT_WRITE OpenSSL insists on the same bytes.
                sent += self._tls.send(data[sent : sent + _RECORD])
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            pass
        return sent or BLOCKED

    def close(self) -> None:
        with suppress(OSError, ValueError):
            self._tls.unwrap()  # tells the other side, and does not wait for its answer
        super().close()
