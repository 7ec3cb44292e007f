"""Certificates are replaced while stock clients go on: no connection ends, no client hears of it,
every record comes exactly once, and who connects from then on sees the new one. One that cannot be
used leaves the old one in force and is told of."""

import json
import time
from pathlib import Path

import pytest

from benchmarks import kafka
from benchmarks.certificates import put
from tests.broker_process import KAFKA, answers
from tests.console_process import typing
from tests.faults.load import Load
from tests.tls import java
from tests.tls.secured import LIMIT_S, PASSWORD, Secured, serial_seen
from tests.tls.stock import librdkafka

pytestmark = pytest.mark.timeout(300)
NAME = "listener.name.ssl.ssl.keystore.location"


@pytest.fixture
def broker(tmp_path, fresh_pki):
    with Secured(tmp_path / "data", fresh_pki, ["SSL"]) as one:
        one.topic = one.peer.create(2, {}, "renewed")
        yield one


def of_themselves(broker, folder):
    """Files are looked at every ten seconds."""


def by_command(broker, folder):
    done = typing(broker.bootstrap)("config", "reload", "--data", str(broker.data))
    assert done.returncode == 0


def by_kafka_configs(broker, folder):
    """The same path once more: Kafka, too, looks whether the file is another one then."""
    tools = java.Tools(folder, broker.at(), java.pem(broker.pki))
    tools.alter_broker({NAME: broker.pki.path("server.pem")})


WAYS = [
    pytest.param(of_themselves, marks=pytest.mark.skipif(KAFKA, reason="Kafka does not look")),
    pytest.param(by_command, marks=pytest.mark.skipif(KAFKA, reason="a command of ours")),
    pytest.param(
        by_kafka_configs,
        marks=pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable())),
    ),
]


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def way(request, tmp_path):
    folder = tmp_path / "tools"
    folder.mkdir()
    return lambda broker: request.param(broker, folder)


class Steady(Load):
    """They do not fill the disk meanwhile."""

    pause_s = 0.01


@pytest.fixture
def load(broker):
    settings = librdkafka(broker.pki, broker.at())
    with Steady(broker.at(), broker.topic, 2, settings=settings) as running:
        yield running


def ports(broker):
    """Our ends of the connections to its TLS listener, as the kernel lists them."""
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state = line.split()[:4]
        if state == "01" and int(remote.partition(":")[2], 16) == broker.ports["SSL"]:
            found.add(int(local.partition(":")[2], 16))
    return found


def events(broker, word, at_least=1):
    """What it says of that; waits for it."""
    run, end = typing(broker.bootstrap), time.monotonic() + LIMIT_S
    while True:
        done = run("event", "list", word, "--data", str(broker.data), "-o", "json", code=None)
        found = json.loads(done.stdout) if done.returncode == 0 and done.stdout else []
        if len(found) >= at_least:
            return found
        assert time.monotonic() < end, f"no {word}: {broker.output()[-2000:]}"
        time.sleep(0.1)


def wait_for(serial, broker):
    context, end = broker.pki.context(), time.monotonic() + LIMIT_S
    while serial_seen(broker.address(), context) != serial:
        assert time.monotonic() < end, broker.output()[-2000:]
        time.sleep(0.1)


def replace(broker, name):
    """Both files, and that which has both in it; as those do who renew certificates."""
    made = broker.pki.made[name]
    made.write(broker.pki.folder, "server")
    return made.serial


def test_nobody_notices_but_who_connects_anew(broker, load, way):
    load.go_on()
    kept = ports(broker)
    assert len(kept) >= 2, "a producer's and a consumer's"
    old = serial_seen(broker.address(), broker.pki.context())
    new = replace(broker, "server-again")
    way(broker)
    wait_for(new, broker)
    load.go_on()
    assert old != new and kept <= ports(broker), "connections ended"
    back = replace(broker, "server")
    way(broker)
    wait_for(back, broker)
    load.go_on()
    assert kept <= ports(broker), "connections ended"
    load.finish()
    assert load.told == [], "clients heard of it"
    load.check_content()
    assert len(load.consumed) > 0


def broken(broker):
    """Name → what stands in the file instead."""
    made = broker.pki.made
    return {
        "no certificate": "this is no certificate\n",
        "half of one": made["server-again"].pem()[:-200],
        "another's key": made["client"].key_pem() + made["server-again"].chain,
        "another's name": broker.pki.ca.issue("CN=impostor,O=Tests").pem(),
        "fewer hosts": broker.pki.ca.issue("CN=broker,O=Tests", hosts=["127.0.0.1"]).pem(),
        "empty": "",
    }


