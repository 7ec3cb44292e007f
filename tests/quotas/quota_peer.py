"""A client made of single requests with a client id of its own: what quotas do to each answer."""

import socket
import struct
import time

from appliance.wire import messages, request_head
from appliance.wire.build import build
from benchmarks import batches, requests

PATIENCE_S = 60


class QuotaPeer:
    """One connection. Throttle times are ms, as answers tell them."""

    def __init__(self, bootstrap, client_id):
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), PATIENCE_S)
        self.client_id = client_id.encode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def ask(self, key, version, /, **values):
        """The decoded answer."""
        request = build(messages.request_type(key, version), values)
        self.send(key, version, messages.encode_request(request))
        return self.answer(key, version)

    def send(self, key, version, body):
        head = struct.pack(">hhih", key, version, 7, len(self.client_id)) + self.client_id
        head += b"\0" * request_head.is_flexible(key, version)
        self.socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)

    def answer(self, key, version):
        size = struct.unpack(">i", self._take(4))[0]
        data = self._take(size)
        flexible = request_head.is_flexible(key, version) and key != request_head.API_VERSIONS
        return messages.decode_response(key, version, data[4 + flexible :])

    def produce(self, topic, size, acks=1):
        """Throttle time of a batch of one record of `size` bytes."""
        data = batches.uniform(1, size, int(time.time() * 1000))
        framed = requests.produce(topic, 0, data, acks, 7)
        self.send(0, 7, framed[4 + 10 + len(requests.CLIENT_ID) :])
        return ms(self.answer(0, 7)) if acks else 0

    def fetch(self, topic, most=1 << 20):
        """(throttle time, bytes of records) of a fetch from the beginning."""
        framed = requests.fetch(topic, 0, 0, most, 7, 4)
        self.send(1, 4, framed[4 + 10 + len(requests.CLIENT_ID) :])
        answer = self.answer(1, 4)
        records = [p.records for t in answer.responses for p in t.partitions]
        return ms(answer), sum(len(one or b"") for one in records)

    def quotas(self, entity, **values):
        """Set quotas, None takes one away; every error is raised."""
        ops = [
            {"key": key, "value": value or 0.0, "remove": value is None}
            for key, value in values.items()
        ]
        parts = [{"entity_type": kind, "entity_name": name} for kind, name in entity]
        entries = [{"entity": parts, "ops": ops}]
        for entry in self.ask(49, 1, entries=entries, validate_only=False).entries:
            assert not int(entry.error_code), entry

    def described(self, *components, strict=False):
        """entity → quotas, for filters (type, how, name)."""
        rows = [{"entity_type": t, "match_type": how, "match": name} for t, how, name in components]
        answer = self.ask(48, 1, components=rows, strict=strict)
        assert not int(answer.error_code), answer
        return {
            tuple(sorted(((p.entity_type, p.entity_name) for p in e.entity), key=str)): {
                v.key: v.value for v in e.values
            }
            for e in answer.entries
        }

    def _take(self, size):
        parts = bytearray()
        while len(parts) < size:
            part = self.socket.recv(size - len(parts))
            assert part, "the broker closed the connection"
            parts += part
        return bytes(parts)


def ms(answer):
    """The throttle time of a decoded answer."""
    return round(answer.throttle_time.total_seconds() * 1000)
