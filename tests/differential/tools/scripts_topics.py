"""kafka-topics."""

from tests.differential.tools.session import Session


def topics(on: Session) -> None:
    """Every verb of kafka-topics."""
    on.run("kafka-topics --list")
    on.run("kafka-topics --describe")
    on.run("kafka-topics --create --topic plain")
    on.run("kafka-topics --create --topic three --partitions 3 --replication-factor 1")
    on.run("kafka-topics --create --topic two.dots --partitions 2 --config retention.ms=5555")
    on.run("kafka-topics --create --topic placed --replica-assignment 1,1")
    on.run("kafka-topics --create --topic set --config cleanup.policy=compact,delete "
           "--config segment.bytes=1048576 --config max.message.bytes=2000")  # fmt: skip
    on.run("kafka-topics --list")
    on.run("kafka-topics --list --topic three")
    on.run("kafka-topics --list --topic t.*")
    on.run("kafka-topics --list --exclude-internal")
    for topic in ("plain", "three", "two.dots", "placed", "set", "t.*", "nothing"):
        on.run(f"kafka-topics --describe --topic {topic}")
    on.run("kafka-topics --describe")
    on.run("kafka-topics --describe --topic-id AAAAAAAAAAAAAAAAAAAAAQ")
    on.run("kafka-topics --describe --topic-id nonsense")
    for only in (
        "topics-with-overrides", "under-replicated-partitions", "unavailable-partitions",
        "under-min-isr-partitions", "at-min-isr-partitions", "exclude-internal",
    ):  # fmt: skip
        on.run(f"kafka-topics --describe --{only}")
        on.run(f"kafka-topics --describe --{only} --topic set")
    on.run("kafka-topics --describe --partition-size-limit-per-response 1")


def topics_changed(on: Session) -> None:
    """Partitions added, topics deleted, and --if-exists everywhere."""
    on.run("kafka-topics --create --topic grows --partitions 2")
    on.run("kafka-topics --alter --topic grows --partitions 4")
    on.run("kafka-topics --describe --topic grows")
    on.run("kafka-topics --alter --topic grows --partitions 6 --replica-assignment 1,1,1,1,1,1")
    on.run("kafka-topics --describe --topic grows")
    on.run("kafka-topics --create --topic grows")
    on.run("kafka-topics --create --topic grows --if-not-exists")
    on.run("kafka-topics --alter --topic nothing --partitions 2 --if-exists")
    on.run("kafka-topics --delete --topic nothing --if-exists")
    on.run("kafka-topics --describe --topic nothing --if-exists")
    on.run("kafka-topics --delete --topic grows")
    on.run("kafka-topics --delete --topic grows")
    on.run("kafka-topics --list --topic grows")


def topics_refused(on: Session) -> None:
    """What kafka-topics cannot do, and how it is said."""
    on.run("kafka-topics --create --topic here --partitions 2")
    for more in ("here", "two/words", "..", ".", "x" * 250, "a b"):
        on.run("kafka-topics --create --topic", more)
    for wrong in ("--partitions 0", "--partitions -1", "--replication-factor 0",
                  "--replication-factor 2", "--replication-factor -2", "--replica-assignment 7",
                  "--replica-assignment 1:1", "--replica-assignment 1,7", "--config nonsense=1",
                  "--config retention.ms=x", "--config retention.ms=-7",
                  "--config cleanup.policy=x", "--config compression.type=brotli",
                  "--config segment.bytes=1", "--config min.insync.replicas=0",
                  "--config retention.ms", "--config message.timestamp.type=x",
                  "--config flush.ms=-1", "--config unclean.leader.election.enable=perhaps",
                  "--config remote.storage.enable=true",
                  "--config leader.replication.throttled.replicas=x",
                  "--config min.cleanable.dirty.ratio=2",
                  "--partitions 1 --replica-assignment 1"):  # fmt: skip
        on.run(f"kafka-topics --create --topic wrong {wrong}")
    on.run("kafka-topics --alter --topic here --partitions 2")
    on.run("kafka-topics --alter --topic here --partitions 1")
    on.run("kafka-topics --alter --topic here --partitions 0")
    on.run("kafka-topics --alter --topic here --partitions 3 --replica-assignment 1,1")
    on.run("kafka-topics --alter --topic here --partitions 3 --replica-assignment 1,1,7")
    on.run("kafka-topics --alter --topic here --partitions 3 --replica-assignment 1,1,1:1")
    on.run("kafka-topics --alter --topic here")
    on.run("kafka-topics --alter --topic nothing --partitions 3")
    on.run("kafka-topics --delete --topic nothing")
    on.run("kafka-topics --delete")
    on.run("kafka-topics --create")
    on.run("kafka-topics")
    on.run("kafka-topics --create --topic under_score")
    on.run("kafka-topics --create --topic under.score")


SCRIPTS = (topics, topics_changed, topics_refused)
