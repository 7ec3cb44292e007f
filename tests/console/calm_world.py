"""What a small shop's appliance says at one fixed moment: the same pictures every time."""

from dataclasses import replace

from appliance.history.samples import Whole
from appliance.quotas.limits import PRODUCE, entity_text
from appliance.wire.otlp import MetricPoint as OneSample
from console.model.asking.configs import Setting
from console.model.cluster.cluster import Cluster
from console.model.cluster.cluster_watch import Disks
from console.model.cluster.versions import Told
from console.model.decoding.choosing import Decoders
from console.model.decoding.memory import Choices
from console.model.groups.group_watch import GroupCount, GroupSeen, GroupsSeen, LagPast
from console.model.groups.groups import Group, Listed, Member
from console.model.groups.lag import Position
from console.model.jobs.job_preview import Preview
from console.model.jobs.job_watch import Jobs, JobSeen
from console.model.jobs.job_watch import Sample as JobSample
from console.model.jobs.jobs import Status
from console.model.local.client_metrics import Instance, Pushing
from console.model.local.clients import Connection
from console.model.local.events import EventsSeen, made
from console.model.local.history import Past, Series
from console.model.local.local import Facts, Sample
from console.model.local.remembered import Remembered
from console.model.local.stats import ApiRate, ProcessRate, TopicRate
from console.model.local.tail import Line
from console.model.quotas.quotas import Seen, Usage
from console.model.records.leaf import leaf
from console.model.records.one import Batch
from console.model.records.one import Whole as WholeRecord
from console.model.records.reading import Record
from console.model.storage.disk import LogFolder
from console.model.storage.forecast import Forecast
from console.model.topics.expiry import Risk
from console.model.topics.heat import HeatSeen
from console.model.topics.retention import Expiry
from console.model.topics.topics import Deleted, Partition, Topic
from console.model.transactions.open_transactions import HANGING, Held, Open
from console.screens.world import TopicSeen
from console.show.output import plain
from tests.console import calm_access, calm_cluster

NOW_S = 1_790_000_000.0
NOW_MS = int(NOW_S * 1000)
WAVE = (0.2, 0.5, 0.9, 1.4, 1.1, 0.6, 0.3, 0.8)


