"""The settings that a topic may override, with Kafka's names and defaults, and the broker setting behind each."""

from typing import Final

from appliance.config.setting import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    STRING,
    Setting,
    Value,
)

_REPLICAS: Final = r"\*|[0-9]+:[0-9]+"

_ROWS: Final[tuple[tuple[Setting, str], ...]] = (
    (Setting("cleanup.policy", LIST, ("delete",), "Clean-up of old segments: delete by age and size, compact by key, or both; empty keeps them forever.", choices=("compact", "delete")), "log.cleanup.policy"),
    (Setting("compression.type", STRING, "producer", "The codec of stored batches; producer keeps what the producer chose.", choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")), "compression.type"),
    (Setting("compression.gzip.level", INT, -1, "Level of gzip when the broker compresses.", low=-1, high=9, inert="stored batches keep the producer's codec"), "compression.gzip.level"),
    (Setting("compression.lz4.level", INT, 9, "Level of lz4 when the broker compresses.", low=1, high=17, inert="stored batches keep the producer's codec"), "compression.lz4.level"),
    (Setting("compression.zstd.level", INT, 3, "Level of zstd when the broker compresses.", low=-131072, high=22, inert="stored batches keep the producer's codec"), "compression.zstd.level"),
    (Setting("delete.retention.ms", LONG, 86_400_000, "Time for which a tombstone of a compacted topic is kept, in ms.", low=0), "log.cleaner.delete.retention.ms"),
    (Setting("file.delete.delay.ms", LONG, 60_000, "Time for which the file of a deleted segment stays on the disk, in ms.", low=0), "log.segment.delete.delay.ms"),
    (Setting("flush.messages", LONG, LONG_MAX, "Sync to the disk after this many records; 1 syncs each batch before its acknowledgement.", low=1), "log.flush.interval.messages"),
    (Setting("flush.ms", LONG, LONG_MAX, "Sync to the disk after this many ms.", low=0), "log.flush.interval.ms"),
    (Setting("flush.policy", STRING, "auto", "Penstock's own: when a record counts as written, for acks=all and for consumers. group: after an fdatasync, which may cover many requests; os: after the write to the page cache, as in Apache Kafka; auto: group where min.insync.replicas or the replication factor is one, else os, because other nodes have the record.", choices=("auto", "group", "os")), "log.flush.policy"),
    (Setting("follower.replication.throttled.replicas", LIST, (), "Replicas that are throttled while they catch up, as PARTITION:NODE of the follower, or * for all.", pattern=_REPLICAS), ""),
    (Setting("leader.replication.throttled.replicas", LIST, (), "Replicas that are throttled while others catch up with them, as PARTITION:NODE of the leader, or * for all.", pattern=_REPLICAS), ""),
    (Setting("index.interval.bytes", INT, 4096, "Bytes of log between two entries of the offset index.", low=0), "log.index.interval.bytes"),
    (Setting("local.retention.bytes", LONG, -2, "Size of the local log above which tiered segments are deleted locally; -2 follows retention.bytes.", low=-2), "log.local.retention.bytes"),
    (Setting("local.retention.ms", LONG, -2, "Age above which tiered segments are deleted locally; -2 follows retention.ms.", low=-2), "log.local.retention.ms"),
    (Setting("max.compaction.lag.ms", LONG, LONG_MAX, "Maximum time for which a record stays uncompacted, in ms.", low=1), "log.cleaner.max.compaction.lag.ms"),
    (Setting("min.compaction.lag.ms", LONG, 0, "Minimum time for which a record stays uncompacted, in ms.", low=0), "log.cleaner.min.compaction.lag.ms"),
    (Setting("max.message.bytes", INT, 1_048_588, "Largest batch, in bytes after compression.", low=0), "message.max.bytes"),
    (Setting("message.timestamp.type", STRING, "CreateTime", "Timestamp of a record: CreateTime, the producer's, or LogAppendTime, the broker's.", choices=("CreateTime", "LogAppendTime")), "log.message.timestamp.type"),
    (Setting("message.timestamp.after.max.ms", LONG, 3_600_000, "Maximum time by which a producer's timestamp may be ahead of the broker's clock, in ms.", low=0), "log.message.timestamp.after.max.ms"),
    (Setting("message.timestamp.before.max.ms", LONG, LONG_MAX, "Maximum time by which a producer's timestamp may be behind the broker's clock, in ms.", low=0), "log.message.timestamp.before.max.ms"),
    (Setting("min.cleanable.dirty.ratio", DOUBLE, 0.5, "Ratio of uncompacted bytes above which a log is compacted.", low=0, high=1), "log.cleaner.min.cleanable.ratio"),
    (Setting("min.insync.replicas", INT, 1, "Replicas that must be in sync for acks=all to succeed.", low=1), "min.insync.replicas"),
    (Setting("preallocate", BOOLEAN, False, "Reserve a segment's bytes on the disk when it is created.", inert="a segment gets its blocks as it is written, which costs the same on Linux"), "log.preallocate"),
    (Setting("remote.storage.enable", BOOLEAN, False, "Tier segments to remote storage."), ""),
    (Setting("remote.log.copy.disable", BOOLEAN, False, "Tier no further segments."), ""),
    (Setting("remote.log.delete.on.disable", BOOLEAN, False, "Delete tiered segments when tiering is switched off."), ""),
    (Setting("retention.bytes", LONG, -1, "Size of a partition's log above which its oldest segments are deleted, in bytes; -1: no limit.", low=-1), "log.retention.bytes"),
    (Setting("retention.ms", LONG, 604_800_000, "Age of a segment's newest record above which the segment is deleted, in ms; -1: no limit.", low=-1), "log.retention.ms"),
    (Setting("segment.bytes", INT, 1 << 30, "Size at which a segment rolls, in bytes.", low=1_048_576), "log.segment.bytes"),
    (Setting("segment.index.bytes", INT, 10_485_760, "Largest offset index, in bytes.", low=4), "log.index.size.max.bytes"),
    (Setting("segment.jitter.ms", LONG, 0, "Maximum random time by which a segment rolls earlier, in ms.", low=0), "log.roll.jitter.ms"),
    (Setting("segment.ms", LONG, 604_800_000, "Age at which a segment rolls, in ms.", low=1), "log.roll.ms"),
    (Setting("unclean.leader.election.enable", BOOLEAN, False, "Whether an out-of-sync replica may become leader, which loses records."), "unclean.leader.election.enable"),
)  # fmt: skip

TOPIC: Final[dict[str, Setting]] = {setting.name: setting for setting, _ in _ROWS}
"""By the topic's name of the setting."""

BROKER_SYNONYM: Final[dict[str, str]] = {
    setting.name: broker for setting, broker in _ROWS if broker
}
"""Topic setting → the broker setting that is its default."""

_HOURS: Final = 3_600_000
_SLOWER: Final = {
    "log.retention.ms": (("log.retention.minutes", 60_000), ("log.retention.hours", _HOURS)),
    "log.roll.ms": (("log.roll.hours", _HOURS),),
    "log.roll.jitter.ms": (("log.roll.jitter.hours", _HOURS),),
}


def _broker_settings() -> dict[str, Setting]:
    """The broker's own declaration of every topic default."""
    rows: dict[str, Setting] = {}
    for topic, name in BROKER_SYNONYM.items():
        s = TOPIC[topic]
        synonyms = _SLOWER.get(name, ())
        # A unit in the file counts only where the ms key is absent, so its default must be absent too.
        # Apache Kafka has none for this one either: it follows log.flush.scheduler.interval.ms.
        default: Value = None if synonyms or name == "log.flush.interval.ms" else s.default
        rows[name] = Setting(
            name,
            s.type,
            default,
            s.doc,
            s.low,
            s.high,
            s.choices,
            "cluster-wide",
            synonyms,
            s.inert,
        )
    return rows


BROKER_TOPIC_DEFAULTS: Final = _broker_settings()
