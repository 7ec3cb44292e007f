"""A node that answers the probe with anything: the probe says why it does not serve, in its time,
and raises nothing else."""

import contextlib
import random
import socket
import struct
import threading

import pytest

from appliance.base.errors import NONE
from appliance.exporter.knock import unanswered
from appliance.exporter.post import Address
from appliance.exporter.probe import NotProbed, failed, topic_of
from appliance.wire.build import response
from appliance.wire.messages import decode_request, encode_response, is_flexible
from tests.seeds import each_seed

CLUSTER, PATIENCE_S = "a-cluster", 0.1
EXTREMES = (0x7FFFFFFF, -1, -2, -(1 << 31), 1 << 24, 0, 1)


def values_of(key, request, port):
    """What a sound node answers."""
    if key == 3:
        row = {
            "error_code": NONE, "partition_index": 0, "leader_id": 1, "leader_epoch": 0,
            "replica_nodes": (1,), "isr_nodes": (1,), "offline_replicas": (),
        }  # fmt: skip
        topic = {
            "error_code": NONE, "name": topic_of(1), "is_internal": False, "partitions": (row,),
            "topic_authorized_operations": 0,
        }  # fmt: skip
        return {
            "throttle_time": 0, "brokers": (), "cluster_id": CLUSTER, "controller_id": 1,
            "topics": (topic,), "cluster_authorized_operations": 0,
        }  # fmt: skip
    if key == 0:
        row = {
            "index": 0, "error_code": NONE, "base_offset": 5, "log_append_time": None,
            "log_start_offset": 0,
        }  # fmt: skip
        topic = {"name": topic_of(1), "partition_responses": (row,)}
        return {"responses": (topic,), "throttle_time": 0}
    if key == 1:
        row = {
            "partition_index": 0, "error_code": NONE, "high_watermark": 6, "last_stable_offset": 6,
            "log_start_offset": 0, "aborted_transactions": (), "preferred_read_replica": -1,
            "records": b"some",
        }  # fmt: skip
        topic = {"topic": topic_of(1), "partitions": (row,)}
        return {"throttle_time": 0, "error_code": NONE, "session_id": 0, "responses": (topic,)}
    if key == 10:
        return {
            "throttle_time": 0, "error_code": NONE, "error_message": None, "node_id": 1,
            "host": "127.0.0.1", "port": port,
        }  # fmt: skip
    if key == 11:
        return {
            "throttle_time": 0, "error_code": NONE, "generation_id": 1, "protocol_name": "range",
            "leader": "m", "member_id": "m", "members": (),
        }  # fmt: skip
    if key == 42:
        return {"throttle_time": 0, "results": ({"group_id": "g", "error_code": NONE},)}
    return {"throttle_time": 0, "error_code": NONE, "assignment": b""}


class MadNode:
    """Answers until it is closed; each answer is changed with this chance."""

    def __init__(self, seed, chance):
        self.rng = random.Random(seed)
        self.chance = chance
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]
        self.wrong = []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self.sock.accept()
                with peer, contextlib.suppress(OSError):
                    while self.serve(peer):
                        pass

    def serve(self, peer):
        head = peer.recv(4, socket.MSG_WAITALL)
        if len(head) < 4:
            return False
        body = peer.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)
        key, version, number, name = struct.unpack_from(">hhih", body)
        rest = body[10 + name + is_flexible(key, version) :]
        answer = self.answer(key, version, rest) if key != 18 else bytes(10)
        data = bytearray(struct.pack(">ii", len(answer) + 4, number) + answer)
        if self.rng.random() < self.chance:
            self.change(data)
        if self.rng.random() < self.chance / 4:
            peer.sendall(data[: self.rng.randrange(len(data))])
            return False
        peer.sendall(data)
        return True

    def answer(self, key, version, body):
        try:
            values = values_of(key, decode_request(key, version, body), self.port)
            if self.rng.random() < self.chance:
                values = self.emptied(values)
            tags = b"\0" if is_flexible(key, version) else b""
            return tags + encode_response(response(key, version, values))
        except Exception as wrong:
            self.wrong.append(wrong)
            raise OSError from wrong

    def emptied(self, values):
        """The same without some rows."""
        return {
            name: () if isinstance(one, tuple) and self.rng.random() < 0.7 else
            tuple(self.emptied(row) if isinstance(row, dict) else row for row in one)
            if isinstance(one, tuple) else one
            for name, one in values.items()
        }  # fmt: skip

    def change(self, data):
        for _ in range(self.rng.randrange(1, 4)):
            at = self.rng.randrange(len(data))
            kind = self.rng.randrange(4)
            if kind == 0:
                data[at] = self.rng.randrange(256)
            elif kind == 1 and at + 4 <= len(data):
                struct.pack_into(">i", data, at, self.rng.choice(EXTREMES))
            elif kind == 2:
                data[at:at] = self.rng.randbytes(self.rng.randrange(1, 9))
            else:
                del data[at : at + self.rng.randrange(1, 9)]
                data += bytes(max(0, 8 - len(data)))

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        self.thread.join()


def probe(node, patience_s=PATIENCE_S):
    return failed([Address("127.0.0.1", node.port)], 1, CLUSTER, 1, patience_s)


def test_a_sound_node_serves():
    node = MadNode(0, 0)
    try:
        assert probe(node, 30) == "", node.wrong
        assert unanswered([Address("127.0.0.1", node.port)], 30) == ""
    finally:
        node.close()


@each_seed(3000)
def test_whatever_a_node_answers_the_probe_says_why(seed):
    node = MadNode(seed, 0.3)
    try:
        with contextlib.suppress(NotProbed):
            assert isinstance(probe(node), str)
        assert isinstance(unanswered([Address("127.0.0.1", node.port)], PATIENCE_S), str)
        assert not node.wrong
    finally:
        node.close()


@pytest.mark.parametrize("size", [-1, 0, 3, 1 << 30, 0x7FFFFFFF])
def test_a_length_that_no_answer_has_is_told(size):
    sock = socket.create_server(("127.0.0.1", 0))
    port = sock.getsockname()[1]

    def answer():
        peer, _ = sock.accept()
        with peer, contextlib.suppress(OSError):
            peer.recv(1 << 16)
            peer.sendall(struct.pack(">i", size))
            peer.recv(1)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        why = failed([Address("127.0.0.1", port)], 1, CLUSTER, 1, 30)
        assert "an answer of" in why, why
    finally:
        thread.join()
        sock.close()
