"""`delivery = "exactly-once"` under kill -9 of everything: the JVM, the runner, the process of its
clients, and each process of the appliance, at random instants. What a reader of committed records
gets afterwards is, row for row, what a batch over the same input computes.

    PENSTOCK_TEST_KILLS=100 python -m pytest tests/spark/test_spark_killed.py -s

is a hundred runs, each with jobs and topics of its own and a seed that is printed;
PENSTOCK_TEST_SEED=7 begins with another one. Without the first it is skipped: a run takes half a
minute. What of it every run of the tests sees is in test_spark_exactly_once.py and
test_job_processes.py.
"""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kills import Feed, copies, derived, minutes, position, totals

from penstock.local import Appliance
from spark_local.engine import java
from spark_local.folder import Folder
from spark_local.jobfile import load

RUNS = int(os.environ.get("PENSTOCK_TEST_KILLS", 0))
SEED = int(os.environ.get("PENSTOCK_TEST_SEED", 1))
LIMIT_S = 180
pytestmark = [
    pytest.mark.timeout(0),
    pytest.mark.skipif(not RUNS, reason="PENSTOCK_TEST_KILLS says how many runs"),
    pytest.mark.usefixtures("java_for_a_minute"),
]
COMMON = """
trigger = "0 ms"
[sources.events]
topic = "{source}"
schema = "id BIGINT, who STRING, at TIMESTAMP"
event_time = "at"
watermark = "0 ms"
max_records = 100
[sink]
topic = "{sink}"
key = "who"
delivery = "exactly-once"
partitions = 2
{mode}
[restart]
first = "100 ms"
longest = "1 s"
attempts = 1000
"""
JOBS = {
    "copies": ("SELECT id, who FROM events", "append", copies),
    "totals": ("SELECT who, count(*) AS n FROM events GROUP BY who", "update", totals),
    "minutes": (
        "SELECT window.start AS minute, who, count(*) AS n FROM events "
        "GROUP BY window(at, '1 minute'), who", "append", minutes,
    ),
}  # fmt: skip
SPARKS = ("jvm", "runner", "clients")
APPLIANCES = ("appliance", "child", "child", "child")


class World:
    """An appliance, and a runner that is started again whenever it is gone, as systemd does."""

    def __init__(self, place):
        self.place = place
        self.appliance = Appliance(place / "data").start()
        self.folder = Folder(place / "jobs")
        self.folder.path.mkdir()
        self._runner = None
        self._log = (place / "serve.log").open("ab")
        self.serve()

    def close(self):
        self._runner.send_signal(signal.SIGTERM)
        self._runner.wait(LIMIT_S)
        self.appliance.close()
        self._log.close()

    def serve(self):
        line = [sys.executable, "-m", "console", "job", "serve", "--master", "local[2]"]
        line += ["--jobs", str(self.folder.path), "-b", self.appliance.bootstrap]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        self._runner = subprocess.Popen(
            line, env=environment, cwd=self.place, stdout=self._log, stderr=self._log
        )

    def kill(self, victim, chance):
        """kill -9; what nobody else starts again is started here."""
        if victim == "appliance":
            self.appliance.kill()
            self.appliance.start()
        elif victim == "child":
            children = self.appliance.pids()[1:]
            at = chance.randrange(5)
            kill(children[at % len(children)])
        elif victim == "runner":
            self._runner.kill()
            self._runner.wait()
            self.serve()
        else:
            word = {"jvm": "SparkSubmit", "clients": "client_process"}[victim]
            for pid in self._children():
                if word in command_line(pid):
                    kill(pid)

    def _children(self):
        tasks = Path(f"/proc/{self._runner.pid}/task").glob("*/children")
        return [int(pid) for task in tasks for pid in task.read_text().split()]

    def run(self, number, chance):
        """One run: fresh topics and jobs, kills while they work, and the comparison."""
        source = f"in-{number}"
        admin = AdminClient({"bootstrap.servers": self.appliance.bootstrap})
        admin.create_topics([NewTopic(source, 1, 1)])[source].result(LIMIT_S)
        places = {kind: self._add(kind, number, source) for kind in JOBS}
        victims = [chance.choice(SPARKS), chance.choice(APPLIANCES), chance.choice(APPLIANCES)]
        chance.shuffle(victims)
        with Feed(self.appliance.bootstrap, source) as feed:
            # One run in three kills before the first batch has ended.
            if chance.random() > 0.3:
                self.until(places, source, 1)
            for victim in victims:
                feed.go_on(chance.randint(1, 400))
                self.kill(victim, chance)
                print(f"  {victim}", end="", flush=True)
        written = feed.written()
        self.until(places, source, len(written))
        self.settled(places, written)
        for place in places.values():
            place.wish_for("removed")
        return len(written)

    def _add(self, kind, number, source):
        sql, mode, _ = JOBS[kind]
        name = f"{kind}-{number}"
        mode = f'mode = "{mode}"'
        text = f'sql = "{sql}"' + COMMON.format(source=source, sink=name, mode=mode)
        file = self.place / f"{name}.toml"
        file.write_text(text)
        return self.folder.add(load(file))

    def until(self, places, source, count):
        """Until each job has committed so many records of the source."""
        end = time.monotonic() + LIMIT_S
        for place in places.values():
            while position(self.appliance.bootstrap, place.name, source) < count:
                assert time.monotonic() < end, self.story(places)
                time.sleep(0.1)

    def settled(self, places, written):
        """Until every topic has what it must, and nothing else comes by an orderly stop."""
        end = time.monotonic() + LIMIT_S
        while True:
            wrong = self.wrong(written, places)
            if wrong is None:
                break
            assert time.monotonic() < end, f"{wrong}\n{self.story(places)}"
            time.sleep(0.5)
        for place in places.values():
            place.wish_for("stopped")
        while any(place.state().get("state") != "stopped" for place in places.values()):
            assert time.monotonic() < end, self.story(places)
            time.sleep(0.1)
        wrong = self.wrong(written, places)
        assert wrong is None, f"{wrong}\n{self.story(places)}"

    def wrong(self, written, places):
        """What of the derived topics is not what a batch computes; None when everything is."""
        for kind, (_, _, differs) in JOBS.items():
            if said := differs(derived(self.appliance.bootstrap, places[kind].name), written):
                return f"{kind}: {said}"
        return None

    def story(self, places):
        logs = [f"{p.name}: {p.state()}\n{p.log_file.read_text()}" for p in places.values()]
        return "\n".join([*logs, self.appliance.log_text()[-3000:]])


def command_line(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def kill(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_everything_is_killed(tmp_path):
    if why := java.unavailable():
        pytest.skip(why)
    world = World(tmp_path)
    try:
        for number in range(RUNS):
            seed = SEED + number
            began = time.monotonic()
            print(f"\nseed {seed}:", end="", flush=True)
            rows = world.run(number, random.Random(seed))
            print(f": {rows} rows, {time.monotonic() - began:.0f} s", end="", flush=True)
    finally:
        world.close()
