"""kafka-configs for every type of entity, and kafka-client-metrics."""

from tests.differential.tools.session import Session


def _around(on: Session, place: str, setting: str, other: str, *views: str) -> None:
    """Set two settings, show them, take them away again. views: more ways to show them."""
    on.run(f"kafka-configs --describe {place}")
    on.run(f"kafka-configs --alter {place} --add-config {setting},{other}")
    # A broker's own settings are told before they are in force.
    on.run(f"kafka-configs --describe {place}", until=lambda out: f"{setting} sens" in out)
    for view in views:
        on.run(f"kafka-configs --describe {view}")
    on.run(f"kafka-configs --alter {place} --delete-config {setting.partition('=')[0]}")
    on.run(f"kafka-configs --describe {place}", until=lambda out: setting not in out)
    on.run(f"kafka-configs --alter {place} --delete-config {other.partition('=')[0]}")
    on.run(f"kafka-configs --alter {place} --delete-config {other.partition('=')[0]}")
    on.run(f"kafka-configs --describe {place}")


def of_topics(on: Session) -> None:
    on.run("kafka-topics --create --topic setup")
    place = "--entity-type topics --entity-name setup"
    _around(on, place, "retention.ms=7777", "cleanup.policy=[compact,delete]", f"--all {place}")
    on.run("kafka-configs --describe --topic setup")
    on.run("kafka-configs --describe --entity-type topics --entity-name nothing")
    on.run("kafka-configs --alter --entity-type topics --entity-name nothing "
           "--add-config retention.ms=1")  # fmt: skip
    for wrong in ("nonsense=1", "retention.ms=x", "retention.ms=-7", "cleanup.policy=x",
                  "segment.bytes=1", "compression.type=brotli", "min.insync.replicas=0",
                  "message.timestamp.type=x", "preallocate=perhaps", "max.message.bytes=-1",
                  "segment.jitter.ms=-1", "retention.ms=", "=5", "retention.ms"):  # fmt: skip
        on.run(f"kafka-configs --alter {place} --add-config {wrong}")
    on.run(f"kafka-configs --alter {place} --delete-config nonsense")
    for fine in ("unclean.leader.election.enable=true", "preallocate=true",
                 "file.delete.delay.ms=1", "index.interval.bytes=8192",
                 "message.timestamp.before.max.ms=1000",
                 "local.retention.ms=-2", "min.insync.replicas=2", "flush.messages=1",
                 "leader.replication.throttled.replicas=*",
                 "follower.replication.throttled.replicas=0:1", "compression.gzip.level=3",
                 "compression.zstd.level=9", "compression.lz4.level=9", "delete.retention.ms=1",
                 "message.timestamp.type=LogAppendTime", "segment.ms=100000"):  # fmt: skip
        on.run(f"kafka-configs --alter {place} --add-config {fine}")
    on.run(f"kafka-configs --describe {place}")
    on.run(f"kafka-configs --describe --all {place}")
    on.run("kafka-topics --delete --topic setup")


def of_brokers(on: Session) -> None:
    for place in ("--entity-type brokers --entity-default",
                  "--entity-type brokers --entity-name 1"):  # fmt: skip
        _around(on, place, "log.retention.ms=8888888", "log.cleaner.threads=2")
        for wrong in ("node.id=9", "log.retention.ms=x", "num.io.threads=-1",
                      "log.segment.bytes=1", "listeners=x", "broker.rack=a",
                      "ssl.keystore.password=secret", "log.cleaner.threads=0",
                      "log.cleaner.threads=99", "num.io.threads=99"):  # fmt: skip
            on.run(f"kafka-configs --alter {place} --add-config {wrong}")
        on.run(f"kafka-configs --describe {place}")
    on.run("kafka-configs --describe --entity-type brokers")
    on.run("kafka-configs --describe --broker 1")
    on.run("kafka-configs --describe --broker-defaults")
    on.run(f"kafka-configs --describe --entity-type brokers --entity-name 7 {on.hurried()}")
    on.run("kafka-configs --describe --entity-type brokers --entity-name x")


