"""Metrics in OpenTelemetry's protocol: read as its authors' own messages are; no bytes do harm."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.base.errors import MalformedRequest
from appliance.wire.otlp import COUNTER, GAUGE, MetricPoint, samples

metrics = pytest.importorskip("opentelemetry.proto.metrics.v1.metrics_pb2")
common = pytest.importorskip("opentelemetry.proto.common.v1.common_pb2")


def attribute(key, **value):
    return common.KeyValue(key=key, value=common.AnyValue(**value))


def told(*of_metrics):
    scope = metrics.ScopeMetrics(metrics=of_metrics)
    whole = metrics.MetricsData(resource_metrics=[metrics.ResourceMetrics(scope_metrics=[scope])])
    return whole.SerializeToString()


def total(name, value, temporality=2, monotonic=True, **point):
    return metrics.Metric(
        name=name,
        sum=metrics.Sum(
            aggregation_temporality=temporality,
            is_monotonic=monotonic,
            data_points=[metrics.NumberDataPoint(as_int=value, time_unix_nano=5, **point)],
        ),
    )


def test_numbers_are_read_with_their_names_kinds_and_attributes():
    labels = [
        attribute("topic", string_value="flüge"), attribute("n", int_value=-3),
        attribute("on", bool_value=True), attribute("x", double_value=0.5),
    ]  # fmt: skip
    points = [metrics.NumberDataPoint(as_double=-1.5, attributes=labels),
              metrics.NumberDataPoint(as_int=0)]  # fmt: skip
    gauge = metrics.Metric(
        name="a.gauge", unit="ms", description="what", gauge=metrics.Gauge(data_points=points)
    )
    seen = (("topic", "flüge"), ("n", "-3"), ("on", "true"), ("x", "0.5"))
    assert samples(told(gauge, total("a.total", 7), total("a.delta", -8, temporality=1)), 9) == [
        MetricPoint("a.gauge", GAUGE, "ms", seen, -1.5),
        MetricPoint("a.gauge", GAUGE, "ms", (), 0),
        MetricPoint("a.total", COUNTER, "", (), 7),
        MetricPoint("a.delta", GAUGE, "", (), -8),
    ]


def test_what_is_no_number_is_passed_over_and_only_so_many_are_read():
    histogram = metrics.Metric(name="h", histogram=metrics.Histogram(
        data_points=[metrics.HistogramDataPoint(count=1, sum=2, bucket_counts=[1])]))  # fmt: skip
    empty = metrics.Metric(name="e", gauge=metrics.Gauge(data_points=[metrics.NumberDataPoint()]))
    data = told(histogram, empty, *(total(f"t{n}", n) for n in range(9)))
    assert [one.name for one in samples(data, 3)] == ["t0", "t1", "t2"]
    assert samples(b"", 3) == []


@given(st.floats() | st.integers(-(2**63), 2**63 - 1))
def test_every_value_comes_through(value):
    point = {"as_int" if isinstance(value, int) else "as_double": value}
    gauge = metrics.Gauge(data_points=[metrics.NumberDataPoint(**point)])
    (found,) = samples(told(metrics.Metric(name="m", gauge=gauge)), 1)
    assert found.value == value or (math.isnan(found.value) and math.isnan(value))


WHOLE = told(total("org.apache.kafka.x", 9, attributes=[attribute("node.id", int_value=1)]))


@given(st.binary(max_size=200) | st.tuples(
    st.integers(0, len(WHOLE) - 1), st.binary(max_size=12)
).map(lambda cut: WHOLE[:cut[0]] + cut[1] + WHOLE[cut[0] + len(cut[1]):]))  # fmt: skip
def test_no_bytes_do_more_than_be_refused(data):
    try:
        found = samples(data, 50)
    except MalformedRequest:
        return
    assert len(found) <= 50
