"""How quick the console searches through records, and how long that keeps a key waiting.

`python -m benchmarks.records --records 500000`: JSON of some 200 bytes, looked through with several
filters; records and bytes a second, and the longest that an event loop beside the search had to
wait. What is found is nothing, so that all of it is looked at.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from console.model.asking.link import Link
from console.model.records.running import DONE, Running
from console.screens.at_terminal import SWITCH_S
from penstock.local import Appliance

FILTERS = (
    ("substring, this case", 'value:"No such airport"'),
    ("substring, any case", "value:airport-nowhere"),
    ("substring in key, value and headers", "airport-nowhere"),
    ("expression", "value:/air(port|line)-[0-9]{9}/"),
    ("JSON path, its name is in every value", "$.delay > 9223372036854775800"),
    ("JSON path, text that is in no value", '$.to = "No such airport"'),
)
_LOOK_S = 0.005


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records", description=__doc__)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--partitions", type=int, default=4)
    chosen = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)
    with tempfile.TemporaryDirectory() as home, Appliance(Path(home) / "data") as appliance:
        size = _fill(appliance.bootstrap, chosen.records, chosen.partitions)
        print(f"{chosen.records:,} records of {size / chosen.records:.0f} bytes")
        for about, text in FILTERS:
            asyncio.run(_search(appliance.bootstrap, about, text))


def _fill(bootstrap, count, partitions):
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic("flights", partitions, 1)]).values():
        future.result()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    size = 0
    for n in range(count):
        value = json.dumps({
            "id": n, "from": f"airport-{n % 317}", "to": f"airport-{n % 211}", "delay": n % 90 - 20,
            "seats": {"first": n % 12, "rest": n % 180}, "at": 1_357_038_000_000 + n * 1000,
            "tail": f"N{n % 3300:05}", "note": "on time" if n % 3 else "late aircraft",
        }).encode()  # fmt: skip
        key = b"%d" % (n % 5000)
        size += len(key) + len(value)
        producer.produce("flights", value, key, partition=n % partitions)
        if not n % 10_000:
            producer.poll(0.01)
    producer.flush()
    return size


async def _search(bootstrap, about, text):
    running = Running(Link(bootstrap, {}, 30.0, read_only=True), "flights", "start", text)
    began, longest = time.perf_counter(), 0.0
    running.start_scan()
    while running.is_running:
        before = time.perf_counter()
        await asyncio.sleep(_LOOK_S)
        longest = max(longest, time.perf_counter() - before - _LOOK_S)
        assert not running.take_found()
    took = time.perf_counter() - began
    told = running.progress
    assert running.state == DONE, (running.state, running.failure)
    rate, bytes_rate = told.records / took, told.data_bytes / took / 1e6
    print(
        f"{about:<40} {rate:9,.0f} records/s {bytes_rate:6.1f} MB/s"
        f"  longest wait {longest * 1000:4.0f} ms"
    )


if __name__ == "__main__":
    main()