def of_loggers(on: Session) -> None:
    place = "--entity-type broker-loggers --entity-name 1"
    on.run(f"kafka-configs --describe {place}")
    on.run(f"kafka-configs --alter {place} --add-config kafka.server=DEBUG")
    on.run(f"kafka-configs --alter {place} --add-config kafka.server=LOUD")
    on.run(f"kafka-configs --alter {place} --delete-config kafka.server")
    on.run("kafka-configs --describe --entity-type broker-loggers")
    on.run("kafka-configs --describe --entity-type broker-loggers --entity-name 7 "
           f"{on.hurried()}")  # fmt: skip
    on.run("kafka-configs --alter --entity-type broker-loggers --entity-name 1 "
           "--delete-config nonsense")  # fmt: skip


def of_clients(on: Session) -> None:
    """Quotas of client ids, users, both, the defaults, and addresses."""
    rates = "producer_byte_rate=1024,consumer_byte_rate=2048.5"
    places = ("--entity-type clients --entity-name one", "--entity-type clients --entity-default",
              "--entity-type users --entity-name anna", "--entity-type users --entity-default",
              "--entity-type users --entity-name anna --entity-type clients --entity-name one",
              "--entity-type users --entity-name anna --entity-type clients --entity-default",
              "--entity-type users --entity-default --entity-type clients --entity-default",
              "--user bert", "--client two", "--user-defaults", "--client-defaults")  # fmt: skip
    for place in places:
        on.run(f"kafka-configs --describe {place}")
        on.run(f"kafka-configs --alter {place} --add-config {rates},request_percentage=12.5")
        on.run(f"kafka-configs --describe {place}")
    on.run("kafka-configs --describe --entity-type clients")
    on.run("kafka-configs --describe --entity-type users")
    on.run("kafka-configs --describe --entity-type users --entity-type clients")
    for place in places:
        on.run(f"kafka-configs --alter {place} --delete-config producer_byte_rate")
        on.run(f"kafka-configs --describe {place}")
        on.run(f"kafka-configs --alter {place} "
               "--delete-config consumer_byte_rate,request_percentage")  # fmt: skip
    on.run(f"kafka-configs --alter {places[0]} --delete-config producer_byte_rate")
    for wrong in ("nonsense=1", "producer_byte_rate=x", "producer_byte_rate=-1",
                  "producer_byte_rate=0", "producer_byte_rate=1.5", "request_percentage=0",
                  "controller_mutation_rate=0.001", "connection_creation_rate=5"):  # fmt: skip
        on.run(f"kafka-configs --alter {places[0]} --add-config {wrong}")
    on.run("kafka-configs --alter --entity-type users --entity-name anna "
           "--add-config connection_creation_rate=5")  # fmt: skip
    on.run("kafka-configs --describe --entity-type clients")


def of_addresses(on: Session) -> None:
    for place in ("--entity-type ips --entity-name 127.0.0.9", "--entity-type ips --entity-default",
                  "--ip 127.0.0.8", "--ip-defaults"):  # fmt: skip
        on.run(f"kafka-configs --alter {place} --add-config connection_creation_rate=5000")
        on.run(f"kafka-configs --describe {place}")
        on.run("kafka-configs --describe --entity-type ips")
        on.run(f"kafka-configs --alter {place} --delete-config connection_creation_rate")
        on.run(f"kafka-configs --describe {place}")
    for wrong in ("producer_byte_rate=1", "connection_creation_rate=-1",
                  "connection_creation_rate=x", "connection_creation_rate=1.5"):  # fmt: skip
        on.run("kafka-configs --alter --entity-type ips --entity-name 127.0.0.9 "
               f"--add-config {wrong}")  # fmt: skip
    on.run("kafka-configs --alter --entity-type ips --entity-name not-an-address "
           "--add-config connection_creation_rate=5")  # fmt: skip


