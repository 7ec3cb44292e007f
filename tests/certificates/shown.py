"""Settings of a listener that speaks TLS, what it says in its log, and one handshake in memory."""

import contextlib
import json
import ssl

from appliance.certificates.holder import Certificates
from appliance.shell.log import Log
from tests.certificates.authority import authority
from tests.config.loading import load

NOW_MS = 1_800_000_000_000
"""In the year 2027: certificates of tests are good from 2026 on."""
SECOND_NS = 1_000_000_000


class Clock:
    """Stands still until somebody moves it."""

    def __init__(self):
        self.ms = NOW_MS

    def wall_ms(self):
        return self.ms

    def monotonic_ns(self):
        return 0


def settings(**more):
    """Of a listener SSL beside a plain one. more: names with `_` for `.`"""
    given = {key.replace("_", "."): str(value) for key, value in more.items()}
    config, _ = load(None, {"listeners": "PLAINTEXT://:0,SSL://:0", **given})
    return config


class Place:
    """A folder with one authority, the files of a listener, and what holds them."""

    def __init__(self, folder, read_fd, write_fd):
        self.folder = folder
        self.root = authority()
        self.store = folder / "server.pem"
        self.trust = folder / "trusted.pem"
        self.trust.write_bytes(self.root.chain_pem())
        self.clock = Clock()
        self.given = {"ssl_keystore_location": self.store}
        self._read_fd = read_fd
        self.log = Log("netproc-0", fd=write_fd, json=True)
        self.pair = self.write(self.root.sign("broker"))

    def write(self, pair):
        """This is what the file holds from now on."""
        self.store.write_bytes(pair.pem())
        self.pair = pair
        return pair

    def certificates(self, **more):
        self.given |= more
        return Certificates(self.settings, ["PLAINTEXT", "SSL"], self.log, self.clock)

    def settings(self, **more):
        return settings(**{**self.given, **more})

    def events(self):
        """(event, its fields) since this was asked last."""
        try:
            text = self._read_fd.read() or b""
        except BlockingIOError:
            text = b""
        lines = [json.loads(line) for line in text.splitlines()]
        return [(line["event"], line["fields"]) for line in lines]


def client(root, *, own=None, folder=None, version=None, suites=None):
    """A client's context that believes this authority. own: whose certificate it shows."""
    context = ssl.create_default_context(cadata=root.chain_pem().decode())
    if version is not None:
        context.minimum_version = context.maximum_version = version
    if suites is not None:
        context.set_ciphers(suites)
    if own is not None:
        path = folder / "client.pem"
        path.write_bytes(own.pem())
        context.load_cert_chain(path)
    return context


class Failed(Exception):
    """One side refused the other."""


def handshake(server, context, host="localhost", session=None):
    """(server's side, client's side) after it, in memory. session: of one before, which the client
    would go on with. Raises Failed."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    theirs = context.wrap_bio(to_client, to_server, server_hostname=host, session=session)
    done = set()
    for _ in range(20):
        for one in (theirs, ours):
            try:
                one.do_handshake()
                done.add(one)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as cause:
                raise Failed(str(cause)) from None
    # With TLS 1.3 a client hears only with the first bytes that it was refused.
    with contextlib.suppress(ssl.SSLWantReadError):
        theirs.read(1)
    assert done == {ours, theirs}
    return ours, theirs
