"""CreateTopics."""

from tests.differential.registry import script

PLAIN = {"num_partitions": 1, "replication_factor": 1}


def ask(s, step, *topics, **values):
    """Ask for topics; one partition and one replica where they do not say."""
    return s.ask(step, topics=[PLAIN | topic for topic in topics], timeout=10_000, **values)


def configs(**values):
    """Settings, dots written as underscores."""
    return [{"name": key.replace("_", "."), "value": value} for key, value in values.items()]


def manual(*replicas):
    """An assignment by hand, one list of brokers for each partition."""
    return {
        "num_partitions": -1, "replication_factor": -1,
        "assignments": [{"partition_index": index, "broker_ids": brokers}
                        for index, brokers in enumerate(replicas)],
    }  # fmt: skip


@script("CreateTopics")
def create_topics(s):
    ask(s, "plain", {"name": s.name("plain")})
    s.served(s.name("plain"))
    ask(s, "again", {"name": s.name("plain")})
    settings = configs(cleanup_policy="compact", retention_ms="5000")
    ask(s, "with configs", {"name": s.name("configs"), "num_partitions": 3, "configs": settings})
    ask(s, "validated only", {"name": s.name("validated")}, validate_only=True)
    ask(s, "validated, there", {"name": s.name("plain")}, validate_only=True)
    ask(s, "several", {"name": s.name("one")}, {"name": s.name("plain")}, {"name": s.name("two")})
    ask(s, "twice", {"name": s.name("double")}, {"name": s.name("double")})
    ask(s, "defaults", {"name": s.name("defaults"), "num_partitions": -1, "replication_factor": -1})
    ask(s, "by hand", {"name": s.name("manual"), **manual([1], [1])})
    ask(s, "nothing")


@script("CreateTopics")
def create_topics_of_bad_shape(s):
    name = {"name": s.name("never")}
    ask(s, "no partitions", {**name, "num_partitions": 0})
    ask(s, "negative partitions", {**name, "num_partitions": -2})
    ask(s, "no replicas", {**name, "replication_factor": 0})
    ask(s, "negative replicas", {**name, "replication_factor": -2})
    ask(s, "too many replicas", {**name, "replication_factor": 3})
    ask(s, "by hand and partitions", {**name, **manual([1]), "num_partitions": 1})
    ask(s, "by hand and replicas", {**name, **manual([1]), "replication_factor": 1})
    ask(s, "by hand, unknown broker", {**name, **manual([7])})
    ask(s, "by hand, broker twice", {**name, **manual([1, 1])})
    ask(s, "by hand, no broker", {**name, **manual([])})
    ask(s, "by hand, uneven", {**name, **manual([1], [1, 7])})
    gap = manual([1], [1])
    gap["assignments"][1]["partition_index"] = 2
    ask(s, "by hand, a gap", {**name, **gap})


@script("CreateTopics")
def create_topics_with_bad_names(s):
    for step, name in (
        ("empty", ""), ("dot", "."), ("dots", ".."), ("blank", "a b"), ("slash", "a/b"),
        ("umlaut", "ä"), ("long", "x" * 250),
    ):  # fmt: skip
        ask(s, step, {"name": name})
    taken = s.topic("a.b")
    s.recognise(taken.replace(".", "_"), "a_b")
    ask(s, "collision", {"name": taken.replace(".", "_")})


@script("CreateTopics")
def create_topics_with_bad_configs(s):
    name = {"name": s.name("never")}
    for step, settings in (
        ("unknown", {"no_such_setting": "1"}),
        ("not a number", {"retention_ms": "soon"}),
        ("below its range", {"retention_ms": "-2"}),
        ("segment too small", {"segment_bytes": "10"}),
        ("not one of", {"message_timestamp_type": "Whenever"}),
        ("not one of a list", {"cleanup_policy": "compact,shred"}),
        ("not a boolean", {"preallocate": "maybe"}),
        ("ratio", {"min_cleanable_dirty_ratio": "1.5"}),
        ("null", {"retention_ms": None}),
        ("lags", {"min_compaction_lag_ms": "10", "max_compaction_lag_ms": "5"}),
        ("tiered", {"remote_storage_enable": "true"}),
        ("local retention", {"retention_ms": "10", "local_retention_ms": "20"}),
        ("throttled", {"leader_replication_throttled_replicas": "x"}),
        ("several", {"no_such_setting": "1", "retention_ms": "soon"}),
    ):
        ask(s, step, {**name, "configs": configs(**settings)})


@script("CreateTopics")
def create_topics_with_configs_of_no_effect(s):
    ask(s, "all", {"name": s.name("inert"), "configs": configs(
        preallocate="true", compression_gzip_level="3", compression_lz4_level="3",
        compression_zstd_level="5", local_retention_ms="1000", local_retention_bytes="1000",
        leader_replication_throttled_replicas="*", follower_replication_throttled_replicas="0:1",
        unclean_leader_election_enable="true",
    )})  # fmt: skip