def of_groups(on: Session) -> None:
    place = "--entity-type groups --entity-name workers"
    _around(on, place, "consumer.session.timeout.ms=50000", "consumer.heartbeat.interval.ms=6000",
            "--entity-type groups", f"--all {place}")  # fmt: skip
    for wrong in ("nonsense=1", "consumer.session.timeout.ms=5", "consumer.session.timeout.ms=x",
                  "consumer.heartbeat.interval.ms=1", "share.auto.offset.reset=x",
                  "consumer.session.timeout.ms=99999999"):  # fmt: skip
        on.run(f"kafka-configs --alter {place} --add-config {wrong}")
    for fine in ("share.session.timeout.ms=45000", "share.heartbeat.interval.ms=5000",
                 "share.record.lock.duration.ms=15000", "share.auto.offset.reset=earliest",
                 "share.isolation.level=read_committed", "streams.session.timeout.ms=45000",
                 "streams.heartbeat.interval.ms=6000",
                 "streams.num.standby.replicas=1"):  # fmt: skip
        on.run(f"kafka-configs --alter {place} --add-config {fine}")
    on.run(f"kafka-configs --describe {place}")
    on.run("kafka-configs --describe --entity-type groups")
    on.run("kafka-configs --describe --group workers")


def of_client_metrics(on: Session) -> None:
    """Telemetry's subscriptions, by both of the tools that know them."""
    on.run("kafka-configs --describe --entity-type client-metrics")
    on.run("kafka-configs --alter --entity-type client-metrics --entity-name m "
           "--add-config interval.ms=1000")  # fmt: skip
    on.run("kafka-client-metrics --list")
    on.run("kafka-client-metrics --describe")
    on.run("kafka-client-metrics --describe --name m")
    on.run("kafka-client-metrics --alter --name m --metrics org.apache --interval 1000")
    on.run("kafka-client-metrics --delete --name m")


def wrongly(on: Session) -> None:
    """What the tool itself refuses, and what it asks the broker in vain."""
    on.run("kafka-configs")
    on.run("kafka-configs --describe")
    on.run("kafka-configs --alter --entity-type topics")
    on.run("kafka-configs --describe --entity-type nonsense")
    on.run("kafka-configs --describe --user anna --entity-type topics")
    for change in ("--add-config SCRAM-SHA-256=[password=secret]",
                   "--delete-config SCRAM-SHA-256"):  # fmt: skip
        on.run(f"kafka-configs --alter --entity-type users --entity-name anna {change}")
    on.run("kafka-configs --describe --entity-type users --entity-name anna")


def of_users(on: Session) -> None:
    """SCRAM credentials (KIP-554). One at a time: Kafka tells several in no order."""
    on.run("kafka-configs --describe --entity-type users")
    users = "--entity-type users --entity-name"
    for user, change in (
        ("anna", "SCRAM-SHA-256=[iterations=8192,password=secret]"),
        ("anna", "SCRAM-SHA-256=[iterations=4097,password=other]"),
        ("zoe", "SCRAM-SHA-256=[iterations=4095,password=secret]"),
        ("zoe", "SCRAM-SHA-256=[iterations=16385,password=secret]"),
        ("zoe", "SCRAM-SHA-1=[password=secret]"),
        ("zoe", "SCRAM-SHA-256=[iterations=4096]"),
        ("zoe", "SCRAM-SHA-256=[password=secret],producer_byte_rate=1024"),
    ):
        on.run(f"kafka-configs --alter {users} {user} --add-config {change}")
    for user in ("anna", "zoe", "nobody"):
        on.run(f"kafka-configs --describe {users} {user}")
    on.run("kafka-configs --describe --entity-type users")
    on.run("kafka-configs --describe --entity-type users --entity-default")
    on.run(f"kafka-configs --alter {users} b,er=t --add-config SCRAM-SHA-512=[password=secret]")
    on.run(f"kafka-configs --describe {users} b,er=t")
    for user in ("anna", "anna", "nobody"):
        on.run(f"kafka-configs --alter {users} {user} --delete-config SCRAM-SHA-256")
    on.run(f"kafka-configs --alter {users} b,er=t --delete-config SCRAM-SHA-256,SCRAM-SHA-512")
    on.run(f"kafka-configs --alter {users} b,er=t --delete-config SCRAM-SHA-512")
    on.run(
        "kafka-configs --alter --entity-type users --entity-default"
        " --add-config SCRAM-SHA-256=[password=secret]"
    )
    on.run("kafka-configs --describe --entity-type users")


SCRIPTS = (
    of_topics, of_brokers, of_loggers, of_clients, of_addresses, of_groups, of_client_metrics,
    of_users, wrongly,
)  # fmt: skip
