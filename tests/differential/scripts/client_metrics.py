"""GetTelemetrySubscriptions and PushTelemetry. Kafka offers them only with a plugin that receives
what is pushed, and answers them without one, too."""

import time

from tests.differential.registry import script
from tests.differential.scene import LIMIT_S

GET, PUSH = 71, 72
METRICS = 16
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)


def subscribe(s, name, **settings):
    """Set these of a subscription; None takes one away."""
    rows = [{"name": key.replace("_", "."), "config_operation": int(value is None), "value": value}
            for key, value in settings.items()]  # fmt: skip
    answer = s.call("IncrementalAlterConfigs", validate_only=False, resources=[
        {"resource_type": METRICS, "resource_name": name, "configs": rows}])  # fmt: skip
    assert answer["responses"][0]["error_code"] == "NONE", answer


def asked(s, instance=None, link=None):
    return (link or s.main).ask(GET, 0, {"client_instance_id": instance})


def settled(s, wanted, link=None):
    """Ask as new clients until the broker knows what was set."""
    end = time.monotonic() + LIMIT_S
    while not wanted(answer := asked(s, link=link)):
        assert time.monotonic() < end, f"{s.target.name}: it stays {answer}"
        time.sleep(0.005)


def get(s, step, instance, link=None):
    answer = asked(s, instance, link)
    if answer["subscription_id"]:
        s.recognise(answer["subscription_id"], "subscription")
    told = {**answer, "requested_metrics": sorted(answer["requested_metrics"])}  # a set in Kafka
    s.note(step, told, "GetTelemetrySubscriptions", 0)
    return answer["subscription_id"]


def push(s, step, instance, subscription, **more):
    values = {"client_instance_id": instance, "subscription_id": subscription,
              "terminating": False, "compression_type": NONE, "metrics": b"", **more}  # fmt: skip
    s.note(step, s.main.ask(PUSH, 0, values), "PushTelemetry", 0)


@script("ListConfigResources", versions=(1, 1))
def client_metrics(s):
    one, two, three, four = (s.id(f"instance {n}") for n in range(4))
    get(s, "nothing is subscribed", one)
    get(s, "again too early", one)
    new = asked(s)
    assert new["client_instance_id"] and new["error_code"] == "NONE", new

    name = s.name("subscription")
    subscribe(s, name, metrics="org.apache.kafka.producer.,org.apache.kafka.consumer.",
              interval_ms="200000")  # fmt: skip
    settled(s, lambda answer: answer["requested_metrics"])
    number = get(s, "it was changed, and is told before its time", one)
    push(s, "wrong subscription", one, number + 1)
    get(s, "who had a wrong one asks at once", one)
    push(s, "right", one, number, metrics=b"\x0a\0")
    push(s, "too early", one, number)
    push(s, "the last one is never too early", one, number, terminating=True)
    push(s, "nothing comes after the last", one, number)
    get(s, "nor is it told", one)

    number = get(s, "the next client", two)
    push(s, "compressed in a way that nobody knows", two, number, compression_type=9)
    get(s, "who compressed wrongly asks at once", two)
    push(s, "too large", two, number, metrics=bytes((1 << 20) + 1))
    push(s, "still too early", two, number)

    push(s, "unknown client, unknown subscription", three, 7)
    push(s, "reserved", "00000000-0000-0000-0000-000000000001", 7)
    push(s, "nobody", None, 7)
    for codec in (GZIP, SNAPPY, LZ4, ZSTD):
        client = s.id(f"codec {codec}")
        push(
            s,
            f"codec {codec}",
            client,
            get(s, f"for codec {codec}", client),
            compression_type=codec,
        )

    subscribe(s, name, metrics="*", interval_ms="600000")
    settled(s, lambda answer: answer["requested_metrics"] == ["*"])
    get(s, "all metrics, an interval longer than the default", four)
    subscribe(s, name, match="client_id=loader-.*,client_software_name=un.*", metrics="a.,b.",
              interval_ms="1000")  # fmt: skip
    loader = s.connect("loader-1")
    settled(s, lambda answer: len(answer["requested_metrics"]) == 2, loader)
    get(s, "who matches", s.id("matching"), loader)
    get(s, "who does not", s.id("other"))
    other = s.name("another")
    subscribe(s, other, metrics="c.,a.", interval_ms="500")
    settled(s, lambda answer: len(answer["requested_metrics"]) == 3, loader)
    get(s, "two subscriptions", s.id("both"), loader)
    subscribe(s, name, match=None, metrics=None, interval_ms=None)
    subscribe(s, other, metrics=None, interval_ms=None)
    settled(s, lambda answer: not answer["requested_metrics"], loader)
