"""Passwords are in nothing that stays behind: core files, what commands keep for the next time,
dumps of the metadata log, in which a password that was set while it served stands."""

import os
import resource
import shutil
import signal
import subprocess
import tarfile
from pathlib import Path

import pytest
from confluent_kafka import Producer

from appliance.observer.door import Observer
from appliance.ring.process_table import CONTROL, IOPROC, Peer
from benchmarks.kafka import free_port
from tests.broker_process import KAFKA
from tests.compat.waiting import until
from tests.console_process import PENSTOCK
from tests.differential.link import Link
from tests.sasl.logged import HOST, LoggedIn, jaas
from tests.sasl.talk import Talk

pytestmark = pytest.mark.skipif(KAFKA, reason="what an appliance leaves")
IN_SETTINGS = "canary-Settings-b3d1"
DYNAMIC = "canary-Dynamic-0c7e"
OF_A_BUCKET = "canary-Bucket-88a4"
DYNAMIC_KEY = "listener.name.only.plain.sasl.jaas.config"
PATTERN = Path("/proc/sys/kernel/core_pattern")


def has(file, *canaries):
    data = file if isinstance(file, bytes) else file.read_bytes()
    return [one for one in canaries if one.encode() in data]


@pytest.fixture
def own(tmp_path, monkeypatch):
    """One whose users have logged in, with a password in its settings and one in its metadata."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    words = {
        "listener.name.static.plain.sasl.jaas.config": jaas({"static": IN_SETTINGS}),
        "listener.name.only.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
    }
    with LoggedIn(tmp_path / "data", words) as running:
        link = Link((HOST, running.port))
        changes = [{"name": DYNAMIC_KEY, "config_operation": 0, "value": jaas({"late": DYNAMIC})}]
        one = {"resource_type": 4, "resource_name": "1", "configs": changes}
        answer = link.ask(44, 1, {"resources": [one], "validate_only": False})
        assert answer["responses"][0]["error_code"] == "NONE"
        link.close()
        for listener, user, password in (
            ("STATIC", "static", IN_SETTINGS),
            ("ONLY", "late", DYNAMIC),
        ):
            until(lambda: gets_in(running, listener, user, password))  # noqa: B023
        yield running


def gets_in(running, listener, user, password):
    with running.wire(listener) as wire:
        return Talk(wire).plain(user, password)[0] == 0


def run(own, home, *words, code=0):
    """A command as somebody with this home types it; all that it tells."""
    kinds = {f"XDG_{kind}_HOME": str(home / kind) for kind in ("CONFIG", "STATE", "CACHE", "DATA")}
    env = os.environ | kinds | {"HOME": str(home), "PENSTOCK_BOOTSTRAP": own.bootstrap}
    done = subprocess.run(
        [*PENSTOCK, *words], env=env, capture_output=True, timeout=60, check=False
    )
    assert code in (None, done.returncode), done.stdout + done.stderr
    return done.stdout + done.stderr


def test_not_in_what_commands_keep_for_the_next_time(own, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=static\n"
        f"sasl.password={IN_SETTINGS}\n"
    )
    told = run(own, home, "profile", "add", "own", own.at("STATIC"), "--command-config", str(file),
               "--use")  # fmt: skip
    told += run(own, home, "profile", "list")
    for words in ("topic list", "topic create kept", "status", "config list --broker 1 -o json"):
        code = None if words == "status" else 0  # the host's disk may be nearly full
        told += run(own, home, "--profile", "own", *words.split(), code=code)
    kept = [one for one in home.rglob("*") if one.is_file()]
    assert [one for one in kept if one.name == "profiles.toml"]
    assert not [one for one in kept if has(one, IN_SETTINGS, DYNAMIC)]
    assert not has(told, IN_SETTINGS, DYNAMIC)


def test_not_in_dumps_events_ps_and_bundles(own, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    log = own.data / "__cluster_metadata-0"
    assert any(has(one, DYNAMIC) for one in log.iterdir()), "as Apache Kafka keeps it"
    bundle = tmp_path / "bundle.tar.gz"
    told = run(own, home, "log", "dump", str(log), "--records", "-o", "json")
    assert DYNAMIC_KEY.encode() in told
    told += run(own, home, "log", "dump", str(log), "--records")
    told += run(own, home, "event", "list", "--data", str(own.data), "-o", "json")
    told += run(own, home, "audit", "--data", str(own.data), "-o", "json")
    told += run(own, home, "debug", "bundle", "--data", str(own.data), "-o", str(bundle))
    told += own.output().encode()
    for pid in own.pids():
        told += (
            Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
        )
    with tarfile.open(bundle) as opened:
        told += b"".join(opened.extractfile(one).read() for one in opened if one.isfile())
    assert not has(told, IN_SETTINGS, DYNAMIC)


def test_the_key_of_a_bucket_is_in_nothing_that_is_told(tmp_path, monkeypatch):
    """Nor in why a bucket does not answer. It comes by the environment, and is kept nowhere."""
    pytest.importorskip("obstore")
    for name, value in {
        "AWS_ACCESS_KEY_ID": "tiering", "AWS_SECRET_ACCESS_KEY": OF_A_BUCKET,
        "AWS_SESSION_TOKEN": OF_A_BUCKET, "AWS_REGION": "here", "AWS_ALLOW_HTTP": "true",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    words = {
        "remote.log.storage.system.enable": "true",
        "penstock.remote.storage.url": "s3://bucket/of/mine",
        "remote.log.manager.task.interval.ms": "100",
    }
    home = tmp_path / "home"
    home.mkdir()
    bundle = tmp_path / "bundle.tar.gz"
    with LoggedIn(tmp_path / "data", words) as own:
        small = {"remote.storage.enable": "true", "segment.bytes": str(1 << 20)}
        topic = own.peer.create(1, small)
        producer = Producer({"bootstrap.servers": own.bootstrap})
        for _ in range(2500):
            producer.produce(topic, bytes(1000))
        assert producer.flush(60) == 0
        until(lambda: "remote-copy-failed" in own.output())
        told = own.output().encode()
        told += run(own, home, "event", "list", "--data", str(own.data), "-o", "json")
        told += run(own, home, "config", "list", "--broker", "1", "-o", "json")
        told += run(own, home, "debug", "bundle", "--data", str(own.data), "-o", str(bundle))
        told += run(own, home, "backup", "create", "s3://bucket/of/mine", "--data", str(own.data),
                    code=None)  # fmt: skip
        for pid in own.pids():
            told += Path(f"/proc/{pid}/cmdline").read_bytes()
        with tarfile.open(bundle) as opened:
            told += b"".join(opened.extractfile(one).read() for one in opened if one.isfile())
        kept = [one for one in own.data.rglob("*") if one.is_file() and has(one, OF_A_BUCKET)]
    assert not has(told, OF_A_BUCKET) and not kept


def core_of(pid, folder):
    """The core file of a process, by the kernel where it writes one to a folder, else by gcore."""
    if not PATTERN.read_text().startswith("|") and resource.getrlimit(resource.RLIMIT_CORE)[1]:
        resource.prlimit(pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
        os.kill(pid, signal.SIGSEGV)
        until(lambda: not Path(f"/proc/{pid}").exists())
    if found := [one for one in folder.iterdir() if one.name.startswith("core")]:
        return found[0]
    if shutil.which("gcore") is None or not Path(f"/proc/{pid}").exists():
        pytest.skip("nobody writes core files here")
    file = folder / "core"
    subprocess.run(
        ["gcore", "-o", str(file), str(pid)], capture_output=True, timeout=120, check=True
    )
    return Path(f"{file}.{pid}")


@pytest.mark.parametrize("kind", [CONTROL, IOPROC], ids=["control", "ioproc"])
def test_not_in_core_files(own, tmp_path, kind):
    """A process that fails leaves none of its memory. The kernel writes no core of a network
    process: its sandbox writes no file."""
    filters = [Path(f"/proc/{pid}/coredump_filter").read_text() for pid in own.pids()]
    assert {int(one, 16) for one in filters} == {0x10}
    pid = Observer(str(own.data)).tables.processes.pid(Peer(kind, 0))
    core = core_of(pid, Path.cwd())
    assert core.read_bytes()[:4] == b"\x7fELF"
    assert not has(core, IN_SETTINGS, DYNAMIC)
    core.unlink()