def series(of):
    """Ten minutes of values, one a second."""
    times = tuple(NOW_S - 599 + n for n in range(600))
    return Series(times, tuple(of * WAVE[n // 20 % 8] for n in range(600)))


def whole(scale):
    return Whole(
        bytes_in=int(2e6 * scale), bytes_out=int(6e6 * scale), records_in=int(9e3 * scale),
        batches_in=int(300 * scale), fetches=int(120 * scale), requests=int(520 * scale),
        received=int(2.1e6 * scale), sent=int(6.1e6 * scale), errors=0, connections=3,
        throttled=1, size_bytes=7_400_000_000,
    )  # fmt: skip


def past(step):
    """600 samples, one each `step` seconds."""
    times = tuple(NOW_S - (599 - n) * step for n in range(600))
    told = tuple(whole(WAVE[n // 20 % 8] * step) for n in range(600))
    return Past(times, (float(step),) * 600, told)


def topic_rate(name, partitions, rate, size_mb):
    return TopicRate(name, partitions, rate / 10, rate, rate / 5e3, rate / 50, rate / 2e3,
                     size_mb, int(size_mb * 5e3), 0)  # fmt: skip


def connection(key, client_id, software, rate, **more):
    return Connection(
        key=key, client_id=client_id, software=software, version="2.6.1", user="ANONYMOUS",
        address="127.0.0.1", listener="PLAINTEXT", connected_s=5400.0, requests=81_000,
        requests_s=rate, in_bytes=10**9, in_s=rate * 4e3, out_bytes=10**8, out_s=rate * 1e3,
        produced_s=rate * 4e3, fetched_s=0.0, last_api="Produce",
        throttled_by=more.get("by", ""), throttled_ms=more.get("ms", 0),
        pauses=more.get("ms", 0), paused_ms=more.get("ms", 0) * 10,
    )  # fmt: skip


def pushing():
    """One client with Java's names for what it says of itself, as librdkafka has them, too."""
    told = (
        ("producer.connection.creation.rate", "gauge", "1/s", (), 0.02),
        ("producer.connection.creation.total", "counter", "1", (), 3),
        ("producer.node.request.latency.avg", "gauge", "ms", (("node.id", "1"),), 1.84),
        ("producer.node.request.latency.max", "gauge", "ms", (("node.id", "1"),), 22),
        ("producer.produce.throttle.time.avg", "gauge", "ms", (("node.id", "1"),), float("nan")),
        ("producer.record.queue.time.avg", "gauge", "ms", (), 4.25),
        ("producer.record.queue.time.max", "gauge", "ms", (), 31),
        ("producer.record.bytes", "counter", "By", (("topic", "orders"),), 81_034_112),
        ("producer.record.count", "counter", "1", (("topic", "orders"),), 412_003),
    )  # fmt: skip
    shop = Instance("shop", "b0qXh2yJS7K3f8mZ1cVw4A", "librdkafka", "2.6.1", "ANONYMOUS",
                    "127.0.0.1", 4.0, 10.0, 81, len(told), "")  # fmt: skip
    named = tuple(OneSample(f"org.apache.kafka.{name}", *rest) for name, *rest in told)
    return (Pushing(shop, named),)


def facts():
    topics = [
        topic_rate("orders", 3, 6000.0, 5200.0), topic_rate("payments", 1, 2400.0, 1900.0),
        topic_rate("returns", 1, 0.0, 310.0), topic_rate("revenue-by-minute", 1, 12.0, 4.5),
    ]  # fmt: skip
    apis = [
        ApiRate("Produce", 1_240_000, 300.0, 2.0, 0.1, 0.4, 1.9, 14.0, {}),
        ApiRate("Fetch", 650_000, 120.0, 0.1, 6.0, 0.3, 1.2, 9.0, {"OFFSET_OUT_OF_RANGE": 2}),
        ApiRate("OffsetCommit", 64_000, 10.0, 0.01, 0.01, 0.5, 2.2, 8.0, {}),
    ]
    processes = [
        ProcessRate("control", 401, "ready", 11.0, 2.0, 0.2, 21.0),
        ProcessRate("ioproc-0", 402, "ready", 410.0, 3.1, 24.0, 33.0),
        ProcessRate("netproc-0", 403, "ready", 640.0, 1.7, 31.0, 29.0),
    ]
    wave = tuple((2.0 * one, 6.0 * one) for one in WAVE * 3 for _ in range(5))
    clients = (
        connection("0-1", "shop", "librdkafka", 240.0),
        connection("0-2", "loader", "apache-kafka-java", 60.0, by="produce client-id=loader", ms=9),
        connection("0-3", "reports", "aiokafka", 3.0),
    )
    return Facts(
        data_dir="/var/lib/penstock", started_ms=NOW_MS - 7_500_000, since_start=False,
        apis=apis, processes=processes, topics={one.topic: one for one in topics},
        history=tuple(Sample(2.0 * one, 6.0 * one, 520.0 * one) for one in WAVE * 8),
        of_topics={"orders": wave, "payments": wave[4:]}, replaced_s={}, clients=clients,
        clients_left_out=0, readers={"orders": (2, 1200), "payments": (1, 0)},
        held=("orders", "payments", "returns"), pushing=pushing(),
        lags={("reports", "orders"): 1200, ("audit", "payments"): 0, ("billing", "orders"): 93},
    )  # fmt: skip


def quotas():
    loader = (("client-id", "loader"),)
    usage = Usage(PRODUCE, None, "loader", None, 1e6, 1.04e6, 1.04, 40, 9, 9, 60_000,
                  entity_text(loader))  # fmt: skip
    default = (("client-id", None),)
    return Seen({loader: {PRODUCE: 1e6}, default: {PRODUCE: 5e7}}, (usage,))


def job():
    status = dict.fromkeys(Status.__dataclass_fields__)
    return Status(**{**status,
        "job": "revenue", "wanted": "running", "state": "running", "kind": "sql",
        "reads": ["orders"],
        "writes": "revenue-by-minute", "delivery": "at-least-once", "rows_in": 180_000,
        "rows_out": 1_440, "rows_per_s": 6000.0, "processed_per_s": 9000.0, "rows_out_per_s": 12.0,
        "batch": 412, "batch_ms": 640, "lag_records": 310, "lag_s": 0.4, "restarts": 0,
        "phases_ms": {"latestOffset": 20, "queryPlanning": 60, "addBatch": 500, "walCommit": 60},
        "checkpoint": "/var/lib/penstock/jobs/revenue/checkpoint", "attempt": 1
    })  # fmt: skip


def jobs():
    samples = tuple(
        JobSample(6000.0 * one, 12.0 * one, int(300 * one), int(440 + 400 * one)) for one in WAVE
    )
    return Jobs("/var/lib/penstock/jobs", 512, {"revenue": job()}, {"revenue": samples})


def group():
    member = Member("reports-1-6f", None, "reports", "/127.0.0.1", (("orders", 0), ("orders", 1)))
    positions = [
        Position("orders", 0, 90_000, 0, 90_900, 900, 1.5, "reports-1-6f", "reports", "/127.0.0.1"),
        Position("orders", 1, 88_000, 0, 88_300, 300, 0.5, "reports-1-6f", "reports", "/127.0.0.1"),
        Position("orders", 2, None, 0, 87_100, None, None, None, None, None),
    ]
    lag = tuple((NOW_S - 590 + 10 * n, 4800 - 60 * n) for n in range(60))
    seen = LagPast(NOW_S - 590, lag, {"orders": lag}, {("orders", 0): NOW_S - 4}, kept=True)
    return GroupSeen(
        Group("reports", "Stable", "consumer", "uniform", 1, (member,), None), positions, seen,
        Expiry((Risk("reports", "orders", (0, 1), 1200, 2400.0, "retention.ms", True, 1),), ()),
    )  # fmt: skip


def transactions():
    stuck = Held("payments", 0, 188_000, 188_000, 188_012, 12, 7260.0)
    moves = (
        Held("orders", 0, 90_700, 90_700, 90_900, 200, 44.0),
        Held("orders", 2, 87_000, 87_000, 87_100, 100, 41.5),
        Held("revenue-by-minute", 0, None, 4_400, 4_400, 0),
    )
    return (
        Open("", HANGING, 4711, 0, None, None, None, (stuck,)),
        Open("copier-0", "ongoing", 4000, 17, 1, 60_000, 44.5, moves),
        Open("shop", "prepare-commit", 4001, 3, 1, 60_000, 0.2,
             (Held("returns", 0, 310, 310, 311, 1, 0.2),)),
    )  # fmt: skip


def happened():
    """The last minute of an appliance."""
    told = (
        (61, "info", "supervisor", "ready", {"took_ms": "412", "listens_on": "localhost:9092"}),
        (48, "notice", "control", "metadata-changed",
         {"request": "CreateTopics", "topics": "orders", "client": "shop", "user": "ANONYMOUS"}),
        (48, "notice", "control", "topic-created", {"topic": "orders"}),
        (33, "info", "ioproc-0", "group-rebalanced",
         {"group": "reports", "generation": "4", "members": "1", "topics": "orders"}),
        (30, "warning", "netproc-0", "quota-exceeded",
         {"entity": "client-id=loader", "quota": "producer_byte_rate", "client": "loader"}),
        (12, "warning", "supervisor", "child-died",
         {"child": "ioproc-0", "cause": "killed by SIGKILL", "restart_in_ms": "100"}),
        (3, "error", "ioproc-0", "log-dir-failed",
         {"folder": "/srv/disk2", "cause": "/srv/disk2: Input/output error"}),
    )  # fmt: skip
    return tuple(
        made(str(n), NOW_MS - ago_s * 1000, *rest) for n, (ago_s, *rest) in enumerate(told)
    )


def record():
    """One of the orders, whole."""
    value = b'{"id": 9007199254740993, "total": 12.50, "items": ["tea", "cup"], "paid": true}'
    found = Record("orders", 0, 89_990, NOW_MS - 900, b"customer-7", value, [("trace", b"4f2a")])
    batch = Batch(412, 6, 89_988, "lz4", 3, 0, False)
    return leaf(WholeRecord(found, "CreateTime", 4, batch), Decoders(Choices(None, "")), plain)


def heat():
    """A topic of 200 partitions, a few of which are hot, beside small ones."""
    sizes = {("events", n): n * n % 97 * 2_000_000 for n in range(200)}
    sizes |= {("orders", n): 170_000_000 - n * 50_000_000 for n in range(3)}
    sizes |= {("payments", 0): 190_000_000, ("returns", 0): 31_000_000, ("revenue-by-minute", 0): 0}
    return HeatSeen(sizes, {place: size % 7e6 for place, size in sizes.items()})


def topic():
    partitions = [Partition(n, 1, [1], [1], 0, 90_000 - n, 90_000 - n, None) for n in range(3)]
    settings = [
        Setting("cleanup.policy", "delete", "default", "delete",
                "What happens to old segments.", "list", False, False, ()),
        Setting("retention.ms", "86400000", "topic", "604800000",
                "How long records are kept, in ms; -1 for ever.", "long", False, False, ()),
    ]  # fmt: skip
    return TopicSeen(
        Topic("orders", "kXhM5wHzR1-8T3mV0qYb2A", False, 3, 1, 269_997, partitions), settings
    )


def answers():
    """By source, as `test_screens_hostile.told` takes them."""
    minutes = past(60)
    return {
        "cluster": Cluster("u8dH3vKpQyW1nZc0sT7xBg", 1, {1: "127.0.0.1:9092"}),
        "nodes": calm_cluster.alone(),
        "disks": {1: Disks(7_400_000_000, 6 * 10**11, ())},
        "versions": Told({1: "1.4.0"}),
        "facts": facts(),
        "past": Remembered(
            NOW_S, past(1), minutes, {"Produce": series(1.9), "Fetch": series(1.2)},
            {"Produce": series(2.5)}, {0: Forecast(3.2 * 86_400, 2.0e6, 86_000.0)},
        ),
        "folders": [LogFolder("/var/lib/penstock", 10**12, 4 * 10**11, 6 * 10**11, "")],
        "groups": GroupsSeen(
            [Listed("reports", "Stable", "consumer", False), Listed("audit", "Empty", "classic",
                                                                    True)],
            {"reports": GroupCount(1, 1, 1200, 1.5, ((NOW_S - 60, 4800), (NOW_S, 1200))),
             "audit": GroupCount(0, 1, 0, 0.0, ((NOW_S, 0),))},
            {("orders", 0): 900, ("orders", 1): 300, ("events", 70): 12_000, ("events", 71): 90},
        ),
        "risks": group().expiry.risks,
        "heat": heat(),
        "quotas": quotas(),
        "transactions": transactions(),
        "jobs": jobs(),
        "job": JobSeen("Revenue of each minute.", "SELECT …", 1000, None,
                       (Line(NOW_MS - 3000, "batch 412 took 640 ms"),), (), ""),
        "trash": [Deleted("old-orders", "2026-09-21 10:00", "2026-09-22 10:00", 3, 5000, 10**6,
                          "kXhM5wHzR1-8T3mV0qYb2B")],
        "events": EventsSeen(happened()),
        "topic": topic(),
        "group": group(),
        "preview": Preview(
            [{"minute": f"14:{minute:02}", "orders": 360 - minute, "revenue": 4500.25 + minute}
             for minute in range(8, 13)],
            ["5 rows of the last 1,000 records of orders", "minute STRING, orders BIGINT"],
        ),
        "record": record(),
        "access": calm_access.access(),
        "audit": calm_access.audit(NOW_S),
        "certificates": calm_access.certificates(NOW_S),
    }  # fmt: skip


def in_a_cluster(app):
    """From now on it is one of three nodes."""
    several = calm_cluster.cluster()
    addresses = {one.id: one.address for one in several.nodes.brokers.values() if one.lives}
    partitions = [
        replace(one, leader=2, replicas=[1, 2, 3], isr=[2] if one.partition == 0 else [2, 1])
        for one in topic().topic.partitions
    ]
    placed = calm_cluster.placed()
    seen = replace(topic(), topic=replace(topic().topic, partitions=partitions), placed=placed)
    app.world.cluster.ask = lambda: replace(answers()["cluster"], controller=2, brokers=addresses)
    app.world.nodes.ask = lambda: several
    app.world.disks.ask = calm_cluster.disks
    app.world.versions.ask = calm_cluster.versions
    app.world._topic = lambda name: seen
    app.world._details.clear()  # which asked as it was before
    app.world.request_updates()
