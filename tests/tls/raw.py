"""TLS by hand: the bytes of a conversation are there before they are sent, so that they can be cut,
stopped and mixed up; and openssl's own client."""

import contextlib
import os
import socket
import ssl
import subprocess
from struct import unpack_from

from tests.tls.secured import HOST

LIMIT_S = 60
READ = 1 << 16


class ByHand:
    """A client's side of a connection. What shall go out lies in `out`."""

    def __init__(self, address, context):
        self.socket = socket.create_connection(address, LIMIT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.back, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.back, self.out, server_hostname=HOST)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def flush(self, at_once=None):
        """Send all that shall go out, so many bytes at a time."""
        data = self.out.read()
        step = at_once or max(1, len(data))
        for start in range(0, len(data), step):
            self.socket.sendall(data[start : start + step])

    def hello(self):
        """The first bytes of a handshake."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.out.read()

    def more(self):
        """Wait for bytes and take them. Raises EOFError when the other side closed."""
        data = self.socket.recv(READ)
        if not data:
            raise EOFError
        self.back.write(data)

    def handshake(self, at_once=None):
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.flush(at_once)
                self.more()
        self.flush(at_once)

    def send(self, data, at_once=None):
        self.tls.write(data)
        self.flush(at_once)

    def answer(self):
        """The next answer of Kafka's, without its length."""
        (size,) = unpack_from(">i", self.exact(4))
        return self.exact(size)

    def exact(self, size):
        data = b""
        while len(data) < size:
            try:
                data += self.tls.read(size - len(data))
            except ssl.SSLWantReadError:
                self.more()
        return data


def closed_by_peer(sock):
    """Whether the other side closes it, whatever it says before: waits for that."""
    with contextlib.suppress(ConnectionError):
        while sock.recv(READ):
            pass
    return True  # else recv has raised TimeoutError


class SClient:
    """`openssl s_client`: what is written in one piece and begins with K or R is a command."""

    def __init__(self, pki, address, *options):
        host, port = address
        self.process = subprocess.Popen(
            ["openssl", "s_client", "-connect", f"{host}:{port}", "-CAfile", pki.path("ca.pem"),
             "-verify_return_error", "-quiet", "-no_ign_eof", *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        with self.process:  # closes its pipes
            pass

    def send(self, data):
        os.write(self.process.stdin.fileno(), data)

    def exact(self, size):
        """So many bytes of answers. Raises EOFError when it has ended."""
        data = bytearray()
        while len(data) < size:
            more = os.read(self.process.stdout.fileno(), size - len(data))
            if not more:
                raise EOFError
            data += more
        return bytes(data)

    def answer(self):
        (size,) = unpack_from(">i", self.exact(4))
        return self.exact(size)

    def said(self):
        """What openssl tells of its commands; it ends with that."""
        self.process.kill()
        return self.process.stderr.read().decode()
