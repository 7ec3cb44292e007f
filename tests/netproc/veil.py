"""A transport as unpleasant as TLS may be, and the client that speaks it: a handshake of several
rounds before the first request, new keys in the middle that either side may ask for, bytes that are
here though the socket shows none, and no way to send from a file.

Records are (kind, length, payload), the payload hidden with a key that changes with each rekeying.
"""

import socket
from collections import deque
from struct import Struct

from appliance.netproc.transport.transport import BLOCKED, READ, WRITE, Transport

HEAD = Struct(">BH")
HELLO, DONE, DATA, REKEY, REKEYED = range(1, 6)
MOST = 1000  # plain bytes of a record


def hide(key, data):
    return data.translate(bytes(byte ^ key for byte in range(256)))


def next_key(key):
    return (key * 31 + 7) % 256


class Records:
    """Both directions over one non-blocking socket."""

    def __init__(self, sock, at_once):
        self.sock = sock
        self.at_once = at_once  # bytes of one recv or send
        self.raw = b""
        self.unsent = b""
        self.key_in = self.key_out = 99

    def put(self, kind, data=b""):
        self.unsent += HEAD.pack(kind, len(data)) + hide(self.key_out, data)

    def push(self):
        """Send of what is unsent what the socket takes now; whether nothing is left."""
        try:
            self.unsent = self.unsent[self.sock.send(self.unsent[: self.at_once]) :]
        except BlockingIOError:
            return False
        return not self.unsent

    def pull(self):
        """The next record, None when it has not come."""
        while True:
            if len(self.raw) >= HEAD.size:
                kind, size = HEAD.unpack_from(self.raw)
                if len(self.raw) >= HEAD.size + size:
                    data = hide(self.key_in, self.raw[HEAD.size : HEAD.size + size])
                    self.raw = self.raw[HEAD.size + size :]
                    return kind, data
            try:
                more = self.sock.recv(self.at_once)
            except BlockingIOError:
                return None
            if not more:
                raise ConnectionResetError
            self.raw += more


class Veiled(Transport):
    """The server's side. rekey_after: plain bytes sent, then the client has to agree on new keys
    before anything more is sent."""

    def __init__(self, sock, at_once, rekey_after):
        super().__init__(sock, False)
        self.records = Records(sock, at_once)
        self.at_once = at_once
        self.rekey_after = rekey_after
        self.since = 0
        self.plain = deque()
        self.rekeying = False
        self.hello = False
        self.rekeyings = [0, 0]  # ours, theirs

    def agree(self):
        while True:
            if self.records.unsent and not self.records.push():
                self.wants = WRITE
                return False
            found = self.records.pull()
            if found is None:
                self.wants = READ
                return False
            kind, _ = found
            if kind == HELLO and not self.hello:
                self.hello = True
                self.records.put(HELLO)
            else:
                assert kind == DONE and self.hello
                self.wants = 0
                self.buffered = bool(self.records.raw)
                return True

    def receive(self, into):
        assert not self.wants, "it is in a conversation of its own"
        while not self.plain:
            found = self.records.pull()
            if found is None:
                self.buffered = False
                return BLOCKED
            self._take(*found)
            if self._settle():
                return BLOCKED
        data = self.plain.popleft()
        count = min(len(data), len(into), self.at_once)
        into[:count] = data[:count]
        if data[count:]:
            self.plain.appendleft(data[count:])
        self.buffered = bool(self.plain or self.records.raw)
        return count

    def send_pieces(self, pieces, more):
        if self._settle():
            return BLOCKED
        data = b"".join(pieces)[: min(MOST, self.at_once)]
        self.records.put(DATA, data)
        self.since += len(data)
        if self.since >= self.rekey_after:
            self.since = 0
            self.rekeying = True
            self.records.put(REKEY)
        self.records.push()
        self._settle()
        return len(data)

    def send_file(self, fd, position, count):
        raise AssertionError("it cannot")

    def continue_io(self):
        if self.records.unsent:
            self.records.push()
        while self.rekeying and not self.records.unsent:
            found = self.records.pull()
            if found is None:
                break
            self._take(*found)
        self._settle()
        self.buffered = bool(self.plain or self.records.raw)

    def _take(self, kind, data):
        records = self.records
        if kind == DATA:
            self.plain.append(data)
        elif kind == REKEY:
            self.rekeyings[1] += 1
            records.key_in = next_key(records.key_in)
            records.put(REKEYED)
        else:
            assert kind == REKEYED and self.rekeying
            self.rekeyings[0] += 1
            self.rekeying = False
            records.key_out = next_key(records.key_out)

    def _settle(self):
        """What it waits for on its own account."""
        self.wants = WRITE if self.records.unsent else READ if self.rekeying else 0
        return self.wants


class VeiledSocket:
    """The client's side, as a socket that does not block. Asks for new keys after each request."""

    def __init__(self, sock: socket.socket):
        self.records = Records(sock, 1 << 16)
        self.sock = sock
        self.waiting = b""  # to be sent when it may
        self.agreed = False
        self.rekeying = False
        self.got = b""
        self.records.put(HELLO)
        self.work()

    def sendall(self, data):
        self.waiting += data
        self.work()

    def recv(self, most):
        try:
            self.work()
        except ConnectionResetError:
            if not self.got:
                return b""
        if not self.got:
            raise BlockingIOError
        found, self.got = self.got[:most], self.got[most:]
        return found

    def close(self):
        self.sock.close()

    def work(self):
        """Do what is to be done now, of both directions."""
        records = self.records
        while (found := records.pull()) is not None:
            kind, data = found
            if kind == HELLO:
                records.put(DONE)
                self.agreed = True
            elif kind == DATA:
                self.got += data
            elif kind == REKEY:
                records.key_in = next_key(records.key_in)
                records.put(REKEYED)
            else:
                assert kind == REKEYED
                self.rekeying = False
                records.key_out = next_key(records.key_out)
        if self.agreed and self.waiting and not self.rekeying:
            for at in range(0, len(self.waiting), MOST):
                records.put(DATA, self.waiting[at : at + MOST])
            self.waiting = b""
            records.put(REKEY)
            self.rekeying = True
        while records.unsent and records.push():
            pass
