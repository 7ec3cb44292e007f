"""Where each microsecond of a produce and of a fetch goes: every stage of both journeys, timed
alone.

    python -m benchmarks.stages [--records 16 --bytes 1024] [--fetch-kb 64]

Unlike its neighbours this one imports the appliance: it calls the very functions that
ARCHITECTURE.md names, in one process, over bytearrays, a loopback connection and a real file. What
is missing in it are the wake-ups between processes; they are measured by the difference to the
whole (`python -m benchmarks --rows p1x100-1`).
"""

import argparse
import os
import socket
import tempfile
import time
from collections.abc import Callable
from types import SimpleNamespace

from appliance.authorization.rights import AllowAll, Rights
from appliance.base.caller import ANONYMOUS, Caller
from appliance.base.os_disk import OsDisk
from appliance.config.log_config import LogConfig
from appliance.handlers import k00_produce, k01_fetch
from appliance.handlers.exchange import Exchange, Host, Route
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.handlers.sequence_gap_guard import SequenceGapGuard
from appliance.logstore.log import PartitionLog
from appliance.netproc.files.fetch_cursors import FetchCursors
from appliance.netproc.files.segment_files import SegmentFiles
from appliance.ring import partition_table as columns
from appliance.ring.messages import APPEND, APPENDED, Message
from appliance.ring.partition_table import PartitionTable
from appliance.ring.ring import RingReader, RingWriter, ring_bytes
from appliance.wire import fetch, produce, request_head
from appliance.wire.batch import NewRecord, build_batch, validate

NOW_MS = 1_700_000_000_000
ROUNDS = 5
BENCH = Rights(Caller(ANONYMOUS, "bench", "127.0.0.1", "PLAINTEXT"), AllowAll())
_BOTH = "(client's half included)"
_PRODUCE_V9 = b"\x00\xff\xff\x00\x00\x75\x30\x02"  # no transactional id, acks=-1, 30 s, one topic


