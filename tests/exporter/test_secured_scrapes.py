"""The listener of metrics with a password, over TLS and with certificates: who is let in, and that
Prometheus is."""

import base64
import http.client
import json
import shutil
import ssl
import subprocess
import threading
import time
import urllib.request
from contextlib import closing, suppress

import pytest
from test_serving import Place, config

from appliance.exporter.door import MetricsDoor
from appliance.ring.security_table import EXPORTER, LoginCount, SecurityTable, Unread
from appliance.shell.audit import Trail
from benchmarks.certificates import Authority, put
from benchmarks.kafka import free_port
from penstock.local import Appliance
from tests.compat.waiting import until

LOGIN = "prometheus:a secret ä"
LIMIT_S = 60


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pki")
    made, foreign = Authority("a CA"), Authority("another CA")
    put(folder / "ca.pem", made.pem)
    made.issue("CN=server").write(folder, "server")
    made.issue("CN=prometheus", hosts=()).write(folder, "client")
    foreign.issue("CN=prometheus", hosts=()).write(folder, "foreign")
    return folder, made


def tls_of(pki, **more):
    folder, _ = pki
    return {
        "penstock.metrics.security.protocol": "SSL",
        "listener.name.metrics.ssl.keystore.location": str(folder / "server.pem"),
        "listener.name.metrics.ssl.truststore.location": str(folder / "ca.pem"),
    } | more


def client_of(pki, certificate=None):
    folder, _ = pki
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.check_hostname = False
    if certificate is not None:
        context.load_cert_chain(folder / f"{certificate}.pem")
    return context


class Turning:
    """A server that turns in a thread, for clients that wait."""

    def __init__(self, settings, log=None, trail=None):
        from appliance.config.load import load

        told = {"penstock.metrics.listener": "localhost:0"} | settings
        self.place = Place(MetricsDoor(load(None, told)[0], log or _Log(), trail))
        self.port = self.place.listener.getsockname()[1]
        self.is_over = False
        self.turned = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.is_over:
            self.place.server.serve_once(0.02, lambda: self.place.now_ns)
            self.turned.set()

    def later(self):
        """Eleven seconds later, for whoever connects from now on: a turn knows one time."""
        self.place.now_ns += 11_000_000_000
        for _ in range(2):
            self.turned.clear()
            assert self.turned.wait(LIMIT_S)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join(LIMIT_S)
        self.place.close()

    def get(self, path="/metrics", context=None, login=None):
        """(status, text)."""
        if context is None:
            asking = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        else:
            asking = http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=LIMIT_S, context=context
            )
        heads = {} if login is None else {"Authorization": f"Basic {_encoded(login)}"}
        with closing(asking):
            asking.request("GET", path, headers=heads)
            answer = asking.getresponse()
            return answer.status, answer.read().decode()


def _encoded(login):
    return base64.b64encode(login.encode()).decode()


@pytest.mark.parametrize(
    "head",
    [
        "", "Authorization: Basic\r\n", "Authorization: Basic !!!\r\n", "Authorization: Basic ====",
        f"Authorization: Bearer {_encoded(LOGIN)}\r\n",
        f"Authorization: Basic {_encoded(LOGIN)[:-4]}\r\n",
        f"Authorization: Basic {_encoded('prometheus:other')}\r\n",
        f"X-Authorization: Basic {_encoded(LOGIN)}\r\n",
    ],
)  # fmt: skip
def test_without_the_password_nothing_is_told(head):
    place = Place(MetricsDoor(config(**asking(0)), None))
    try:
        for path in ("/metrics", "/livez", "/readyz?probe=1", "/"):
            told = place.ask(f"GET {path} HTTP/1.1\r\n{head}\r\n\r\n".encode())
            assert told.startswith(b"HTTP/1.1 401 ") and b"\r\nWWW-Authenticate: Basic " in told
        assert place.asked == [], "nothing is looked up for a stranger"
        right = f"GET /metrics HTTP/1.1\r\nauthorization:basic {_encoded(LOGIN)}\r\n\r\n"
        assert place.ask(right.encode()).startswith(b"HTTP/1.1 200 ")
    finally:
        place.close()


def asking(delay_ms):
    return {
        "penstock.metrics.basic.auth.user.info": LOGIN,
        "connection.failed.authentication.delay.ms": str(delay_ms),
    }