@pytest.mark.parametrize(
    "what",
    ["no certificate", "half of one", "another's key", "another's name", "fewer hosts", "empty"],
)
@pytest.mark.skipif(KAFKA, reason="commands and events of the appliance")
def test_one_that_cannot_be_used_leaves_the_old_one_in_force(broker, what):
    old = broker.pki.made["server"].serial
    path = broker.pki.folder / "server.pem"
    put(path, broken(broker)[what])
    typing(broker.bootstrap)("config", "reload", "--data", str(broker.data), code=None)
    (said, *_) = events(broker, "certificate-not-renewed")
    assert "SSL" in json.dumps(said)
    assert serial_seen(broker.address(), broker.pki.context()) == old
    new = replace(broker, "server-again")
    typing(broker.bootstrap)("config", "reload", "--data", str(broker.data))
    wait_for(new, broker)
    assert "CN=broker" in json.dumps(events(broker, "certificate-renewed"))


@pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable()))
@pytest.mark.parametrize(
    "what", ["no certificate", "another's key", "another's name", "a file that is not there"]
)
def test_kafka_configs_is_refused_what_cannot_be_used(broker, tmp_path, what):
    if KAFKA and what == "another's key":
        pytest.skip("Kafka takes it, and nobody can connect from then on")
    folder = tmp_path / "tools"
    folder.mkdir()
    tools = java.Tools(folder, broker.at(), java.pem(broker.pki))
    path = broker.pki.folder / "wrong.pem"
    if (text := broken(broker).get(what)) is not None:
        put(path, text)
    assert "InvalidRequestException" in tools.alter_broker({NAME: str(path)}, code=1)
    old = broker.pki.made["server"].serial
    assert serial_seen(broker.address(), broker.pki.context()) == old
    other = broker.pki.ca.issue("CN=broker,O=Tests")
    put(path, other.pem())
    tools.alter_broker({NAME: str(path)})
    wait_for(other.serial, broker)


@pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable()))
def test_a_truststore_is_renewed_too(tmp_path, fresh_pki):
    """Of a listener that asks for certificates: clients of another authority are let in."""
    with Secured(tmp_path / "data", fresh_pki, ["MUTUAL"]) as broker:
        foreign = fresh_pki.context(certificate="foreign")
        assert not answers(broker.ports["MUTUAL"], context=foreign)
        both = fresh_pki.ca.pem + fresh_pki.foreign_ca.pem
        put(fresh_pki.folder / "both.pem", both)
        tools = java.Tools(tmp_path, broker.at("MUTUAL"), java.pem(fresh_pki, certificate="client"))
        name = "listener.name.mutual.ssl.truststore.location"
        tools.alter_broker({name: fresh_pki.path("both.pem")})
        end = time.monotonic() + LIMIT_S
        while not answers(broker.ports["MUTUAL"], context=foreign):
            assert time.monotonic() < end, broker.output()[-2000:]
            time.sleep(0.1)
        assert answers(broker.ports["MUTUAL"], context=fresh_pki.context(certificate="client"))


@pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable()))
def test_a_store_takes_the_place_of_pem(broker, tmp_path):
    """Type, place and password are changed together. Kafka wants as many entries as before: one."""
    pki, folder = broker.pki, tmp_path / "tools"
    folder.mkdir()
    tools = java.Tools(folder, broker.at(), java.pem(pki))
    put(pki.folder / "again.p12", pki.made["server-again"].pkcs12(PASSWORD))
    own = "listener.name.ssl.ssl.keystore."
    changed = {"type": "PKCS12", "location": pki.path("again.p12"), "password": PASSWORD}
    wrong = {own + key: value for key, value in (changed | {"password": "wrong"}).items()}
    assert "InvalidRequestException" in tools.alter_broker(wrong, code=1)
    assert serial_seen(broker.address(), pki.context()) == pki.made["server"].serial
    tools.alter_broker({own + key: value for key, value in changed.items()})
    wait_for(pki.made["server-again"].serial, broker)
    tools.forget_broker(changed_keys := [own + key for key in changed])
    wait_for(pki.made["server"].serial, broker)
    assert not [key for key in changed_keys if key in tools.broker_settings()]
