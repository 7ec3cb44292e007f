"""A client's connection on its way from a network process that ends to its successor in the same
place: what the socket does not tell goes with it, in memory that is passed like the socket.

Sent over a SOCK_SEQPACKET pair of the process and the supervisor, which keeps it until the
successor is forked. When the whole appliance makes way for another version, all go through its exec
as descriptors, and what is told of them in one file. Nothing here waits.
"""

import errno
import json
import os
import signal
import socket
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import field
from typing import Any, Final

from appliance.base.dataclass import dataclass

PART: Final = signal.SIGUSR1
"""Asks a network process to end and to leave its connections to a successor."""
LEAVE: Final = signal.SIGUSR2
"""The same at the end of the whole appliance: the successor is another appliance's."""
FORMAT: Final = 4
"""Raise it when something else is told of a guest than before, or it means something else: another
version hangs up on those whom it would misunderstand."""
_BEFORE: Final = (1, 2, 3)
"""Formats that are understood, too: of 1 all guests were anonymous and came by plaintext, of 2 none
had logged in, of 3 none by a delegation token."""
_WORD: Final = b"guest"
_NAME: Final = "penstock-guest"
_DESCRIPTORS: Final = 2


@dataclass(slots=True)
class HandedConnection:
    """sock: the connection. address: of its client. listener: the number of that by which it came.
    software: name and version, once they were told. client_id: of its last request. muted_until_ns:
    it is over a quota, by the monotonic clock; 0: it is not. roles, asked, gone: its habits.
    received: bytes that have arrived and are no part of an answered request. serves: APIs and
    versions that it was told to be served, "" where that cannot have changed. protocol: its
    listener's (listener.security.protocol.map). principal: (type, name), proved by it. login: the
    SASL mechanism that it did so by, and until when that holds, as of the monotonic clock in ns, 0:
    for ever; None: it has not logged in. by_token: by a delegation token."""

    sock: socket.socket
    address: str
    listener: int
    software: tuple[str, str] | None = None
    client_id: bytes | None = None
    muted_until_ns: int = 0
    roles: int = 0
    asked: Sequence[str] = ()
    gone: Sequence[str] = ()
    received: bytes = field(default=b"", repr=False)
    serves: str = ""
    protocol: str = "PLAINTEXT"
    principal: tuple[str, str] = ("User", "ANONYMOUS")
    login: tuple[str, int] | None = None
    by_token: bool = False

    def close(self) -> None:
        """This process's hold of it; the client notices when nobody else has one."""
        self.sock.close()


def send_connection(over: socket.socket, guest: HandedConnection) -> bool:
    """Hand it over; the sender closes its own hold afterwards. False: not now, the other side has
    not read what came before. Raises OSError: it cannot be handed over."""
    told = _fields(guest)
    file = os.memfd_create(_NAME, os.MFD_CLOEXEC)
    try:
        with open(file, "wb", closefd=False) as whole:
            whole.write(json.dumps(told).encode() + b"\n" + guest.received)
        socket.send_fds(over, [_WORD], [guest.sock.fileno(), file])
    except BlockingIOError:
        return False
    finally:
        os.close(file)
    return True


class NotHanded(OSError):
    """A message that no sound network process sends: the process was taken over."""


def receive(over: socket.socket) -> HandedConnection | None:
    """The next one, None when none has come. Raises OSError; NotHanded for a message that is none,
    of which nothing is kept."""
    try:
        word, fds, _, _ = socket.recv_fds(over, len(_WORD), _DESCRIPTORS)
    except (BlockingIOError, InterruptedError):
        return None
    if not word and not fds:
        return None  # the process is gone, and all that it had sent is read
    with ExitStack() as stack:
        for fd in fds:
            stack.callback(os.close, fd)
        if word != _WORD or len(fds) != _DESCRIPTORS:
            raise NotHanded(errno.EPROTO, "a guest is a socket and what is told of it")
        if not stat.S_ISSOCK(os.fstat(fds[0]).st_mode):
            raise NotHanded(errno.EPROTO, "a guest is a socket and what is told of it")
        sock = socket.socket(fileno=os.dup(fds[0]))
        stack.callback(sock.close)
        sock.setblocking(False)
        told, _, received = _read_told(fds[1]).partition(b"\n")
        try:
            guest = _guest(sock, json.loads(told), received)
        except (ValueError, TypeError, KeyError, IndexError, RecursionError) as lie:
            raise NotHanded(errno.EPROTO, f"not what is told of a guest: {lie!r:.200}") from None
        stack.pop_all()
        for fd in fds:
            os.close(fd)
        return guest


