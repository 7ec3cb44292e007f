"""The console without a terminal: how quick it is over many topics, and what it looks like.

`python -m benchmarks.console keys --topics 10000`: time to the first picture, and from a key to the
screen that shows it. `--made`: over tables of an appliance that were made up in this process, with
rows that change all the time, and groups; for more partitions than this host lets a process
have files open. `python -m benchmarks.console pictures docs/console`: an
appliance with traffic, photographed.
"""

import argparse
import asyncio
import contextlib
import json
import random
import re
import resource
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

from appliance.base.ids import TopicId
from appliance.observer.snapshot import take_snapshot
from appliance.observer.traffic import Traffic
from appliance.ring import partition_table as columns
from appliance.ring.tables import Shape, Tables
from benchmarks import nodes
from console.model import quotas, topics
from console.model.groups import Listed
from console.model.link import Link
from console.model.local import Local
from console.model.stats import Meter
from console.screens.app import ConsoleApp
from console.screens.at_terminal import prepare
from console.screens.changes.dialog import READY
from console.screens.places import Place
from console.screens.world import GroupsSeen
from penstock.local import Appliance

SIZE, LARGE = (110, 32), (150, 44)
PICTURED = (
    Place("overview"), Place("topics"), Place("group", "billing"), Place("quotas"),
    Place("records", "flights"), Place("txns"), Place("log"),
)  # fmt: skip
KEYS = ("j", "k", "ctrl+d", "ctrl+u", "G", "g", "s", "3", "j", "G", "s", "1", "2")
_MB = 1 << 20


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console", description=__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    keys = what.add_parser("keys")
    keys.add_argument("--topics", type=int, default=10_000)
    keys.add_argument("--partitions", type=int, default=1)
    keys.add_argument("--made", action="store_true")
    keys.add_argument("--groups", type=int, default=5_000, help="with --made")
    keys.add_argument(
        "--busy", type=int, default=500, help="rows that change a second, with --made"
    )
    keys.add_argument("--presses", type=int, default=300)
    pictures = what.add_parser("pictures")
    pictures.add_argument("folder", type=Path)
    pictures.add_argument("--seconds", type=float, default=45.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, Appliance(Path(home) / "data") as appliance:
        if chosen.what == "keys":
            made = None
            if chosen.made:
                made = _Made(chosen.topics, chosen.partitions, chosen.groups, chosen.busy)
            else:
                _make(appliance.bootstrap, chosen.topics, chosen.partitions)
            asyncio.run(_keys(appliance.bootstrap, chosen.presses, made))
        else:
            chosen.folder.mkdir(parents=True, exist_ok=True)
            with _Traffic(appliance.bootstrap):
                asyncio.run(_pictures(appliance.bootstrap, chosen.folder, chosen.seconds))
            _nodes(Path(home) / "nodes", chosen.folder)


def _link(bootstrap):
    return Link(bootstrap, {}, 30.0, read_only=True)


async def _until(pilot, holds):
    while not holds():
        await pilot.pause(0.01)


# Keys ---------------------------------------------------------------------------------------------


def _make(bootstrap, topics, partitions):
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    names = [f"topic-{n:06}" for n in range(topics)]
    for at in range(0, topics, 1000):
        some = [NewTopic(name, partitions, 1) for name in names[at : at + 1000]]
        for future in admin.create_topics(some, request_timeout=300).values():
            future.result()


class _Made:
    """Tables of an appliance with so many topics, of which some change every 100 ms."""

    def __init__(self, topics, partitions, groups, busy):
        rows = -(-topics * partitions // 2) * 2
        shape = Shape(ioprocs=1, netprocs=1, partition_rows=rows, quota_windows=11)
        self.tables = Tables(memoryview(bytearray(Tables.bytes_needed(shape))), shape)
        self.named = {}
        for number in range(topics):
            topic = TopicId(number.to_bytes(16, "big"))
            self.named[topic] = SimpleNamespace(name=f"topic-{number:06}")
            for partition in range(partitions):
                handle = self.tables.partitions.add(topic, partition)
                self.tables.partitions.set(handle, columns.STATUS, columns.ONLINE)
        self.groups, self._rows, self._busy = groups, topics * partitions, busy

    def feed(self, app):
        """The sources of the console are told what these tables hold."""
        local = Local(app.world.link, app.world.hush.breathe)
        local._meter = _MadeMeter(self, app.world.hush.breathe)
        quiet = SimpleNamespace(
            read_samples=tuple, read_connections=tuple, whole=[], of_topics={}, left_out=0
        )
        local._recent = local._clients = quiet
        app.world.facts.ask = local.read_facts
        app.world.groups.ask = lambda: GroupsSeen(
            [Listed(f"group-{n:05}", "stable", "classic") for n in range(self.groups)], {}
        )

    def change(self):
        state = self.tables.partitions.state
        for _ in range(self._busy // 10):
            at = random.randrange(self._rows) * columns.COLUMNS
            state[at + columns.BYTES_IN] += 1000
            state[at + columns.RECORDS_IN] += 10
            state[at + columns.HIGH_WATERMARK] += 10


class _MadeMeter(Meter):
    def __init__(self, made, breathe):
        self._made = made
        super().__init__("", breathe)

    def _open(self, data_dir):
        tables = self._made.tables
        observer = SimpleNamespace(
            tables=tables, traffic=Traffic(tables.partitions), alive=True,
            head=SimpleNamespace(started_ms=int(time.time() * 1000)),
            snapshot=lambda: take_snapshot(tables, time.monotonic_ns(), lambda peer: 0.0),
        )  # fmt: skip
        image = SimpleNamespace(topics_by_id=self._made.named)
        return observer, SimpleNamespace(catch_up=lambda *_: None, image=image)


async def _keys(bootstrap, presses, made):
    before = _memory_mb()
    prepare()
    began = time.perf_counter()
    app = ConsoleApp(_link(bootstrap), Place("topics"))
    if made is not None:
        made.feed(app)
    async with app.run_test(size=(80, 24)) as pilot:
        if made is not None:
            app.set_interval(0.1, made.change)
        print(f"first picture after {(time.perf_counter() - began) * 1000:.0f} ms")
        await _until(pilot, lambda: app.world.facts.shown.value is not None)
        print(f"all topics after {(time.perf_counter() - began) * 1000:.0f} ms")
        await _until(pilot, lambda: not app.world.facts.shown.value.since_start)
        took, alone, of_key = [], [], {}
        for n in range(presses):
            key = KEYS[n % len(KEYS)]
            seen = asyncio.Event()
            at, waited = time.perf_counter(), _waited_ms()
            app.simulate_key(key)
            app.call_after_refresh(seen.set)
            await seen.wait()
            took.append((time.perf_counter() - at) * 1000)
            alone.append(max(0.0, took[-1] - (_waited_ms() - waited)))
            of_key[key] = max(of_key.get(key, 0), took[-1])
            await asyncio.sleep(random.uniform(0.01, 0.1))
        for what, times in (("a key", took), ("without waits for a processor", alone)):
            times.sort()
            p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
            print(f"{what}: p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {times[-1]:.1f} ms")
        print("longest of each: " + ", ".join(f"{key} {ms:.0f}" for key, ms in of_key.items()))
        look = app.world.facts.took_s * 1000
        memory = f"{_memory_mb():.0f} MiB, {before:.0f} of them before it began"
        print(f"one look at the counters {look:.0f} ms; most memory {memory}")


def _memory_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / _MB


def _waited_ms():
    """For how long the threads of this process were ready to run and other processes had the
    processors: on a busy machine that is what a key waits for most."""
    waited = 0
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            waited += int((task / "schedstat").read_text().split()[1])
    return waited / 1e6


# Pictures -----------------------------------------------------------------------------------------


class _Traffic:
    """Writes and reads that go up and down, until it is left."""

    TOPICS = (("flights", 6), ("weather", 1), ("orders.eu", 12), ("payments", 3), ("audit", 1))

    def __init__(self, bootstrap):
        self._bootstrap = bootstrap
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._write, self._read)
        ]

    def __enter__(self):
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        keep = {"retention.ms": "604800000"}
        made = [NewTopic(name, count, 1, config=keep) for name, count in self.TOPICS]
        for future in admin.create_topics(made).values():
            future.result()
        link = Link(self._bootstrap, {}, 30.0)
        quotas.change(
            link, (("client-id", "airport"),), {"producer_byte_rate": 2_500_000.0}, dry_run=False
        )
        quotas.change(link, (("client-id", None),), {"consumer_byte_rate": 5e7}, dry_run=False)
        for one in self._threads:
            one.start()

    def __exit__(self, *_):
        self._over.set()
        for one in self._threads:
            one.join()

    def _write(self):
        from confluent_kafka import Producer

        config = {"bootstrap.servers": self._bootstrap, "client.id": "airport", "linger.ms": 20}
        producer = Producer(config)
        chance, much = random.Random(7), 400
        while not self._over.wait(0.1):
            if len(producer) > 50_000:  # held back by its quota
                producer.poll(0.1)
                continue
            much = min(2000, max(50, much + chance.randint(-150, 160)))
            for name, share in (("flights", 1.0), ("orders.eu", 0.4), ("weather", 0.02)):
                for _ in range(int(much * share)):
                    key = chance.choice(("UA", "B6", "AA", "DL"))
                    late = {"carrier": key, "origin": chance.choice(("EWR", "JFK", "LGA")),
                            "late": chance.randint(-9, 90), "plane": f"N{chance.randint(100, 999)}",
                            "route": chance.randbytes(100).hex()}  # fmt: skip
                    producer.produce(name, json.dumps(late).encode(), key)
            producer.poll(0)
        producer.flush()

    def _read(self):
        from confluent_kafka import Consumer

        config = {"auto.offset.reset": "earliest", "max.partition.fetch.bytes": 200_000}
        consumer = Consumer(
            config
            | {"bootstrap.servers": self._bootstrap, "group.id": "billing", "client.id": "b1"}
        )
        consumer.subscribe(["flights", "orders.eu"])
        while not self._over.is_set():
            for _ in consumer.consume(500, 0.1):
                pass
        consumer.close()


@contextlib.contextmanager
def _transaction(bootstrap):
    """One that stays open meanwhile."""
    from confluent_kafka import Producer

    mover = Producer({"bootstrap.servers": bootstrap, "transactional.id": "mover-0"})
    mover.init_transactions(30)
    mover.begin_transaction()
    for number in range(240):
        mover.produce("payments", b'{"from": "eu-%d"}' % number, partition=number % 2)
    mover.flush(30)
    yield
    mover.abort_transaction(30)


_CELL = 12.2
_LED = re.compile(
    r'x="([0-9.]+)"( y="[0-9.]+") textLength="([0-9.]+)"([^>]*)>((?:&#160;)+)(?=[^<&])'
)


def _moved(text):
    """Without the blanks in front, and where it begins without them: some who draw drop them."""
    x, y, length, rest, blanks = text.groups()
    wide = _CELL * blanks.count(";")
    x, length = (round(float(one) + by, 1) for one, by in ((x, wide), (length, -wide)))
    return f'x="{x:g}"{y} textLength="{length:g}"{rest}>'


def photograph(app, path):
    picture = app.export_screenshot(title="penstock console", simplify=True)
    path.write_text(_LED.sub(_moved, picture))
    print(path)


def _nodes(home, folder):
    """Three nodes, one of which is away while a topic is written to."""
    cluster = nodes.Cluster("penstock", "D1", home)
    try:
        cluster.start()
        link = Link(cluster.bootstrap, {}, 30.0)
        for name in ("flights", "orders.eu"):
            topics.create(link, [name], partitions=3, replicas=3, settings={}, dry_run=False)
        topics.create(link, ["audit"], partitions=1, replicas=1, settings={}, dry_run=False)
        _fill(cluster.bootstrap, ("flights", "orders.eu", "audit"))
        asyncio.run(_pictured(cluster, folder))
    finally:
        cluster.close()


def _fill(bootstrap, names):
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for n in range(60_000):
        producer.produce(names[n % len(names)], random.randbytes(500), str(n))
        producer.poll(0)
    producer.flush()


async def _pictured(cluster, folder):
    app = ConsoleApp(_link(cluster.bootstrap), Place("nodes"))
    async with app.run_test(size=SIZE) as pilot:
        seen = app.world.nodes
        await _until(pilot, lambda: seen.shown.value and seen.shown.value.health.whole)
        cluster.kill(max(cluster.nodes))
        await _until(pilot, lambda: seen.shown.value.missing)
        await _until(pilot, lambda: seen.shown.value.health.under_replicated)
        await pilot.pause(5.0)
        photograph(app, folder / "nodes.svg")


async def _pictures(bootstrap, folder, seconds):
    app = ConsoleApp(_link(bootstrap), changing=Link(bootstrap, {}, 30.0))

    def keep_picture(name):
        photograph(app, folder / f"{name}.svg")

    async with app.run_test(size=SIZE) as pilot:
        world = app.world
        await _until(pilot, lambda: world.facts.shown.value is not None)
        await _until(pilot, lambda: len(world.facts.shown.value.history) >= seconds)
        await _until(pilot, lambda: world.folders.shown.value is not None)
        with contextlib.ExitStack() as meanwhile:
            for place in PICTURED:
                if place.kind == "txns":
                    meanwhile.enter_context(_transaction(bootstrap))
                await pilot.resize_terminal(*(LARGE if place.kind == "overview" else SIZE))
                await app.go_to(place)
                await _until(pilot, lambda place=place: world.main(place).shown.value)
                if place.kind == "overview":
                    await pilot.press("z", "z", "z")  # the last minute: there is no more to see
                # What is asked again has its second answer then, and a transaction its age.
                await pilot.pause(8.0 if place.kind == "txns" else 3.0)
                keep_picture(place.kind)
        await app.go_to(Place("topic", "flights"))
        await pilot.press("D")
        await _until(pilot, lambda: getattr(app.screen, "state", "") == READY)
        await pilot.pause(0.5)
        keep_picture("delete")


if __name__ == "__main__":
    main()