@pytest.mark.parametrize(
    ("given", "told"), [("prometheus:other", "User:prometheus"), ("a-password", None)]
)
def test_a_wrong_password_is_answered_late_counted_and_in_the_audit(given, told):
    table = SecurityTable(memoryview(bytearray(1 << 20)), ioprocs=1, netprocs=1)
    trail = Trail(table.regions[EXPORTER])
    place = Place(MetricsDoor(config(**asking(100)), None, trail))
    try:
        with closing(place.connect()) as sock:
            head = f"Authorization: Basic {_encoded(given)}\r\n"
            sock.sendall(f"GET /metrics HTTP/1.1\r\n{head}\r\n".encode())
            place.turn()
            place.now_ns += 99_999_999
            place.turn()
            sock.setblocking(False)
            with pytest.raises(BlockingIOError):
                sock.recv(1)
            right = f"GET / HTTP/1.1\r\nAuthorization: Basic {_encoded(LOGIN)}\r\n\r\n"
            assert b" 200 " in place.ask(right.encode()), "nobody else waits"
            place.now_ns += 1
            assert place.hear(sock).startswith(b"HTTP/1.1 401 ")
    finally:
        place.close()
    assert table.logins() == [LoginCount("METRICS", "BASIC", 1, 1, 0, 0)]
    (process, entry), (_, other) = Unread(table).take_all()
    assert (process, entry.event) == ("exporter", "login-failed")
    assert (other.event, dict(other.fields)["principal"]) == ("login", "User:prometheus")
    fields = dict(entry.fields)
    assert fields.pop("principal", None) == told
    assert fields == {
        "mechanism": "BASIC", "listener": "METRICS", "address": "127.0.0.1",
        "why": "Authentication failed: Invalid username or password",
    }  # fmt: skip


def test_over_tls_all_of_a_long_answer_comes(pki):
    with Turning(tls_of(pki)) as server:
        status, text = server.get("/long", client_of(pki))
        assert status == 200 and len(text) == 3_000_000
        with pytest.raises((http.client.HTTPException, OSError)):
            server.get()  # in the clear
        assert server.get("/metrics", client_of(pki))[0] == 200


def test_with_mutual_tls_only_a_certificate_of_the_authority_is_let_in(pki):
    required = tls_of(pki, **{"listener.name.metrics.ssl.client.auth": "required"})
    with Turning(required) as server:
        for certificate in (None, "foreign"):
            with pytest.raises((ssl.SSLError, OSError, http.client.HTTPException)):
                server.get("/metrics", client_of(pki, certificate))
        assert server.place.asked == []
        assert server.get("/metrics", client_of(pki, "client")) == (200, "short\n")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("certificate", "words"), [(None, "shows no certificate"), ("foreign", "is not taken")]
)
def test_a_certificate_that_is_not_let_in_is_in_the_audit(pki, certificate, words, version):
    table = SecurityTable(memoryview(bytearray(1 << 20)), ioprocs=1, netprocs=1)
    required = tls_of(pki, **{"listener.name.metrics.ssl.client.auth": "required"})
    with Turning(required, trail=Trail(table.regions[EXPORTER])) as server:
        context = client_of(pki, certificate)
        context.minimum_version = context.maximum_version = version
        with pytest.raises((ssl.SSLError, OSError, http.client.HTTPException)):
            server.get("/metrics", context)
        assert server.get("/metrics", client_of(pki, "client"))[0] == 200
    assert table.logins() == [LoginCount("METRICS", "SSL", 1, 1, 0, 0)]
    (process, entry), _ = Unread(table).take_all()
    fields = dict(entry.fields)
    assert (process, entry.event, fields["mechanism"]) == ("exporter", "login-failed", "SSL")
    assert fields["address"] == "127.0.0.1" and words in fields["why"], fields


