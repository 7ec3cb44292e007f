"""A leader made up for followers: real logs, one listening socket, and answers encoded by kio. Both
sides live on one thread, in the loop that the follower's link uses."""

import select
import socket
from struct import Struct

from sim.disk import SimDisk

from appliance.base import errors
from appliance.config.log_config import LogConfig
from appliance.logstore.log import PartitionLog
from appliance.wire.build import build
from appliance.wire.messages import (
    decode_request,
    encode_response,
    is_flexible,
    response_type,
)

_I32 = Struct(">i")
NOT_COMMITTED = None


class Poller:
    """The loop: `shell.loop.Loop` as far as links know it."""

    def __init__(self):
        self.epoll = select.epoll()
        self.handlers = {}

    def register(self, fd, mask, handler):
        self.epoll.register(fd, mask)
        self.handlers[fd] = handler

    def modify(self, fd, mask):
        self.epoll.modify(fd, mask)

    def unregister(self, fd):
        del self.handlers[fd]
        self.epoll.unregister(fd)

    def poll(self, timeout=0.02):
        for fd, mask in self.epoll.poll(timeout):
            if fd in self.handlers:
                self.handlers[fd].ready(mask)


class Led:
    """One partition: its log, how far it is visible, and what the follower said last. refuses: an
    error instead of records. fetched: every offset that was asked for, in order."""

    def __init__(self, topic_id, index, name, config):
        self.topic_id, self.index, self.name = topic_id, index, name
        disk = SimDisk()
        self.log = PartitionLog.create(disk, f"/{name}-{index}", topic_id, config, now_ms=0)
        self.epoch = 0
        self.high_watermark = NOT_COMMITTED  # the log end
        self.refuses = 0
        self.local = 0  # what lies below is in a remote store alone
        self.fetched = []

    def answer(self, asked, most):
        """What the leader's answer has for it."""
        log = self.log
        offset, last = asked.fetch_offset, asked.last_fetched_epoch
        if not self.fetched or self.fetched[-1] != offset:
            self.fetched.append(offset)
        if self.refuses:
            return {"error_code": self.refuses, "high_watermark": -1}
        if asked.current_leader_epoch != self.epoch:
            return {"error_code": errors.FENCED_LEADER_EPOCH, "high_watermark": -1}
        end = log.end_offset
        high = end if self.high_watermark is None else self.high_watermark
        answer = {"high_watermark": high, "log_start_offset": log.log_start_offset}
        if offset < log.log_start_offset:
            return {"error_code": errors.OFFSET_OUT_OF_RANGE, "high_watermark": -1}
        if offset < self.local:
            return {"error_code": errors.OFFSET_MOVED_TO_TIERED_STORAGE, "high_watermark": -1}
        if last >= 0:
            epoch, ended = log.epoch_end(last)
            if epoch < last or ended < offset:
                return answer | {"diverging_epoch": {"epoch": epoch, "end_offset": ended}}
        if offset > end:
            return {"error_code": errors.OFFSET_OUT_OF_RANGE, "high_watermark": -1}
        found = log.locate(offset, most, end)
        if found is not None:
            base, position, length, _ = found
            file = log.disk.open_file(f"{log.path}/{base:020d}.log")
            answer["records"] = bytes(file.pread(length, position))
            file.close()
        return answer


