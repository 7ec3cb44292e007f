"""Where the documentation's commands are typed: folders with an appliance that runs and one that
was killed, and a shell in them. All of it is one world, for what starts is what takes time."""

import os
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.kafka import free_port
from penstock.local import Appliance, environment
from tests.console import txn_story
from tests.console.terminal import Terminal

LIMIT_S = 60
PAGES_ADDRESS = "localhost:9092"


class World:
    """home: its folder. names: what is typed for names of the reader's own."""

    def __init__(self, home, appliance):
        self.home = home
        self.running = appliance
        # Of the beginning: at a full minute the next one is later than every backup.
        minute = datetime.now(UTC).astimezone().strftime("%Y-%m-%dT%H:%M")
        self.names = {"home": str(home), "address": appliance.bootstrap, "minute": minute}
        program = home / "bin" / "penstock"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m console "$@"\n')
        program.chmod(0o755)
        mine = {"PENSTOCK_BOOTSTRAP": appliance.bootstrap, "HOME": str(home)}
        self.env = (
            environment() | mine | {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
        )

    def said_by(self, line, run):
        """What a line is when it is typed here."""
        line += "\n"
        for theirs, ours in run.given.items():
            line = line.replace(theirs, ours.format_map(self._now()))
        return line.rstrip("\n").replace(PAGES_ADDRESS, self.running.bootstrap)

    def _now(self):
        free = f"127.0.0.1:{free_port()}"
        return self.names | {"free": free}

    def type(self, line, where):
        """(exit code, what it said)."""
        done = subprocess.run(
            ["bash", "-c", line], cwd=self.home / where, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S,
            check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    def type_and_end(self, line, where, until):
        """(exit code, what it said): Ctrl-C when it has said that."""
        with subprocess.Popen(
            ["bash", "-c", f"exec {line}"], cwd=self.home / where, env=self.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        ) as process:  # fmt: skip
            try:
                said = ""
                while until not in said and (more := process.stdout.readline()):
                    said += more
                process.send_signal(signal.SIGINT)
                said += process.stdout.read()
            finally:
                process.kill()  # it ended, or this is a test that failed
        return process.returncode, said

    def at_terminal(self, line, where, until, answer):
        """(exit code, what it wrote): the answer is typed when that is seen."""
        terminal = Terminal(command=("bash", "-c", line), cwd=self.home / where, **self.env)
        try:
            terminal.until(until)
            terminal.type(answer)
            return terminal.ends(), terminal.said.decode(errors="replace")
        finally:
            terminal.close()


@contextmanager
def world(home: Path):
    """All that the pages speak of: topics with records, a transaction that is open and one that
    hangs, a folder of Kafka's, one of an appliance that was killed, one on two disks."""
    for where in ("running", "killed", "two", "empty"):
        (home / where).mkdir()
    kafka = _killed(home)
    with Appliance(home / "two" / "a", {"log.dirs": f"{home}/two/a,{home}/two/b"}) as two:
        _write(two)
    exporter = f"127.0.0.1:{free_port()}"
    settings = txn_story.SETTINGS | {"penstock.metrics.listener": exporter}
    with Appliance(home / "running" / "penstock-data", settings) as appliance:
        one = World(home, appliance)
        _write(appliance)
        owner = txn_story.Owner(appliance.bootstrap, "copier")
        owner.begin("orders", 1)
        hangs = txn_story.hang(txn_story.Link(appliance.bootstrap, {}, 30.0), "orders", 0)
        (home / "running" / "server.properties").write_text("num.partitions=3\n")
        one.names |= {"kafka": str(kafka), "metrics": exporter, "hanging": str(hangs)}
        yield one


def _write(appliance):
    link = appliance.connect()
    link.create_topic("orders", 3)
    with link.producer() as producer:
        for number in range(10):
            producer.produce("orders", b"%d" % number, partition=number % 3)


def _killed(home):
    """Make it; the folder of Kafka's that was made of it while it was still whole."""
    one = Appliance(home / "killed" / "penstock-data")
    with one:
        _write(one)
    words = ["export", str(home / "kafka"), "--data", str(one.data_dir), "--yes"]
    subprocess.run(
        [sys.executable, "-P", "-m", "console", *words], env=environment(), check=True,
        capture_output=True, timeout=LIMIT_S,
    )  # fmt: skip
    one.start()
    with one.connect().producer() as producer:
        producer.produce("orders", b"what the journal holds", partition=0)
    one.kill()
    return home / "kafka"
