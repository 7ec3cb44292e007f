"""OpenTelemetry's protocol: the same as on the page, and whoever takes it may be away."""

import itertools

import pytest
from exporter_world import SECOND, World
from receiver import Receiver, points

from appliance.base.errors import ConfigError
from appliance.config import otlp as settings
from appliance.config.broker import BrokerConfig
from appliance.config.otlp import Target
from appliance.exporter.families import OWN
from appliance.exporter.otlp import Encoder
from appliance.exporter.pushing import MetricsPusher, deliver

START = 1_700_000_000 * SECOND
KINDS = {"counter": "sum", "gauge": "gauge", "histogram": "histogram"}


def target(environ=(), **own):
    config = BrokerConfig.of({f"penstock.otlp.{key}": value for key, value in own.items()})
    return settings.target(config, dict(environ))


# Whom to push to ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://otel", "http://otel:4318/v1/metrics"),
        ("https://otel:9/", "https://otel:9/v1/metrics"),
        ("http://[::1]:4318/own/path", "http://[::1]:4318/own/path"),
    ],
)
def test_an_endpoint_is_a_url_with_the_usual_path_unless_it_has_one(endpoint, url):
    assert target(endpoint=endpoint).url == url


@pytest.mark.parametrize(
    "endpoint", ["otel:4318", "grpc://otel", "http://", "http://u:p@otel", "http://o:x"]
)
def test_what_is_no_endpoint_is_refused_with_what_it_takes(endpoint):
    with pytest.raises(ConfigError, match=r"penstock\.otlp\.endpoint: it takes http://HOST:PORT"):
        target(endpoint=endpoint)


def test_the_environment_of_every_exporter_counts_behind_our_settings():
    base = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://env:1/base"}
    assert target() is None
    assert target(base).url == "http://env:1/base/v1/metrics"
    of_metrics = base | {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://env:2/whole"}
    assert target(of_metrics).url == "http://env:2/whole"
    assert target(of_metrics, endpoint="http://own").url == "http://own:4318/v1/metrics"
    for name, value in [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_SDK_DISABLED", "true"),
                        ("OTEL_METRICS_EXPORTER", "none")]:  # fmt: skip
        assert target(of_metrics | {name: value}) is None
        assert target(of_metrics | {name: value}, endpoint="http://own") is not None


def test_headers_are_ours_or_those_of_the_environment():
    base = {
        "OTEL_EXPORTER_OTLP_HEADERS": "x-a=b%20c,x-d=e",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://o",
    }
    assert target(base).headers == (("x-a", "b c"), ("x-d", "e"))
    assert target(base, headers="Authorization=Bearer a=b").headers == (
        ("Authorization", "Bearer a=b"),
    )
    for wrong in ("nonsense", "a b=c", "a=b\x01"):
        with pytest.raises(ConfigError, match=r"penstock\.otlp\.headers: ") as refused:
            target(endpoint="http://o", headers=wrong)
        assert wrong not in str(refused.value), "it may be a secret"


# What is pushed -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """(samples of the page, points, resource)."""
    pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    world = World(tmp_path_factory.mktemp("data"))
    world.serve()
    for handle in world.topic('or"d\\e\nrs', 2):
        world.set(handle, HIGH_WATERMARK=5, LOG_END=7)
    world.tables.counters.answers[0].answered(0, 10, 10, 5000)
    world.look()
    text = world.exporter.page(world.now_ns)
    from exporter_world import parse

    encoder = Encoder(START)
    first = encoder.encode(text, {"service.name": "penstock"}, START + 5)
    assert encoder.encode(text, {"service.name": "penstock"}, START + 5) == first
    return parse(text), *points(first)


def test_every_sample_of_ours_is_pushed_as_it_is_on_the_page(told):
    page, pushed, resource = told
    kinds = {family.name: KINDS[family.kind] for family in OWN}
    expected = {
        (name, kinds[name], labels): value
        for (name, labels), value in page.items()
        if kinds.get(name, "histogram") != "histogram"
    }
    numbers = {key: value for key, value in pushed.items() if key[1] != "histogram"}
    assert numbers == expected and len(numbers) > 100
    assert resource == {"service.name": "penstock"}


def test_a_histogram_has_its_buckets_each_for_itself(told):
    page, pushed, _ = told
    name = "penstock_request_duration_seconds"
    seen = {key: point for key, point in pushed.items() if key[1] == "histogram"}
    (point,) = (one for key, one in seen.items() if ("api", "Produce") in key[2])
    bounds = [*(f"{bound!r}" for bound in point.explicit_bounds), "+Inf"]
    totals = [
        page[f"{name}_bucket", frozenset({("api", "Produce"), ("le", one)})] for one in bounds
    ]
    assert list(itertools.accumulate(point.bucket_counts)) == totals
    labels = frozenset({("api", "Produce")})
    assert (point.count, point.sum) == (page[f"{name}_count", labels], page[f"{name}_sum", labels])


# Whoever takes it ---------------------------------------------------------------------------------


class Log:
    def __init__(self):
        self.lines = []

    def event(self, priority, event, **fields):
        self.lines.append((event, fields))


def test_who_is_away_costs_one_line_and_is_told_of_when_it_is_back():
    log, said = Log(), iter(["refused", "refused", "refused", "", "", "refused"])
    one = MetricsPusher(Target(False, "otel", 1, "/", (), 1000), bytes, log, lambda *_: next(said))
    for n in range(6):
        one.push_due(n * SECOND)
        one._thread.join()
    assert [event for event, _ in log.lines] == [
        "otlp-not-taken",
        "otlp-taken-again",
        "otlp-not-taken",
    ]
    assert log.lines[0][1] == {"to": "http://otel:1/", "cause": "refused"}
    assert log.lines[1][1]["pushes_lost"] == 3


def test_no_push_begins_before_its_time_nor_while_one_is_under_way():
    pages = itertools.count()
    import threading

    go_on = threading.Event()
    one = MetricsPusher(
        Target(False, "otel", 1, "/", (), 1000), lambda: bytes(next(pages)), Log(),
        lambda *_: "" if go_on.wait(30) else "never",
    )  # fmt: skip
    one.push_due(0)
    one.push_due(5 * SECOND)
    go_on.set()
    one._thread.join()
    one.push_due(5 * SECOND)
    one.push_due(5 * SECOND + SECOND // 2)
    one._thread.join()
    assert next(pages) == 2


def test_it_is_delivered_with_its_headers_and_refusals_say_why():
    receiver = Receiver(200, 503)
    host, port = receiver.url.removeprefix("http://").split(":")
    where = Target(False, host, int(port), "/p", (("X-Token", "secret"),), 1000)
    try:
        assert deliver(where, b"body") == ""
        assert deliver(where, b"body").startswith("HTTP 503")
        path, headers, body = receiver.got[0]
        assert (path, headers["X-Token"], body) == ("/p", "secret", b"body")
        assert headers["Content-Type"] == "application/x-protobuf"
    finally:
        receiver.close()
    assert "ConnectionRefused" in deliver(where, b"body")
