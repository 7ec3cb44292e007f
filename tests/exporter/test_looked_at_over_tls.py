"""Listeners with TLS, asked by the exporter and by `wait --probe` as by any client without a
certificate, and what they show."""

import datetime
import json
import re
import ssl
import struct
import urllib.error
import urllib.request

import pytest
from exporter_world import SECOND, World, series

from appliance.config.broker import BrokerConfig
from appliance.exporter.certificates import EVERY_NS, ListenerCertificates
from appliance.exporter.exposition import Page
from appliance.exporter.knock import unanswered
from appliance.exporter.main import Pages
from appliance.exporter.post import Address, addresses
from appliance.exporter.probe import NotProbed, failed
from appliance.observer.shown import ShownCertificate, certificate, first_certificate
from appliance.supervisor.listeners import in_order
from benchmarks.kafka import free_port
from console.model.local.stats import Meter
from tests.compat.waiting import until
from tests.tls_front import DAY, Authority, fronted, keystore, server_context, veiled

HIGHEST = pytest.mark.parametrize("highest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
NAME = "penstock_certificate_expiry_timestamp_seconds"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def broker(authority):
    return authority.certificate("broker", "localhost", "127.0.0.1")[:2]


@pytest.fixture(scope="module")
def behind(tmp_path_factory, broker):
    with veiled(tmp_path_factory.mktemp("behind"), server_context(*broker)) as both:
        yield both


def at(front, protocol="SSL"):
    return Address(*front.address, "OUT", protocol)


@HIGHEST
def test_a_listener_with_tls_is_answered_by(behind, broker, highest):
    _, front = behind
    front.context = server_context(*broker, highest=highest)
    assert unanswered([at(front)], 30) == ""


@HIGHEST
def test_that_a_certificate_is_asked_for_is_answer_enough(behind, authority, broker, highest):
    _, front = behind
    front.context = server_context(*broker, authority.ca, highest)
    assert unanswered([at(front)], 30) == ""


def test_who_speaks_no_tls_or_breaks_off_does_not_answer(behind, broker):
    appliance, _ = behind
    plain = Address("127.0.0.1", appliance.port, "OUT", "SSL")
    assert "does not answer" in unanswered([plain], 30)
    context = server_context(*broker)
    context.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")  # of which its key can none
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with fronted(context) as front:  # it refuses who it is, not who we are
        assert "does not answer" in unanswered([at(front)], 30)


def test_a_listener_without_tls_is_asked_first(behind, broker):
    appliance, front = behind
    front.context = server_context(*broker)
    before = len(front.refused)
    plain = Address("127.0.0.1", appliance.port)
    assert unanswered([Address("127.0.0.1", front.port, "A", "SSL"), plain], 30) == ""
    nobody = Address("127.0.0.1", free_port(), "B", "SSL")
    assert unanswered([nobody, plain], 30) == "" and len(front.refused) == before


def who(appliance):
    meter = Meter(str(appliance.data_dir))
    meter.topics_by_name()
    me = meter._follower.identity
    return me.node_id, me.cluster_id, meter._observer.head.shape.ioprocs


def test_a_probe_goes_over_tls(behind, broker):
    appliance, front = behind
    front.context = server_context(*broker)
    assert failed([at(front)], *who(appliance)) == ""


@HIGHEST
def test_where_every_listener_asks_for_a_certificate_nothing_is_probed(
    behind, authority, broker, highest
):
    appliance, front = behind
    front.context = server_context(*broker, authority.ca, highest)
    with pytest.raises(NotProbed, match=r"^every listener asks for a certificate$"):
        failed([at(front)], *who(appliance))
    plain = Address("127.0.0.1", appliance.port)
    assert failed([at(front), plain], *who(appliance)) == ""


def test_readyz_says_that_nothing_was_probed(tmp_path, behind, authority, broker):
    appliance, front = behind
    front.context = server_context(*broker, authority.ca)
    world = World(tmp_path)
    world.serve()

    def probe():
        return failed([at(front)], *who(appliance))

    def knock(_):
        return unanswered([at(front)], 30)

    told = Pages(world.exporter, world.exporter._post, lambda: world.now_ns, knock, probe)
    world.look()
    world.turn()
    assert told.answer("/readyz?probe=1", 0) is None, "it is under way"
    until(lambda: not told._probing.under_way, 60)
    answer = told.answer("/readyz?probe=1", 0)
    assert answer.status == 200
    assert json.loads(answer.text) == {
        "ready": True,
        "missing": [],
        "warnings": ["not probed: every listener asks for a certificate"],
        "probed": False,
    }


def test_wait_probes_over_tls_by_the_listener_that_is_named(behind, broker, monkeypatch):
    from console.model.local.waiting import Waiting

    appliance, front = behind
    front.context = server_context(*broker)
    # Until the appliance serves TLS itself, its listener behind the front is one without.
    monkeypatch.setattr(
        "appliance.exporter.post.of_endpoint",
        lambda one: Address(one.host, one.port, one.name, {"VEILED": "SSL"}.get(one.name, "")),
    )
    waiting = Waiting(str(appliance.data_dir), f"localhost:{front.port}", probes=True)
    found = waiting.read_verdict()
    assert (found.missing, found.warnings, waiting.probed) == ((), (), True)


def asked(appliance, path):
    """(status, what was told) by its exporter."""
    url = re.findall(r"at=(http://\S+)/metrics", appliance.log_text())[-1]
    try:
        with urllib.request.urlopen(url + path, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as no:
        return no.code, json.load(no)


@pytest.mark.parametrize("auth", ["none", "required"])
def test_an_appliance_that_has_tls_alone_is_ready(fresh_appliance, authority, auth):
    one = fresh_appliance(
        listeners="SSL://127.0.0.1:0",
        penstock_metrics_listener="127.0.0.1:0",
        **keystore(authority, f"alone-{auth}", "127.0.0.1"),
        **{"ssl.client.auth": auth, "ssl.truststore.location": authority.ca},
    )

    def ready():
        status, found = asked(one, "/readyz?probe=1")
        assert (status, found["missing"]) == (200, [])
        warned = ["not probed: every listener asks for a certificate"] * (auth == "required")
        assert (found["warnings"], found["probed"]) == (warned, auth == "none")

    until(ready, 60)


# What is shown ------------------------------------------------------------------------------------


@HIGHEST
@pytest.mark.parametrize("asks", [False, True])
def test_what_clients_are_shown(authority, broker, highest, asks):
    context = server_context(*broker, authority.ca if asks else None, highest)
    with fronted(context) as front:
        found = certificate("127.0.0.1", front.port, 30)
    assert found.names == ("localhost", "127.0.0.1") and found.subject == "CN=broker"
    left_s = found.ends_s - datetime.datetime.now(datetime.UTC).timestamp()
    assert 0 < left_s <= 10 * DAY.total_seconds()
    assert found.begins_s < found.ends_s - left_s


def test_who_speaks_no_tls_shows_nothing(behind):
    with pytest.raises(OSError, match=r"it hung up|reset"):
        certificate("127.0.0.1", behind[0].port, 30)


@pytest.mark.parametrize(
    ("names", "host", "covered"),
    [
        (("broker.example",), "broker.example", True),
        (("broker.example",), "BROKER.example.", True),
        (("broker.example",), "other.example", False),
        (("*.example",), "broker.example", True),
        (("*.example",), "a.b.example", False),
        (("*.example",), "example", False),
        (("127.0.0.1",), "127.0.0.1", True),
        (("127.0.0.1",), "127.0.0.2", False),
        (("2001:db8::1",), "2001:db8:0::1", True),
        (("*",), "localhost", False),
        ((), "localhost", False),
    ],
)
def test_names_are_covered_as_tls_libraries_have_it(names, host, covered):
    assert ShownCertificate(0.0, 1.0, names, "").covers(host) is covered


def record(kind, data):
    return struct.pack(">BHH", kind, 0x0303, len(data)) + data


def test_a_certificate_is_found_however_its_records_are_cut():
    """RFC 5246: a message may go over several records, a record may hold several messages."""
    hello = b"\x02\0\0\x02hi"
    der = b"d" * 300
    chain = (len(der)).to_bytes(3, "big") + der
    message = b"\x0b" + (3 + len(chain)).to_bytes(3, "big") + len(chain).to_bytes(3, "big") + chain
    stream = (
        record(22, hello + message[:7]) + record(22, message[7:100]) + record(22, message[100:])
    )
    for size in range(len(stream)):
        assert first_certificate(stream[:size]) is None
    assert first_certificate(stream) == der
    assert first_certificate(record(21, b"\x02\x28")) is None


def shown(ends_s):
    return ShownCertificate(0.0, ends_s, (), "")


def told(certificates):
    page = Page()
    certificates.write_page(page)
    return page.text()


def looked(certificates, now_ns):
    certificates.begin_reading(now_ns)
    if certificates._running is not None:
        certificates._running.join()


def test_the_end_of_each_certificate_is_told_and_looked_at_once_a_minute():
    asked = []
    ends_s = {"SSL": 5e9, "OUT": 6e9}
    names = {1: "SSL", 2: "OUT"}

    def shows(host, port, limit_s):
        asked.append(port)
        if names[port] not in ends_s:
            raise ConnectionRefusedError("nobody")
        return shown(ends_s[names[port]])

    everyone = [Address("", 0), Address("", 1, "SSL", "SSL"), Address("h", 2, "OUT", "SSL")]
    certificates = ListenerCertificates(lambda: everyone, shows)
    looked(certificates, SECOND)
    assert f'{NAME}{{listener="SSL"}} 5000000000' in told(certificates)
    assert f'{NAME}{{listener="OUT"}} 6000000000' in told(certificates)
    ends_s["SSL"] = 7e9
    del ends_s["OUT"]
    looked(certificates, SECOND + EVERY_NS - 1)
    assert asked == [1, 2], "it is not time"
    looked(certificates, SECOND + EVERY_NS)
    assert "7000000000" in told(certificates) and "OUT" not in told(certificates)
    everyone.clear()
    looked(certificates, SECOND + 2 * EVERY_NS)
    assert NAME not in told(certificates) and asked == [1, 2, 1, 2]


def test_a_listener_that_hangs_keeps_nobody_waiting():
    import threading

    goes_on = threading.Event()
    begun = []

    def shows(host, port, limit_s):
        begun.append(port)
        assert goes_on.wait(60)
        return shown(5e9)

    certificates = ListenerCertificates(lambda: [Address("", 1, "SSL", "SSL")], shows)
    certificates.begin_reading(SECOND)
    until(lambda: begun == [1], 60)
    certificates.begin_reading(SECOND + EVERY_NS)
    assert begun == [1] and told(certificates) == ""
    goes_on.set()
    certificates._running.join()
    assert "5000000000" in told(certificates)


def test_it_is_on_the_page_of_an_appliance(tmp_path, broker):
    with fronted(server_context(*broker)) as front:
        world = World(tmp_path)
        post = world.exporter._post
        object.__setattr__(post, "addresses", (at(front),))
        world.serve()
        world.look()
        world.exporter._certificates._running.join()
        assert series(world.scrape(), NAME) == [{"listener": "OUT"}]


# Which listeners there are ------------------------------------------------------------------------

LISTENERS = {
    "listeners": "SSL://:9093,INSIDE://10.0.0.1:9094,CONTROLLER://:9095",
    "listener.security.protocol.map": "SSL:SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
}


def test_each_listener_is_known_with_its_protocol():
    bound = [("0.0.0.0", 1), ("10.0.0.1", 2), ("0.0.0.0", 3)]
    assert addresses(BrokerConfig.of(LISTENERS), bound) == (
        Address("0.0.0.0", 1, "SSL", "SSL"),
        Address("10.0.0.1", 2, "INSIDE", "PLAINTEXT"),
    )
    alone = BrokerConfig.of(LISTENERS | {"listeners": "CONTROLLER://:9095"})
    assert addresses(alone, bound) == (Address("0.0.0.0", 1, "CONTROLLER", "PLAINTEXT"),)


def test_who_is_on_this_host_is_told_a_listener_without_tls_first():
    bound = [("0.0.0.0", 1), ("::1", 2), ("0.0.0.0", 3)]
    assert in_order(BrokerConfig.of(LISTENERS), bound) == ["[::1]:2", "0.0.0.0:1", "0.0.0.0:3"]
    assert in_order(object(), bound) == ["0.0.0.0:1", "[::1]:2", "0.0.0.0:3"]
