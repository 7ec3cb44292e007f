"""The console without a terminal: how quick it is over many topics.

`python -m benchmarks.console keys --topics 10000`: time to the first picture, and from a key to the
screen that shows it. `--made`: over tables of an appliance that were made up in this process, with
rows that change all the time, and groups; for more partitions than this host lets a process
have files open. `python -m benchmarks.console idle`: what each view costs while nobody presses a
key, at terminals of their own. `link`: the bytes that a key sends to the terminal.
"""

import argparse
import asyncio
import contextlib
import random
import resource
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

from textual import events

from appliance.base.ids import TopicId
from appliance.observer.snapshot import take_snapshot
from appliance.observer.traffic import Traffic
from appliance.ring import partition_table as columns
from appliance.ring.tables import Shape, Tables
from benchmarks import console_idle
from console.model.asking.link import Link
from console.model.groups.groups import Listed
from console.model.local.local import Local
from console.model.local.stats import Meter
from console.screens.app import ConsoleApp
from console.screens.at_terminal import prepare
from console.screens.places import Place
from console.screens.world import GroupsSeen
from penstock.local import Appliance

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
    keys.add_argument("--presses", type=int, default=600)
    keys.add_argument("--size", default="80x24", help="of the terminal")
    idle = what.add_parser("idle")
    idle.add_argument("--topics", type=int, default=1000)
    idle.add_argument("--sizes", nargs="+", default=["120x40", "200x50"])
    idle.add_argument("--only", nargs="*", default=[], help="views by their first word")
    idle.add_argument("--settle", type=float, default=30.0, help="seconds before it is measured")
    idle.add_argument("--seconds", type=float, default=60.0)
    idle.add_argument("--at-once", type=int, default=4, help="consoles beside each other")
    idle.add_argument("--moves", action="store_true", help="with 50 records a second")
    idle.add_argument("--to", help="file for the table")
    link = what.add_parser("link")
    link.add_argument("--topics", type=int, default=1000)
    link.add_argument("--sizes", nargs="+", default=["80x24", "120x40", "200x50"])
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, Appliance(Path(home) / "data") as appliance:
        if chosen.what == "idle":
            console_idle.run(chosen, appliance.bootstrap)
            return
        if chosen.what == "link":
            sizes = [tuple(map(int, one.split("x"))) for one in chosen.sizes]
            console_idle.measure_link(appliance.bootstrap, chosen.topics, sizes)
            return
        made = None
        if chosen.made:
            made = _Made(chosen.topics, chosen.partitions, chosen.groups, chosen.busy)
        else:
            _make(appliance.bootstrap, chosen.topics, chosen.partitions)
        asyncio.run(_keys(appliance.bootstrap, chosen, made))


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
            self.named[topic] = SimpleNamespace(
                name=f"topic-{number:06}", partitions=[SimpleNamespace(replicas=(1,))]
            )
            for partition in range(partitions):
                handle = self.tables.partitions.add(topic, partition)
                self.tables.partitions.set(handle, columns.STATUS, columns.ONLINE)
        self.groups, self._rows, self._busy = groups, topics * partitions, busy

    def feed(self, app):
        """The sources of the console are told what these tables hold."""
        local = Local(app.world.link, app.world.hush.breathe)
        local._meter = _MadeMeter(self, app.world.hush.breathe)
        quiet = SimpleNamespace(
            read_samples=tuple,
            read_connections=tuple,
            read_pushes=tuple,
            whole=[],
            of_topics={},
            left_out=0,
            seen_s=0,
        )
        local._recent = local._clients = local._pushes = quiet
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
        image = SimpleNamespace(topics_by_id=self._made.named, brokers={})
        identity = SimpleNamespace(node_id=1)
        follower = SimpleNamespace(catch_up=lambda *_: (), image=image, identity=identity)
        return observer, follower


class _Pressed(ConsoleApp):
    """A console that knows when a key has its picture."""

    _acted = None

    async def on_event(self, event):
        await super().on_event(event)
        if isinstance(event, events.Key) and event.is_forwarded and self._acted is not None:
            self._acted.set()

    async def press(self, key):
        """Until its action has run and the screen that it changed is drawn."""
        self._acted, shown = asyncio.Event(), asyncio.Event()
        self.simulate_key(key)
        await self._acted.wait()
        for _ in range(6):  # widgets tell the screen that they have changed
            await asyncio.sleep(0)
        self.screen.call_after_refresh(shown.set)
        await shown.wait()


async def _keys(bootstrap, chosen, made):
    before = _memory_mb()
    prepare()
    began = time.perf_counter()
    app = _Pressed(_link(bootstrap), Place("topics"))
    if made is not None:
        made.feed(app)
    async with app.run_test(size=tuple(map(int, chosen.size.split("x")))) as pilot:
        if made is not None:
            app.set_interval(0.1, made.change)
        print(f"first picture after {(time.perf_counter() - began) * 1000:.0f} ms")
        facts = app.world.facts
        await _until(pilot, lambda: facts.shown.value is not None or facts.shown.failure)
        if facts.shown.value is None:
            raise SystemExit(f"no counters: {facts.shown.failure}")
        print(f"all topics after {(time.perf_counter() - began) * 1000:.0f} ms")
        await _until(pilot, lambda: not app.world.facts.shown.value.since_start)
        took, alone, spent, of_key = [], [], [], {}
        for n in range(chosen.presses):
            key = KEYS[n % len(KEYS)]
            at, waited, used = time.perf_counter(), _waited_ms(), time.thread_time()
            await app.press(key)
            took.append((time.perf_counter() - at) * 1000)
            spent.append((time.thread_time() - used) * 1000)
            alone.append(max(0.0, took[-1] - (_waited_ms() - waited)))
            of_key[key] = max(of_key.get(key, 0), took[-1])
            await asyncio.sleep(random.uniform(0.01, 0.1))
        for what, times in (
            ("a key", took),
            ("without waits for a processor", alone),
            ("processor time of the loop", spent),
        ):
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


if __name__ == "__main__":
    main()
