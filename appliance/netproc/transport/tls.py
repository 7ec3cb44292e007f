"""TLS over the socket of one connection (RFC 8446, RFC 5246), by OpenSSL.

The handshake comes before the first request and is a conversation of several rounds; later ones
(new keys, tickets) OpenSSL has by itself between the records of a connection. A file cannot be sent
past it, so its pieces are read. Whoever hangs up says so to the client, whose library would take
the end for an attack. Called by the connection; nothing here waits.
"""

import socket
import ssl
from contextlib import suppress
from typing import Final

from appliance.netproc.transport import protocol_sniff
from appliance.netproc.transport.transport import BLOCKED, ENDED, READ, WRITE, Transport

RECORD: Final = 16384
"""The most plain bytes of a record; OpenSSL takes and gives one in a call."""
_MOST: Final = 16 * RECORD  # received or sent in one call of ours
_LEFT: Final = 1 << 16  # of what a refused client had sent, read so that it hears why

_WHY: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it shows no certificate, and ssl.client.auth=required",
    "NO_SHARED_CIPHER": "it knows none of our cipher suites (ssl.cipher.suites)",
    "UNSUPPORTED_PROTOCOL": "it speaks no version of TLS that ssl.enabled.protocols names",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust our certificate (ssl.truststore.location there)",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not take our certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it does not take our certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it says that our certificate has expired",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it takes no version of TLS that we offer",
}


class Tls(Transport):
    """The server's side. Raises OSError when the client has gone already."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self._tls = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        self._begun = False
        super().__init__(self._tls, sends_files=False, stays=True)

    def agree(self) -> bool:
        """Raises OSError with a sentence for whoever looks after the client, BrokenPipeError when
        it just went."""
        try:
            if not self._begun and not self._is_hello():
                self.wants = READ
                return False
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self.wants = READ
            return False
        except ssl.SSLWantWriteError:
            self.wants = WRITE
            return False
        except (ssl.SSLEOFError, ConnectionResetError):
            raise BrokenPipeError from None  # it says nothing of why
        except ssl.SSLError as problem:
            self._hear_out()
            raise ConnectionAbortedError(why(problem)) from problem
        self.wants = 0
        self.buffered = True  # a request may have come with the end of the handshake
        return True

    def continue_io(self) -> None:
        self.wants = 0
        self.buffered = True

    def receive(self, into: memoryview) -> int:
        tls, count = self._tls, 0
        most = min(len(into), _MOST)
        self.buffered = False
        try:
            while count < most:
                got = tls.recv_into(into[count:most])
                if got == 0:
                    return count or ENDED
                count += got
                if got < RECORD and not tls.pending():
                    return count  # to ask for more costs an exception; the loop tells of it
            self.buffered = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLWantWriteError:
            self.wants = WRITE
        return count or BLOCKED

    def send_pieces(self, pieces: list[bytes], more: bool) -> int:
        data = memoryview(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        sent, end = 0, min(len(data), _MOST)
        try:
            while sent < end:
                sent += self._tls.send(data[sent : min(sent + RECORD, end)])
        except ssl.SSLWantWriteError:
            pass
        except ssl.SSLWantReadError:
            self.wants = READ
        return sent or BLOCKED

    def send_file(self, fd: int, position: int, count: int) -> int:
        raise AssertionError("it sends bytes alone")

    def certificate(self) -> bytes | None:
        """The client's, as DER; None: it has shown none."""
        return self._tls.getpeercert(binary_form=True)

    def close(self) -> None:
        with suppress(OSError, ValueError):
            self._tls.unwrap()  # tells the client, and does not wait for its answer
        super().close()

    def _is_hello(self) -> bool:
        """True if the first bytes have come. Raises OSError where they are no TLS."""
        try:
            head = socket.socket.recv(self._tls, 4, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        if not head:
            raise BrokenPipeError  # who has sent nothing only looked whether somebody is here
        if found := protocol_sniff.on_tls(head):
            raise ConnectionAbortedError(found)
        self._begun = True
        return True

    def _hear_out(self) -> None:
        """Read what came behind: the kernel would send a reset for it, which overtakes the alert
        that says what is wrong."""
        with suppress(OSError):
            socket.socket.recv(self._tls, _LEFT)
            self._tls.shutdown(socket.SHUT_WR)


def why(problem: ssl.SSLError) -> str:
    """Why a handshake came to nothing, in words."""
    reason = problem.reason or ""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"its certificate is not taken: {problem.verify_message}"
    return _WHY.get(reason) or f"no agreement on TLS: {reason.lower().replace('_', ' ')}"
