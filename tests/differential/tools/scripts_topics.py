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


SCRIPTS = (topics,)
