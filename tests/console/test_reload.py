"""`penstock config reload`: a running appliance reads its settings file again."""

import os
import signal
import socket
import sys
import time
import urllib.request

import pytest

from appliance.observer.door import Observer
from appliance.ring.partition_table import LOG_START
from appliance.ring.process_table import NETPROC, READY, Peer
from benchmarks.kafka import free_port
from tests.broker_process import Broker
from tests.console_process import rows, typing

LIMIT_S = 60
ELSEWHERE = "127.0.0.9"
"""An address of this host from which nobody else connects."""
FIRST = "log.retention.check.interval.ms=100\nlog.retention.hours=24\n"
REFUSED = f"max.connections.per.ip.overrides={ELSEWHERE}:0\n"


class WithFile(Broker):
    """Its settings stand in a file."""

    def __init__(self, data):
        super().__init__(data)
        self.file = data.parent / "server.properties"
        self.file.write_text(FIRST)

    def command(self):
        return [
            sys.executable, "-m", "console", "up", "--data", str(self.data),
            "--listen", f"127.0.0.1:{self.port}", "--config", str(self.file),
        ]  # fmt: skip


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with WithFile(tmp_path_factory.mktemp("reload") / "data") as one:
        yield one


@pytest.fixture
def run(broker):
    yield typing(broker.bootstrap)
    broker.file.write_text(FIRST)
    typing(broker.bootstrap)("config", "reload", "--data", str(broker.data))


def reload(broker, run, text, code=0):
    broker.file.write_text(text)
    return run("config", "reload", "--data", str(broker.data), "-o", "json", code=code)


def is_refused(broker):
    """Whether the broker hangs up on who comes from elsewhere."""
    with socket.create_connection(("127.0.0.1", broker.port), LIMIT_S, (ELSEWHERE, 0)) as client:
        asked = b"\0\x12\0\0\0\0\0\1\xff\xff"  # ApiVersions, version 0
        try:
            client.sendall(len(asked).to_bytes(4) + asked)
            return client.recv(100) == b""
        except ConnectionError:
            return True


def until(asks):
    end = time.monotonic() + LIMIT_S
    while not (found := asks()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def test_what_may_change_holds_in_every_process_and_in_their_successors(broker, run):
    run("topic", "create", "old")
    run("produce", "old", stdin="one\ntwo\n")
    assert not is_refused(broker)
    changed = FIRST.replace("hours=24", "ms=1") + REFUSED
    found = {row["key"]: row for row in rows(reload(broker, run, changed))}
    assert {row["status"] for row in found.values()} == {"changed"}
    assert set(found) == {
        "log.retention.hours", "log.retention.ms", "max.connections.per.ip.overrides",
    }  # fmt: skip
    assert (found["log.retention.hours"]["before"], found["log.retention.hours"]["after"]) == (
        "24", "168",
    )  # fmt: skip
    assert is_refused(broker), "a network process took it"
    told = rows(run("config", "get", "log.retention.ms", "-o", "json"))[0]
    assert (told["value"], told["source"]) == ("1", "broker, its file or command line")
    tables = Observer(str(broker.data)).tables
    until(lambda: 2 in tables.partitions.column(LOG_START))  # an I/O process took it, too
    table = tables.processes
    killed = table.pid(Peer(NETPROC, 0))
    os.kill(killed, signal.SIGKILL)
    until(lambda: table.pid(Peer(NETPROC, 0)) not in (0, killed))
    until(lambda: table.state(Peer(NETPROC, 0)) == READY)
    assert is_refused(broker), "its successor has it"
    reload(broker, run, FIRST)
    assert not is_refused(broker)


def test_what_needs_a_restart_is_named_until_it_is_gone(broker, run):
    text = f"{FIRST}num.partitions=3\nmax.connections=1000\n"
    found = {row["key"]: row["status"] for row in rows(reload(broker, run, text, code=4))}
    assert found == {"num.partitions": "needs a restart", "max.connections": "changed"}
    (row,) = rows(reload(broker, run, text, code=4))
    assert (row["key"], row["before"], row["after"]) == ("num.partitions", "1", "3")
    said = until(lambda: [one for one in broker.output().splitlines() if "needs_restart" in one])
    assert 'needs_restart="num.partitions: 1 → 3"' in said[-1]
    assert rows(run("config", "get", "num.partitions", "-o", "json"))[0]["value"] == "1"
    (row,) = rows(reload(broker, run, FIRST))
    assert row["key"] == "max.connections"
    assert "settings match the file" in reload(broker, run, FIRST).stderr


def scraped(port, path="/metrics", host="127.0.0.1"):
    """What is told at a port, "" when nobody is there."""
    try:
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=LIMIT_S) as answer:
            return answer.read().decode()
    except OSError:
        return ""


def test_the_exporter_takes_other_settings_at_once(broker, run):
    run("topic", "create", "told", "-p", "3")
    first = free_port()
    at = "penstock.metrics.listener=127.0.0.1:{}\n"
    (row,) = rows(reload(broker, run, FIRST + at.format(first)))
    assert (row["key"], row["status"]) == ("penstock.metrics.listener", "changed")
    page = until(lambda: scraped(first))
    assert 'penstock_partition_log_end_offset{topic="told",partition="2"}' in page
    text = FIRST + at.format(first) + "penstock.metrics.partitions.max=1\n"
    reload(broker, run, text)
    page = until(lambda: scraped(first))
    assert 'penstock_partition_log_end_offset{topic="told"}' in page, "summed up by topic"
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        second = other.getsockname()[1]
        broker.file.write_text(FIRST + at.format(second) + "max.connections=900\n")
        said = run("config", "reload", "--data", str(broker.data), code=2).stderr
        assert f"{second} is in use" in said
        assert scraped(first), "nothing has changed"
        assert rows(run("config", "get", "max.connections", "-o", "json"))[0]["value"] != "900"
    reload(broker, run, FIRST + at.format(second))
    assert until(lambda: scraped(second)) and not scraped(first)
    reload(broker, run, FIRST + at.format(second).replace("127.0.0.1", "127.0.0.2"))
    assert until(lambda: scraped(second, host="127.0.0.2")), "the same port at another address"
    reload(broker, run, FIRST)
    assert not scraped(second, host="127.0.0.2")


def test_a_file_that_is_wrong_changes_nothing_and_says_where(broker, run):
    text = f"{FIRST}max.connections=17\nlog.retention.ms=soon\n"
    broker.file.write_text(text)
    said = run("config", "reload", "--data", str(broker.data), code=2).stderr
    assert f"{broker.file}, line 4: Invalid value soon for configuration log.retention.ms" in said
    (told,) = rows(run("config", "get", "max.connections", "-o", "json"))
    assert told["source"] == "default"
    broker.file.unlink()
    said = run("config", "reload", "--data", str(broker.data), code=2).stderr
    assert f"{broker.file} cannot be read" in said


def test_where_nothing_runs_there_is_nobody_to_ask(tmp_path, run):
    assert "no folder of an appliance" in run("config", "reload", "--data", tmp_path, code=3).stderr
