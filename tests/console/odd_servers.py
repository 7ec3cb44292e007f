"""Servers that answer a client with garbage, by kind, each on a free port."""

import socket
import struct
import threading
from contextlib import suppress

HTTP = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
_NOISE = bytes(range(256))


def _hangs_up(_):
    return b"", True


def _is_silent(_):
    return b"", False


def _speaks_http(_):
    return HTTP, True


def _is_huge(_):
    return b"\x7f\xff\xff\xff" + _NOISE, False


def _is_negative(_):
    return b"\xff\xff\xff\xff" + _NOISE, False


def _is_empty(_):
    return struct.pack(">i", 0), False


def _is_noise(request):
    """Whole frames with the id that was asked by, and noise in them."""
    return struct.pack(">i", 4 + len(_NOISE)) + request[8:12] + _NOISE, False


def _is_cut_off(request):
    return struct.pack(">i", 4 + len(_NOISE)) + request[8:12] + _NOISE[:9], True


ANSWERS = {
    "hangs up": _hangs_up,
    "is silent": _is_silent,
    "speaks HTTP": _speaks_http,
    "huge frames": _is_huge,
    "negative frames": _is_negative,
    "empty frames": _is_empty,
    "noise": _is_noise,
    "cut off": _is_cut_off,
}
"""Kind → the bytes for a request, and whether the connection is closed behind them."""


class OddServer:
    """One of them, until `close`."""

    def __init__(self, kind):
        self._answer = ANSWERS[kind]
        self._door = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.address = f"127.0.0.1:{self._door.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with suppress(OSError):
            while True:
                connection, _ = self._door.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, suppress(OSError):
            while request := connection.recv(1 << 16):
                answer, ends = self._answer(request.ljust(12, b"\0"))
                connection.sendall(answer)
                if ends:
                    return

    def close(self):
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