def best_us(work: Callable[[], object], count: int) -> float:
    """Microseconds of one call: the best of a few rounds of `count` calls."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter_ns()
        for _ in range(count):
            work()
        best = min(best, time.perf_counter_ns() - began)
    return best / count / 1000


class Bench:
    """Everything that the stages touch, set up once."""

    def __init__(self, folder: str, records: int, size: int) -> None:
        values = [NewRecord(NOW_MS, None, os.urandom(size)) for _ in range(records)]
        self.batch = build_batch(values)
        topic = b"flights"
        body = (
            _PRODUCE_V9 + bytes([len(topic) + 1]) + topic + b"\x02" + bytes(4)
            + _uvarint(len(self.batch) + 1) + self.batch + b"\x00\x00\x00"
        )  # fmt: skip
        head = b"\x00\x00\x00\x09\x00\x00\x00\x07\x00\x05bench\x00"
        self.frame = bytearray(head + body)
        self.memory = memoryview(self.frame)
        self.body_at = len(head)
        self.batch_at = self.frame.index(self.batch)
        self.log = PartitionLog.create(
            OsDisk(), f"{folder}/flights-0", b"t" * 16, LogConfig(), now_ms=NOW_MS
        )
        ring = memoryview(bytearray(ring_bytes(1024)))
        self.writer, self.reader = (
            RingWriter(ring, 1),
            RingReader(ring, 1, handles=64, arena_bytes=1 << 30),
        )
        self.table = PartitionTable(memoryview(bytearray(PartitionTable.bytes_needed(64))), 64)
        self.route = Route(0, 0, "flights", b"t" * 16, 0, 0)
        self.here, self.there = _loopback()
        self.path = f"{folder}/flights-0/{0:020d}.log"


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _loopback() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as door:
        here = socket.create_connection(door.getsockname())
        there, _ = door.accept()
    for end in (here, there):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return here, there


def _host(**given: object) -> Host:
    """A Host of these functions and values, for nobody who asks for more; compiled handlers take
    nothing but a Host."""
    functions = {name: staticmethod(one) for name, one in given.items() if callable(one)}
    others = dict.fromkeys(
        name for name, one in vars(Host).items() if callable(one) and not name.startswith("_")
    )
    host: Host = type(Host)("StageHost", (Host,), {**others, **functions})()
    for name in given.keys() - functions.keys():
        setattr(host, name, given[name])
    return host


def produce_stages(bench: Bench) -> list[tuple[str, str, float]]:  # noqa: PLR0915 - a list of stages
    """(process, stage, µs) of one produced batch."""
    memory, end = bench.memory, len(bench.memory)
    into = memoryview(bytearray(len(bench.frame)))

    def receive() -> None:
        bench.here.sendall(bench.frame)
        left = len(into)
        while left:
            left -= bench.there.recv_into(into[:left])

    host = _host(
        overtaking=SequenceGapGuard(),
        memory=memory,
        now_ns=0,
        fetch_room=lambda x: None,
        reads=lambda x, partitions: None,
        route=lambda *_: bench.route,
        ask_home=_asker(bench.writer),
        finish=lambda x, pieces: None,
    )
    handler = k00_produce.HANDLER

    def exchange() -> Exchange:
        return Exchange(1, handler, 9, 7, BENCH, bench.body_at, end, None)

    def begin() -> None:
        handler.begin(host, exchange())
        bench.writer.publish()
        bench.reader.drain()

    def hop() -> None:
        bench.writer.push(APPEND, 0, 0, 1, bench.batch_at, e=len(bench.batch), f=-1)
        bench.writer.publish()
        bench.reader.drain()

    done = Message(APPENDED, 1, 0, 1, 5, -1, 0, 0, 0, 0, 0, 0, 0, 0, b"")
    asked = exchange()
    handler.begin(host, asked)

    def complete() -> None:
        asked.pending.clear()
        asked.answer = None
        handler.complete(host, asked, 0, done, b"")

    batch = memory[bench.batch_at : bench.batch_at + len(bench.batch)]
    config = bench.log.config
    header = validate(batch, config, NOW_MS)
    staged = bytearray(bench.batch)
    view = memoryview(staged)

    def append() -> None:
        bench.log.stage(view, header, 0, NOW_MS)
        bench.log.commit()

    fd = os.open(bench.path + ".bare", os.O_RDWR | os.O_CREAT)
    at = [0]

    def bare_write() -> None:
        os.pwritev(fd, [view], at[0])
        at[0] += len(view)

    answer = bytes(60)

    def send() -> None:
        bench.there.send(answer)

    count = 2000 if len(bench.batch) < 100_000 else 200
    hop_us = best_us(hop, count)
    parse_us = best_us(lambda: produce.parse(memory, bench.body_at, end, 9), count)
    begin_us = best_us(begin, count)
    bare_us = best_us(bare_write, count)
    append_us = best_us(append, count)
    send_us = best_us(send, count)
    bench.here.setblocking(False)
    try:
        while bench.here.recv(1 << 20):
            pass
    except BlockingIOError:
        bench.here.setblocking(True)
    os.close(fd)
    return [
        ("kernel", f"request over loopback {_BOTH}", best_us(receive, count)),
        ("netproc", "request head", best_us(lambda: request_head.parse(memory, 0, end), count)),
        ("netproc", "parse Produce v9", parse_us),
        (
            "netproc",
            "exchange, route, plan (parse not counted)",
            max(0.0, begin_us - hop_us - parse_us),
        ),
        ("ring", "push, publish, drain: one hop (there are two)", hop_us),
        (
            "ioproc",
            "check the batch: CRC32C, counts, lengths",
            best_us(lambda: validate(batch, config, NOW_MS), count),
        ),
        ("ioproc", "stage, index, bookkeeping", max(0.0, append_us - bare_us)),
        ("kernel", "pwritev into the page cache", bare_us),
        ("netproc", "complete and encode the answer", best_us(complete, count)),
        ("kernel", "send the answer", send_us),
    ]


def _asker(writer: RingWriter) -> Callable[..., None]:
    def ask(x, index, route, op, flags, a, b, e, f):
        x.pending[index] = 0
        writer.push(op, flags, route.handle, x.number << 32 | index, a, b, e=e, f=f)

    return ask


def fetch_stages(bench: Bench, size: int) -> list[tuple[str, str, float]]:
    """(process, stage, µs) of one fetch of `size` bytes that goes on where the last one was."""
    log = bench.log
    view = memoryview(bytearray(bench.batch))
    header = validate(view, log.config, NOW_MS)
    while log.size < 2 * size:
        log.stage(view, header, 0, NOW_MS)
        log.commit()
    state = bench.table.state
    batches = size // len(bench.batch)
    high_watermark = batches * header[12]
    for column, value in (
        (columns.STATUS, columns.ONLINE),
        (columns.HIGH_WATERMARK, high_watermark),
        (columns.LOG_END, log.end_offset),
        (columns.LAST_STABLE, high_watermark),
        (columns.VISIBLE_SEGMENT, log.active_base),
        (columns.VISIBLE_POSITION, batches * len(bench.batch)),
    ):
        state[column] = value
    fd = os.open(bench.path, os.O_RDONLY)
    segments = SegmentFiles(bench.table, [os.path.dirname(os.path.dirname(bench.path))])
    cursors = FetchCursors()
    cursors.remember(0, log.active_base, 0, 0, 0)
    file = SimpleNamespace(fd=fd)
    request = _fetch_v12(size)
    memory = memoryview(request)
    host = _host(
        memory=memory,
        fetch_max_bytes=1 << 30,
        now_ns=0,
        fetch_room=lambda x: None,
        reads=lambda x, partitions: None,
        config=SimpleNamespace(int=lambda name: 1 << 30),
        route=lambda *_: bench.route,
        served=bench.table.served[0],
        partitions=bench.table,
        routing=0,
        segment=lambda *_: file,
        cancel=lambda x: None,
        glance=lambda x, route, row, *rest: cursors.locate(segments, route, row, *rest),
        finish=lambda x, pieces: None,
    )
    handler = k01_fetch.handler(FetchSessions(0, lambda: 1))

    def begin() -> None:
        handler.begin(host, Exchange(1, handler, 12, 7, BENCH, 0, len(request), None))

    into = memoryview(bytearray(size))

    def transfer() -> None:
        sent = 0
        while sent < size:
            sent += os.sendfile(bench.there.fileno(), fd, sent, min(size - sent, 131_072))
            left = sent - transferred[0]
            while left:
                left -= bench.here.recv_into(into[:left])
            transferred[0] = sent
        transferred[0] = 0

    transferred = [0]
    count = 2000
    glance_us = best_us(
        lambda: host.glance(None, bench.route, bench.table.read_row(0), 0, high_watermark, size),
        count,
    )
    parse_us = best_us(lambda: fetch.parse(memory, 0, len(request), 12), count)
    rows = [
        ("netproc", "parse Fetch v12", parse_us),
        ("netproc", "place in the segment: row, one batch header", glance_us),
        (
            "netproc",
            "plan and encode the answer",
            max(0.0, best_us(begin, count) - glance_us - parse_us),
        ),
        (
            "kernel",
            f"sendfile of {size >> 10} KB over loopback {_BOTH}",
            best_us(transfer, 200),
        ),
    ]
    os.close(fd)
    return rows


def _fetch_v12(size: int) -> bytearray:
    head = b"\xff\xff\xff\xff" + (500).to_bytes(4, "big") + (1).to_bytes(4, "big")
    head += (1 << 30).to_bytes(4, "big") + b"\x00" + bytes(4) + b"\xff\xff\xff\xff"
    partition = (
        bytes(4)
        + b"\xff\xff\xff\xff"
        + bytes(8)
        + b"\xff" * 4
        + b"\xff" * 8
        + size.to_bytes(4, "big")
    )
    return bytearray(head + b"\x02\x08flights\x02" + partition + b"\x00\x00" + b"\x01\x01\x00")


def show(title: str, rows: list[tuple[str, str, float]]) -> None:
    """A table of stages in Markdown, with the share of each."""
    total = sum(us for _, _, us in rows)
    print(f"\n**{title}: {total:.1f} µs in all stages**\n")
    print("| process | stage | µs | share |\n|---|---|---|---|")
    for process, stage, us in rows:
        print(f"| {process} | {stage} | {us:.2f} | {us / total:.0%} |")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, default=1, help="records in a batch")
    parser.add_argument("--bytes", type=int, default=100, help="bytes of a record's value")
    parser.add_argument("--fetch-kb", type=int, default=64, help="KB of a fetch")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, asked.records, asked.bytes)
        show(f"produce of {asked.records} × {asked.bytes} B", produce_stages(bench))
        show(f"fetch of {asked.fetch_kb} KB", fetch_stages(bench, asked.fetch_kb << 10))


if __name__ == "__main__":
    main()