class MadeUp:
    """The node. questions: every Fetch that came. paused: requests wait. most: bytes of a partition
    in an answer."""

    def __init__(self, poller, sessions=True):
        self.poller = poller
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.sock.setblocking(False)
        self.port = self.sock.getsockname()[1]
        self.led = {}
        self.sessions_of = {}  # by number: (partitions, epoch of the last question)
        self.number = 0
        self.sessions = sessions
        self.questions = []
        self.connections = []
        self.paused = False
        self.waiting = []
        self.most = 1 << 20
        poller.register(self.sock.fileno(), select.EPOLLIN, self)

    def add(self, name, index=0, **settings):
        topic_id = name.encode().ljust(16, b"\0")
        led = Led(topic_id, index, name, LogConfig(**settings))
        self.led[topic_id, index] = led
        return led

    def ready(self, mask):
        connection, _ = self.sock.accept()
        connection.setblocking(False)
        one = Connection(self, connection)
        self.connections.append(one)
        self.poller.register(connection.fileno(), select.EPOLLIN, one)

    def close(self):
        for one in list(self.connections):
            one.close()
        self.poller.unregister(self.sock.fileno())
        self.sock.close()

    def resume(self):
        self.paused = False
        for connection in self.connections:
            connection.paused = False
        waiting, self.waiting = self.waiting, []
        for connection, frame in waiting:
            connection.answer(frame)

    def response(self, key, version, body):
        if key == 18:
            keys = [
                {"api_key": key, "min_version": low, "max_version": high}
                for key, low, high in ((1, 4, 17), (2, 1, 9), (18, 0, 4))
            ]
            return {"error_code": 0, "api_keys": keys, "throttle_time": 0}
        request = decode_request(key, version, body)
        return self.fetch(request) if key == 1 else self.list_offsets(request)

    def list_offsets(self, request):
        topics = []
        for topic in request.topics:
            rows = []
            for asked in topic.partitions:
                assert asked.timestamp in (-2, -4)
                (led,) = [x for x in self.led.values() if (x.name, x.index) == (
                    topic.name, asked.partition_index)]  # fmt: skip
                rows.append(
                    {"partition_index": led.index, "error_code": 0, "timestamp": -1,
                     "offset": led.local if asked.timestamp == -4 else led.log.log_start_offset,
                     "leader_epoch": led.epoch}
                )  # fmt: skip
            topics.append({"name": topic.name, "partitions": rows})
        return {"throttle_time": 0, "topics": topics}

    def fetch(self, request):
        self.questions.append(request)
        if request.session_epoch == 0:
            session = {}
            self.number += self.sessions
            number = self.number if self.sessions else 0
        else:
            number = request.session_id
            session, epoch = self.sessions_of.get(number, ({}, -1))
            if request.session_epoch != epoch + 1:
                return {"throttle_time": 0, "error_code": 70, "session_id": 0, "responses": []}
        self.sessions_of[number] = session, request.session_epoch
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                del session[topic.topic_id.bytes, index]
        for topic in request.topics:
            for asked in topic.partitions:
                session[topic.topic_id.bytes, asked.partition] = asked
        responses = []
        for (topic_id, index), asked in session.items():
            most = min(self.most, asked.partition_max_bytes)
            answer = self.led[topic_id, index].answer(asked, most)
            row = {
                "partition_index": index,
                "error_code": 0,
                "aborted_transactions": None,
                "records": None,
            }
            responses.append({"topic_id": topic_id, "partitions": [row | answer]})
        return {"throttle_time": 0, "error_code": 0, "session_id": number, "responses": responses}


class Connection:
    """paused: its requests wait, others do not."""

    def __init__(self, leader, sock):
        self.leader, self.sock = leader, sock
        self.bytes = b""
        self.paused = False

    def close(self):
        if self in self.leader.connections:
            self.leader.connections.remove(self)
            self.leader.poller.unregister(self.sock.fileno())
            self.sock.close()

    def ready(self, mask):
        try:
            came = self.sock.recv(1 << 16)
        except ConnectionError:
            came = b""
        if not came:
            self.close()
            return
        self.bytes += came
        while len(self.bytes) >= 4:
            (length,) = _I32.unpack_from(self.bytes)
            if len(self.bytes) < 4 + length:
                return
            frame, self.bytes = self.bytes[4 : 4 + length], self.bytes[4 + length :]
            if self.leader.paused or self.paused:
                self.leader.waiting.append((self, frame))
            else:
                self.answer(frame)

    def answer(self, frame):
        if self not in self.leader.connections:
            return
        key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
        at = 10 + int.from_bytes(frame[8:10], "big")
        at += is_flexible(key, version)
        values = self.leader.response(key, version, frame[at:])
        body = encode_response(build(response_type(key, version), values))
        tags = b"\0" if key != 18 and is_flexible(key, version) else b""
        answer = frame[4:8] + tags + body
        self.sock.setblocking(True)
        self.sock.sendall(_I32.pack(len(answer)) + answer)
        self.sock.setblocking(False)