def test_who_scrapes_is_in_the_audit_once_an_hour_and_always_counted(pki):
    table = SecurityTable(memoryview(bytearray(1 << 20)), ioprocs=1, netprocs=1)
    settings = tls_of(pki, **{"listener.name.metrics.ssl.client.auth": "required"}) | asking(0)
    with Turning(settings, trail=Trail(table.regions[EXPORTER])) as server:
        for _ in range(3):
            assert server.get("/metrics", client_of(pki, "client"), LOGIN)[0] == 200
    assert table.logins() == [
        LoginCount("METRICS", "BASIC", 3, 0, 0, 0), LoginCount("METRICS", "SSL", 3, 0, 0, 0),
    ]  # fmt: skip
    told = [(one.event, dict(one.fields)) for _, one in Unread(table).take_all()]
    at = {"listener": "METRICS", "address": "127.0.0.1"}
    assert told == [
        ("login", {"principal": "User:CN=prometheus", "mechanism": "SSL"} | at),
        ("login", {"principal": "User:prometheus", "mechanism": "BASIC"} | at),
    ]


def test_a_renewed_certificate_is_shown_within_ten_seconds(pki, tmp_path):
    folder, authority = pki
    mine = tmp_path / "mine.pem"
    shutil.copy(folder / "server.pem", mine)
    log = _Log()
    settings = tls_of(pki, **{"listener.name.metrics.ssl.keystore.location": str(mine)})
    with Turning(settings, log) as server:
        before = _shown(server)
        mine.write_text("torn")
        server.place.now_ns += 11_000_000_000
        until(lambda: _shown(server) == before and log.events == ["certificate-not-renewed"])
        authority.issue("CN=server").write(tmp_path, "mine")
        server.place.now_ns += 11_000_000_000
        until(lambda: _shown(server) not in (before, None))
    assert log.events == ["certificate-not-renewed", "certificate-renewed"]


class _Log:
    def __init__(self):
        self.events = []

    def event(self, priority, event, **fields):
        self.events.append(event)


def _shown(server):
    """The certificate; None where the clock, which leaps here, ended the connection."""
    with suppress(ssl.SSLEOFError, ConnectionResetError):
        return ssl.get_server_certificate(("127.0.0.1", server.port), timeout=LIMIT_S)
    return None


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is not installed")
@pytest.mark.timeout(240)
def test_prometheus_scrapes_one_that_asks_for_a_password_and_a_certificate(pki, tmp_path):
    folder, _ = pki
    port, own = free_port(), free_port()
    settings = tls_of(pki, **{
        "penstock.metrics.listener": f"0.0.0.0:{port}",
        "penstock.metrics.basic.auth.user.info": LOGIN,
        "listener.name.metrics.ssl.client.auth": "required",
    })  # fmt: skip
    asks = {
        "scheme": "https",
        "static_configs": [{"targets": [f"127.0.0.1:{port}"]}],
        "tls_config": {
            "ca_file": str(folder / "ca.pem"), "cert_file": str(folder / "client.pem"),
            "key_file": str(folder / "client.pem"), "server_name": "localhost",
        },
    }  # fmt: skip
    name, _, password = LOGIN.partition(":")
    jobs = [
        asks | {"job_name": "right", "basic_auth": {"username": name, "password": password}},
        asks | {"job_name": "wrong", "basic_auth": {"username": name, "password": "other"}},
    ]
    file = tmp_path / "prometheus.json"  # which YAML is, too
    every = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    file.write_text(json.dumps({"global": every, "scrape_configs": jobs}))
    with Appliance(tmp_path / "data", settings):
        prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={tmp_path / 'tsdb'}",
             f"--web.listen-address=127.0.0.1:{own}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            assert _until_scraped(own, "penstock_info") == {"right"}
            assert _targets(own)["wrong"] == ("down", "server returned HTTP status 401")
        finally:
            prometheus.terminate()
            prometheus.wait(LIMIT_S)


def _ask(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=10) as answer:
        return json.load(answer)["data"]


def _targets(port):
    found = _ask(port, "targets")["activeTargets"]
    told = {one["labels"]["job"]: (one["health"], one["lastError"]) for one in found}
    return {job: (health, error.partition(" U")[0]) for job, (health, error) in told.items()}


def _until_scraped(port, metric):
    """The jobs that have told a metric, once both have been asked."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        try:
            states = {health for health, _ in _targets(port).values()}
            if states == {"up", "down"}:
                found = _ask(port, f"query?query={metric}")["result"]
                if found:
                    return {one["metric"]["job"] for one in found}
        except OSError:
            pass
        threading.Event().wait(0.2)
    raise AssertionError(f"Prometheus has asked nobody: {_targets(port)}")
