"""A connection to a broker that sends requests of any API and version, one or several at a time."""

import itertools
import socket
from struct import pack, unpack_from

from appliance.wire.messages import is_flexible
from tests.differential.plain import decode, encode

LIMIT_S = 60
API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
CLOSED = {"connection": "closed by the broker"}
"""What stands for an answer when the broker closed the connection instead."""

_numbers = itertools.count(1)


class Link:
    """Requests out, answers in, in order. `client_id` is what the broker is told. context: over
    TLS."""

    def __init__(self, address, client_id="differential", context=None):
        self._socket = socket.create_connection(address, LIMIT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            self._socket = context.wrap_socket(self._socket, server_hostname=address[0])
        self._client_id = client_id.encode()
        self._waiting = []
        self.closed = False

    def send(self, key, version, values, answered=True):
        """Send a request; `receive` gives its answer, when it is one that is answered."""
        body = encode(key, version, values)
        self.send_raw(key, version, body, is_flexible(key, version), answered)

    def send_raw(self, key, version, body, flexible, answered=True):
        """As `send`, for a body made by hand."""
        correlation = next(_numbers)
        head = pack(">hhih", key, version, correlation, len(self._client_id)) + self._client_id
        if flexible:
            head += b"\0"
        self._socket.sendall(pack(">i", len(head) + len(body)) + head + body)
        if answered:
            self._waiting.append((key, version, correlation, flexible))

    def receive(self):
        """The oldest answer that was not received yet, as plain values; CLOSED at an end."""
        key, version, correlation, flexible = self._waiting.pop(0)
        frame = self._frame()
        if frame is None:
            self.closed = True
            return CLOSED
        assert unpack_from(">i", frame)[0] == correlation, "an answer to another request"
        start = 5 if flexible and key != API_VERSIONS else 4
        if key == API_VERSIONS and unpack_from(">h", frame, 4)[0] == 35:
            version = 0  # KIP-511: whoever asks in an unknown version is answered in version 0
        return decode(key, version, frame[start:])

    def ask(self, key, version, values):
        """Send and receive."""
        self.send(key, version, values)
        return self.receive()

    def login(self, name, password):
        """Log in by PLAIN. Raises AssertionError if that is refused."""
        self.ask(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
        answer = self.ask(SASL_AUTHENTICATE, 2, {"auth_bytes": f"\0{name}\0{password}".encode()})
        assert answer.get("error_code") == "NONE", answer

    def half_close(self):
        """Send no more (SHUT_WR); answers still come."""
        self._socket.shutdown(socket.SHUT_WR)

    def close(self):
        self._socket.close()

    def _frame(self):
        head = self._exact(4)
        return None if head is None else self._exact(unpack_from(">i", head)[0])

    def _exact(self, size):
        data = bytearray()
        while len(data) < size:
            try:
                more = self._socket.recv(size - len(data))
            except ConnectionError:
                return None
            if not more:
                return None
            data += more
        return bytes(data)
