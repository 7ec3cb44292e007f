"""A login by raw bytes: each step is answered, or the connection is closed."""

import time
from struct import pack, unpack_from

from appliance.authentication.mechanisms import BY_NAME
from benchmarks.peer import WrongAnswer
from benchmarks.requests import compact, frame, string
from tests.sasl.scram_client import ScramClient

CLOSED = "closed"


def bare(message):
    """Without Kafka's header."""
    return pack(">i", len(message)) + message


def handshake(mechanism, version=1):
    return frame(17, version, 7, string(mechanism))


def authenticate(message, version=1):
    if version >= 2:
        return frame(36, version, 8, compact(message) + b"\0", flexible=True)
    return frame(36, version, 8, pack(">i", len(message)) + message)


def plain(user, password, acts_as=""):
    return f"{acts_as}\0{user}\0{password}".encode()


class Talk:
    """One connection; `said` has what came of each step."""

    def __init__(self, wire):
        self.wire = wire
        self.said = []

    def ask(self, request):
        """The answer's bytes behind the correlation id, or CLOSED."""
        try:
            return self.wire.call(request)
        except (WrongAnswer, OSError):
            return CLOSED

    def handshake(self, mechanism, version=1):
        answer = self.ask(handshake(mechanism, version))
        if answer is not CLOSED:
            code, count = unpack_from(">hi", answer)
            at, offered = 6, []
            for _ in range(count):
                (size,) = unpack_from(">h", answer, at)
                offered.append(answer[at + 2 : at + 2 + size].decode())
                at += 2 + size
            answer = (code, sorted(offered))
        self.said.append(answer)
        return answer

    def authenticate(self, message, version=1):
        """(code, text, message, lifetime)."""
        answer = self.ask(authenticate(message, version))
        if answer is not CLOSED:
            answer = _flexible(answer[1:]) if version >= 2 else _classic(answer, version)
        self.said.append(answer)
        return answer

    def bare(self, message):
        """A message of SaslHandshake 0."""
        try:
            self.wire.socket.sendall(bare(message))
            self.wire.exact(0, 4)
            (size,) = unpack_from(">i", self.wire.buffer)
            self.wire.exact(0, size)
            answer = bytes(self.wire.view[:size])
        except (WrongAnswer, OSError):
            answer = CLOSED
        self.said.append(answer)
        return answer

    def any(self, key, version, body, *, flexible=False):
        """Another request; whether it was answered, and how many bytes."""
        answer = self.ask(frame(key, version, 9, body, flexible=flexible))
        self.said.append(answer if answer is CLOSED else "answered")
        return answer

    def plain(self, user, password, version=1):
        self.handshake("PLAIN")
        return self.authenticate(plain(user, password), version)

    def scram(self, mechanism, user, password, version=1, extensions=""):
        """The last answer, with the server's proof checked."""
        self.handshake(mechanism)
        return self.scram_messages(mechanism, user, password, version, extensions)

    def scram_messages(self, mechanism, user, password, version=1, extensions=""):
        client = ScramClient(BY_NAME[mechanism], user, password, extensions)
        first = self.authenticate(client.first(), version)
        if first is CLOSED or first[0]:
            return first
        last = self.authenticate(client.final(first[2]), version)
        if last is not CLOSED and not last[0]:
            assert last[2] == client.expected, "the server does not prove that it knows the user"
        return last

    def ends(self, within_s=10):
        """Whether the other side hangs up without being asked more."""
        self.wire.socket.settimeout(within_s)
        began = time.monotonic()
        try:
            closed = self.wire.socket.recv(1) == b""
        except ConnectionError:
            closed = True
        except TimeoutError:
            closed = False
        self.said.append(CLOSED if closed else "open")
        return time.monotonic() - began if closed else None


def _classic(answer, version):
    code, size = unpack_from(">hh", answer)
    at = 4 + max(size, 0)
    text = None if size < 0 else answer[4:at].decode()
    (size,) = unpack_from(">i", answer, at)
    message = answer[at + 4 : at + 4 + size]
    lifetime = unpack_from(">q", answer, at + 4 + size)[0] if version >= 1 else None
    return code, text, message, lifetime


def _flexible(answer):
    (code,) = unpack_from(">h", answer)
    text, at = _compact(answer, 2)
    message, at = _compact(answer, at)
    return code, None if text is None else text.decode(), message, unpack_from(">q", answer, at)[0]


def _compact(data, at):
    size = shift = 0
    while True:
        byte = data[at]
        at += 1
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return (None, at) if not size else (data[at : at + size - 1], at + size - 1)
