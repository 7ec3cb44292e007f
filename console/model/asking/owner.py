"""The way to an appliance by the owner's socket of its data folder (`appliance/base/owner.py`), for
clients that can only speak TCP.

A relay of this process listens on a free loopback port. Only who logs in with a password that is
made for this process alone gets through, because every user of the host can connect to that port.
"""

import os
import secrets
import socket
import struct
import threading
from contextlib import suppress
from functools import cache
from typing import Final

from appliance.base.owner import FILE, relay_name
from console.model.asking.profiles import Profile
from console.model.storage import data_folder

_MOST: Final = 1 << 16
_LOGIN_S: Final = 10.0
_AGAIN_S: Final = 0.05
_PATIENCE_S: Final = 3.0
_HANDSHAKE: Final = 17
_API_VERSIONS: Final = 18
_AUTHENTICATE: Final = 36
_USER: Final = "owner"


def is_named() -> bool:
    """True if the environment says which broker is meant."""
    return bool(os.environ.get("PENSTOCK_BOOTSTRAP"))


def is_there(folder: str) -> bool:
    """True if this user may use the owner's socket of an appliance that runs in this folder."""
    try:
        _connect(folder, 0.0).close()
    except OSError:
        return False
    return True


class Relay:
    """properties: of a client (librdkafka's) that goes by the owner's socket of this folder. It
    lives as long as this process."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._password = secrets.token_hex(32)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._door.getsockname()[1])
        threading.Thread(target=self._serve, name="relay", daemon=True).start()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def properties(self) -> dict[str, str]:
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": _USER,
            "sasl.password": self._password,
        }

    def _serve(self) -> None:
        while True:
            client, _ = self._door.accept()
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        """One connection, from its login to its end."""
        with client, suppress(OSError, struct.error):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.settimeout(_LOGIN_S)
            asked = self._let_in(client)
            if asked is None:
                return
            client.settimeout(None)
            with asked:
                threading.Thread(target=_pump, args=(asked, client), daemon=True).start()
                _pump(client, asked)

    def _let_in(self, client: socket.socket) -> socket.socket | None:
        """The connection to the appliance after the login; None: the password is not known, or
        something but ApiVersions, which the appliance answers, came before it. Raises OSError."""
        port = int(client.getsockname()[1])
        asked = _connect(self._folder, _PATIENCE_S, port)
        try:
            while True:
                frame = _frame(client)
                key, version, correlation = struct.unpack_from(">hhi", frame)
                if key == _HANDSHAKE:
                    _answer(client, correlation, struct.pack(">hih", 0, 1, 5) + b"PLAIN")
                elif key == _AUTHENTICATE:
                    flexible = version >= 2
                    known = secrets.compare_digest(_sasl_token(frame, flexible), self._token())
                    _answer(client, correlation, _outcome(version, known=known), flexible=flexible)
                    if known:
                        return asked
                    break
                elif key != _API_VERSIONS:
                    break  # the socket would serve it: to a stranger, as the administrator
                else:
                    asked.sendall(struct.pack(">i", len(frame)) + frame)
                    answer = _frame(asked)
                    client.sendall(struct.pack(">i", len(answer)) + answer)
        except BaseException:
            asked.close()
            raise
        asked.close()
        return None

    def _token(self) -> bytes:
        return f"\0{_USER}\0{self._password}".encode()


@cache
def relay_here() -> Relay | None:
    """The way to the appliance of this host, where its data folder is known without a request and
    has an owner's socket that this user may use; else None. One relay serves the whole process."""
    folder = data_folder.usual().path
    return Relay(folder) if is_there(folder) else None


def way(said: Profile) -> tuple[Profile, dict[str, str]]:
    """How the broker that nobody named is asked: by the owner's socket where there is one, else as
    it was said. Returns it with the properties of clients."""
    relay = relay_here()
    return (said, {}) if relay is None else (Profile(relay.bootstrap), relay.properties)


def _connect(folder: str, patience_s: float, port: int | None = None) -> socket.socket:
    """Connects to the owner's socket: again while the appliance is being replaced, for so long.
    port: where others reach this client. Raises OSError."""
    import time

    until = time.monotonic() + patience_s
    while True:
        one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        within = -1
        try:
            if port is not None:
                one.bind(relay_name("127.0.0.1", port, secrets.token_hex(8)))
            within = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            one.connect(f"/proc/self/fd/{within}/{FILE}")  # a path of any length
            return one
        except (ConnectionRefusedError, FileNotFoundError):
            one.close()
            if time.monotonic() >= until:
                raise
        except BaseException:
            one.close()
            raise
        finally:
            if within >= 0:
                os.close(within)
        time.sleep(_AGAIN_S)


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Pass on what comes until it ends; the other side is told of the end."""
    with suppress(OSError):
        while data := source.recv(1 << 18):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _frame(peer: socket.socket) -> bytes:
    """The next request or answer without its length. Raises OSError."""
    (size,) = struct.unpack(">i", _exactly(peer, 4))
    if not 8 <= size <= _MOST:
        raise OSError(f"a frame of {size} bytes before the login")
    return _exactly(peer, size)


def _exactly(peer: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        data = peer.recv(count - len(found))
        if not data:
            raise ConnectionResetError
        found += data
    return bytes(found)


def _answer(peer: socket.socket, correlation: int, body: bytes, *, flexible: bool = False) -> None:
    head = struct.pack(">i", correlation) + (b"\0" if flexible else b"")
    peer.sendall(struct.pack(">i", len(head) + len(body)) + head + body)


def _sasl_token(frame: bytes, flexible: bool) -> bytes:
    """The bytes of a SaslAuthenticate request (API key 36). Raises struct.error."""
    (length,) = struct.unpack_from(">h", frame, 8)
    at = 10 + max(0, length)
    if not flexible:
        (size,) = struct.unpack_from(">i", frame, at)
        return frame[at + 4 : at + 4 + size]
    at += 1  # no tagged fields in the head
    size = shift = 0
    while True:
        (byte,) = struct.unpack_from(">B", frame, at)
        at += 1
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80 or shift > 28:
            break
    return frame[at : at + size - 1]


def _outcome(version: int, *, known: bool) -> bytes:
    """The answer of SaslAuthenticate: code, message, bytes, lifetime."""
    code = struct.pack(">h", 0 if known else 58)
    if version >= 2:
        return code + b"\0" + b"\x01" + struct.pack(">q", 0) + b"\0"
    lifetime = struct.pack(">q", 0) if version == 1 else b""
    return code + struct.pack(">h", -1) + struct.pack(">i", 0) + lifetime