def _read_told(fd: int) -> bytes:
    """The whole file. Raises NotHanded for what is no memory that the sender has filled: a device
    may never end, and a hole becomes memory of ours."""
    told = os.fstat(fd)
    if not stat.S_ISREG(told.st_mode) or told.st_blocks * 512 < told.st_size:
        raise NotHanded(errno.EPROTO, "a guest is told of in memory that its sender has filled")
    return os.pread(fd, told.st_size, 0)


def _fields(guest: HandedConnection) -> dict[str, Any]:
    """As JSON has them, the socket and what was received aside."""
    return {
        "address": guest.address,
        "listener": guest.listener,
        "software": guest.software,
        "client_id": None if guest.client_id is None else guest.client_id.decode("latin-1"),
        "muted_until_ns": guest.muted_until_ns,
        "roles": guest.roles,
        "asked": list(guest.asked),
        "gone": list(guest.gone),
        "serves": guest.serves,
        "protocol": guest.protocol,
        "principal": guest.principal,
        "login": guest.login,
        "by_token": guest.by_token,
    }


def _guest(sock: socket.socket, fields: dict[str, Any], received: bytes) -> HandedConnection:
    """Raises ValueError, TypeError, KeyError or IndexError for what is not told so."""
    client_id, software = fields.pop("client_id"), fields.pop("software")
    if (principal := fields.pop("principal", None)) is not None:
        kind, name = principal
        fields["principal"] = (kind, name)
    if (login := fields.pop("login", None)) is not None:
        fields["login"] = (login[0], login[1])
    guest = HandedConnection(
        sock,
        **fields,
        software=None if software is None else (software[0], software[1]),
        client_id=None if client_id is None else client_id.encode("latin-1"),
        received=received,
    )
    _check_shape(guest)
    return guest


def _check_shape(guest: HandedConnection) -> None:
    """Raises TypeError: a word of it is of another kind than `_fields` tells."""
    login = guest.login or ("", 0)
    texts = (guest.address, guest.serves, guest.protocol, *(guest.software or ()), login[0])
    names = (*guest.principal, *guest.asked, *guest.gone)
    numbers = (guest.listener, guest.muted_until_ns, guest.roles, login[1])
    if not all(isinstance(one, str) for one in (*texts, *names)):
        raise TypeError("a text is none")
    if not all(isinstance(one, int) and 0 <= one < 1 << 63 for one in numbers):
        raise TypeError("a number is none")


def pack(guests: Iterable[tuple[int, HandedConnection]], names: Sequence[str]) -> int:
    """A file for another version's process that has the sockets as these descriptors: that of the
    file, which an exec leaves open. names: of the listeners, by their number."""
    file = os.memfd_create(_NAME, 0)
    with open(file, "wb", closefd=False) as whole:
        whole.write(json.dumps({"format": FORMAT}).encode() + b"\n")
        for fd, guest in guests:
            if guest.listener >= len(names):
                continue  # a process that was taken over said so; its descriptor ends with the exec
            told = _fields(guest) | {"fd": fd, "listener": names[guest.listener]}
            told["bytes"] = len(guest.received)
            whole.write(json.dumps(told).encode() + b"\n" + guest.received)
    return file


def unpack(file: int, names: Sequence[str]) -> list[HandedConnection]:
    """Those of `pack`, and close the file. Who came by a listener that is not among the names, or
    of whom something is told that this version does not know, or not what it knows of what is
    served, is hung up on."""
    with open(file, "rb") as whole:
        whole.seek(0)
        head = json.loads(whole.readline())
        known = head in [{"format": one} for one in (*_BEFORE, FORMAT)]
        return [
            one
            for sock, fields, received in _packed(whole)
            if (one := _welcome(sock, fields, received, names if known else ()))
        ]


def _packed(whole: Any) -> Iterator[tuple[socket.socket, dict[str, Any], bytes]]:
    for line in whole:
        fields = json.loads(line)
        received = whole.read(fields.pop("bytes"))
        fd = fields.pop("fd")
        os.set_inheritable(fd, False)
        yield socket.socket(fileno=fd), fields, received


def _welcome(
    sock: socket.socket, fields: dict[str, Any], received: bytes, names: Sequence[str]
) -> HandedConnection | None:
    if fields["listener"] not in names or not fields["serves"]:
        sock.close()
        return None
    sock.setblocking(False)
    fields["listener"] = names.index(fields["listener"])
    return _guest(sock, fields, received)


def receive_all(over: socket.socket) -> list[HandedConnection]:
    """Every one that has come, up to a message that is none."""
    found = []
    with suppress(OSError):
        while (guest := receive(over)) is not None:
            found.append(guest)
    return found
