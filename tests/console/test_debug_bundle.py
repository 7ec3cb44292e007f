"""`penstock debug bundle`: what is in it, what is not, with an appliance and without."""

import io
import json
import os
import shutil
import tarfile
import threading

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from console.model.bundle.archive import Bundle
from console.model.bundle.secrets import HIDDEN, Secrets, is_telling
from penstock.local import Appliance
from tests.console_process import typing

JAAS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="{}" password="{}";'
)
PEM = "-----BEGIN PRIVATE KEY-----\n{}\n{}\n-----END PRIVATE KEY-----"

DYNAMIC = "listener.name.plaintext.ssl.truststore.password"


class Planted:
    """Every one of them can be told from the others."""

    def __init__(self):
        self.by_place = {}

    def __call__(self, place):
        return self.by_place.setdefault(place, f"Planted{len(self.by_place):02}Qx7Zk")


def parts_of(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {
            one.name.removeprefix("penstock-bundle/"): archive.extractfile(one).read()
            for one in archive
        }


def leaked(planted, parts):
    """Places whose secret is in the archive, or a piece of it."""
    everything = b"\n".join([*parts.values(), *map(str.encode, parts)])
    return [place for place, one in planted.by_place.items() if one[:11].encode() in everything]


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """(appliance with secrets in every place, the secrets, words of the command, a folder)."""
    folder, planted = tmp_path_factory.mktemp("bundle"), Planted()
    settings = {
        "ssl.keystore.password": planted("command line"),
        "sasl.jaas.config": JAAS.format("u", planted("login")),
        "listener.name.plaintext.ssl.key.password": planted("listener's"),
        "s3.secret.access.key": planted("not declared"),
        "log.s3.accesskey": planted("not declared, a name that says little"),
        "ssl.truststore.location": f"https://u:{planted('address')}@host/store",
    }
    with Appliance(folder / "data", settings=settings) as one:
        _change(one.bootstrap, planted)
        _write_files(folder, planted)
        words = ["debug", "bundle", "--data", str(one.data_dir), "-b", one.bootstrap]
        words += ["--log", str(folder / "some.log"), "-X", f"sasl.password={planted('client')}"]
        yield one, planted, words, folder


def _change(bootstrap, planted):
    admin = AdminClient({"bootstrap.servers": bootstrap})
    broker = ConfigResource(ConfigResource.Type.BROKER, "1")
    broker.add_incremental_config(
        ConfigEntry(
            DYNAMIC,
            planted("dynamic"),
            incremental_operation=AlterConfigOpType.SET,
        )
    )
    for future in admin.incremental_alter_configs([broker]).values():
        future.result(30)
    producer = Producer({"bootstrap.servers": bootstrap})
    header = [("h", planted("header").encode())]
    producer.produce("told", planted("value"), planted("key"), headers=header)
    assert producer.flush(30) == 0


def _write_files(folder, planted):
    data = folder / "data"
    (data / planted("name of a file")).write_text(planted("a file"))
    (data / "told-0" / f"{planted('name in a partition')}.txt").write_text("")
    with (data / "meta.properties").open("a") as file:
        file.write(f"note={planted('meta.properties')}\n")
    (data / "a-checkpoint").write_text(f"0\n1\n{planted('checkpoint')}\n")
    lines = [
        f"ssl.key.password={planted('log')}",
        f"client-secret: '{planted('quoted, in a log')}'",
        f'{{"apiKey": "{planted("JSON in a log")}"}}',
        f"Authorization: Bearer {planted('bearer')}",
        f"sasl.jaas.config={JAAS.format('u', planted('login in a log'))}",
        PEM.format(planted("first line of a key"), planted("second line of a key")),
        f"again, unnamed: {planted('command line')} and {planted('dynamic')}",
        f"and {planted('client')}",
        "nothing secret here",
    ]
    (folder / "some.log").write_text("\n".join(lines))


def _journal(folder, planted, monkeypatch):
    """A journalctl that says something."""
    tool = folder / "bin" / "journalctl"
    tool.parent.mkdir(exist_ok=True)
    tool.write_text(f"#!/bin/sh\necho told by the journal, token={planted('journal')}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", planted("environment"))


def test_nothing_secret_is_in_it(story, monkeypatch):
    one, planted, words, folder = story
    _journal(folder, planted, monkeypatch)
    file = folder / "running.tar.gz"
    typing(one.bootstrap)(*words, "-o", str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    parts = parts_of(file.read_bytes())
    assert leaked(planted, parts) == []
    manifest = json.loads(parts["manifest.json"])
    assert [p["part"] for p in manifest["parts"] if p["remark"]] == []
    assert {p["part"]: p["bytes"] for p in manifest["parts"]} == {
        name: len(data) for name, data in parts.items() if name != "manifest.json"
    }
    told = {row["key"]: row["value"] for row in json.loads(parts["settings.json"])["settings"]}
    assert told["ssl.keystore.password"] == told["log.s3.accesskey"] == HIDDEN
    assert told["ssl.truststore.location"] == f"https://{HIDDEN}@host/store"
    assert (
        b"nothing secret here" in parts["logs/0.txt"] and b"again, unnamed" in parts["logs/0.txt"]
    )
    assert parts["logs/journal.txt"].startswith(b"told by the journal")


def test_it_says_how_the_appliance_is(story):
    one, _, words, folder = story
    file = folder / "facts.tar.gz"
    typing(one.bootstrap)(*words, "-o", str(file))
    parts = parts_of(file.read_bytes())
    rows = [json.loads(line) for line in parts["partitions.jsonl"].splitlines()]
    (told,) = [row for row in rows if row["topic"] == "told"]
    assert (told["status"], told["log_end"], told["isr"]) == ("online", 1, [1])
    processes = json.loads(parts["processes.json"])
    assert processes["supervisor"] == one.pid
    assert all(p["state"] == "ready" and p["restarts"] == 0 for p in processes["processes"])
    assert b"\npenstock_process_up{" in parts["metrics.prom"]
    dynamic = [json.loads(line) for line in parts["dynamic-settings.jsonl"].splitlines()]
    assert {
        "of": "broker",
        "name": "1",
        "key": DYNAMIC,
        "value": HIDDEN,
    } in dynamic
    assert json.loads(parts["quorum.json"])["node_id"] == 1
    assert json.loads(parts["cluster.json"])["quorum"]["leader"] == 1
    files = [json.loads(line) for line in parts["files.jsonl"].splitlines()]
    assert any(f.get("file") == f"told-0/{0:020d}.log" and f["bytes"] for f in files)
    assert [f["other_files"] for f in files if "other_files" in f] == [2]
    assert json.loads(parts["host.json"])["limits_of"] == "the appliance"
    assert all(json.loads(line)["remedy"] for line in parts["doctor.jsonl"].splitlines())
    assert b"event" in parts["events.jsonl"]


def test_without_an_appliance_it_has_what_the_folder_says(story):
    one, planted, words, folder = story
    still = folder / "still"
    shutil.copytree(one.data_dir, still)
    (still / "__cluster_metadata-0" / "quorum-state").write_text("{")
    file = folder / "stopped.tar.gz"
    words = ["debug", "bundle", "--data", str(still), "-b", "127.0.0.1:1", "-o", str(file)]
    words += ["--log", str(folder / "no such file")]
    typing("")(*words)
    parts = parts_of(file.read_bytes())
    assert leaked(planted, parts) == []
    remarks = {p["part"]: p["remark"] for p in json.loads(parts["manifest.json"])["parts"]}
    for name in ("processes.json", "partitions.jsonl", "metrics.prom", "events.jsonl"):
        assert "no appliance is running" in remarks[name]
    assert "127.0.0.1:1" in remarks["cluster.json"]
    assert "No such file" in remarks["logs/0.txt"]
    assert "quorum-state" in json.loads(parts["quorum.json"])["problem"]
    assert json.loads(parts["quorum.json"])["topics"] >= 1
    assert DYNAMIC.encode() in parts["dynamic-settings.jsonl"]
    assert b"told-0/" in parts["files.jsonl"]
    again = typing("")(*words, code=1)
    assert "is there already" in again.stderr


def test_a_part_that_fails_hangs_or_is_too_long_is_told():
    secrets, never = Secrets(), threading.Event()
    made = Bundle(secrets, patience_s=0.2, most_bytes=1000)
    made.add("a.json", "fails", lambda: 1 // 0)
    made.add("b.json", "hangs", never.wait)
    made.add("logs/c.txt", "long", lambda: "".join(f"{n:09}\n" for n in range(200)))
    made.add("d.jsonl", "long", lambda: [{"n": n} for n in range(200)])
    secrets.learn("found later")
    made.add("e.json", "sound", lambda: {"said": "was found later"})
    parts = parts_of(made.written({}, 0))
    never.set()
    told = {p["part"]: p["remark"] for p in json.loads(parts["manifest.json"])["parts"]}
    assert "ZeroDivisionError" in told["a.json"] and "took longer" in told["b.json"]
    assert told["logs/c.txt"].startswith("only the last") and "first" in told["d.jsonl"]
    assert len(parts["logs/c.txt"]) == 1000 and parts["logs/c.txt"].endswith(b"199\n")
    assert json.loads(parts["e.json"]) == {"said": f"was {HIDDEN}"} and told["e.json"] == ""


@pytest.mark.parametrize(
    "secret", ['with "quotes" in it', "back\\slash", "ümläut", "a b&c/d?=", "l1xx\nl2xx"]
)
def test_a_secret_is_found_however_it_is_written(secret):
    secrets = Secrets()
    assert secrets.setting("ssl.key.password", secret) == HIDDEN
    for text in (secret, json.dumps(secret), json.dumps(secret, ensure_ascii=False), repr(secret)):
        assert HIDDEN in secrets.known(text) and secret not in secrets.known(text)
    assert secret not in json.dumps(secrets.blanked({"k": [{"x": f"a {secret} b"}]}))


@pytest.mark.parametrize(
    "name",
    [
        "a.password",
        "clientSecret",
        "api_key",
        "ssl.key",
        "auth.token",
        "s3.access.key.id",
        "my.pwd",
    ],
)
def test_names_that_tell(name):
    assert is_telling(name)
    assert Secrets().setting(name, "value-x") == HIDDEN


@pytest.mark.parametrize("name", ["log.retention.hours", "delegation.token.max.lifetime.ms"])
def test_what_is_declared_and_no_secret_is_shown(name):
    assert Secrets().setting(name, "604800") == "604800"


@pytest.mark.parametrize(
    "piece", ["password", "jaas", "a", "://", "-----BEGIN A-----", 'token="', "\\"]
)
def test_no_text_takes_long(piece):
    Secrets().text(piece * (200_000 // len(piece)))


def test_half_a_private_key_is_hidden():
    whole = PEM.format("one", "two")
    for text in (whole[whole.index("two") :] + "\nrest", "rest\n" + whole[:40]):
        shown = Secrets().text(text)
        assert "two" not in shown and "on" not in shown and "rest" in shown
