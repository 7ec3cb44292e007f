"""kafka-consumer-groups and kafka-groups, with members of both protocols."""

import contextlib
from collections.abc import Iterator

import confluent_kafka as ck

from tests.differential.tools.session import Session


@contextlib.contextmanager
def _member(
    on: Session, group: str, topics: list[str], **settings: object
) -> Iterator[ck.Consumer]:
    """A consumer that owns every partition of its topics by the time it is given."""
    client = ck.Consumer({
        "bootstrap.servers": on.bootstrap, "group.id": group, "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "client.id": "somebody", "log_level": 0,
        **{name.replace("_", "."): value for name, value in settings.items()},
    })  # fmt: skip
    client.subscribe(topics)
    while not client.assignment():
        client.poll(0.05)
    try:
        yield client
    finally:
        client.close()


def _fill(on: Session, topic: str, partitions: int) -> None:
    keep = "--config retention.ms=-1"  # its records are years old
    on.run(f"kafka-topics --create --topic {topic} --partitions {partitions} {keep}")
    producer = ck.Producer({"bootstrap.servers": on.bootstrap})
    for number in range(20):
        for partition in range(partitions):
            producer.produce(
                topic, b"%d" % number, partition=partition, timestamp=1_700_000_000_000 + number
            )
    producer.flush(30)


def _look(on: Session, group: str) -> None:
    """Everything that can be asked about a group."""
    on.run(f"kafka-consumer-groups --describe --group {group}")
    for what in ("--offsets", "--members", "--state"):
        on.run(f"kafka-consumer-groups --describe --group {group} {what}")
        on.run(f"kafka-consumer-groups --describe --group {group} {what} --verbose")
    on.run("kafka-consumer-groups --list --state --type")
    on.run("kafka-groups --list")


def gone(on: Session) -> None:
    """A group that is not there, by every verb."""
    _fill(on, "work", 2)
    _look(on, "gone")
    for all_of in ("--offsets", "--members", "--state"):
        on.run(f"kafka-consumer-groups --describe --all-groups {all_of}")
    on.run("kafka-consumer-groups --delete --group gone")
    on.run("kafka-consumer-groups --delete --all-groups")
    on.run("kafka-consumer-groups --delete-offsets --group gone --topic work")
    on.run("kafka-consumer-groups --delete-offsets --group gone --topic nothing")
    on.run("kafka-consumer-groups --reset-offsets --group gone --topic work --to-latest --dry-run")
    on.run("kafka-consumer-groups --reset-offsets --group gone --all-topics --to-latest --dry-run")
    on.run(
        "kafka-consumer-groups --reset-offsets --group gone --topic nothing --to-latest --execute"
    )
    on.run("kafka-consumer-groups --reset-offsets --all-groups --topic work --to-latest --execute")
    on.run("kafka-topics --delete --topic work")


def _with_member(on: Session, group: str, **settings: object) -> None:
    _fill(on, "work", 2)
    _fill(on, "other", 1)
    with _member(on, group, ["work"], **settings) as member:
        _look(on, group)
        member.commit(offsets=[ck.TopicPartition("work", 0, 5)], asynchronous=False)
        _look(on, group)
        for all_of in ("--offsets", "--members", "--state", "--members --verbose"):
            on.run(f"kafka-consumer-groups --describe --all-groups {all_of}")
        on.run(f"kafka-consumer-groups --delete --group {group}")
        on.run(f"kafka-consumer-groups --delete-offsets --group {group} --topic work")
        on.run(f"kafka-consumer-groups --delete-offsets --group {group} --topic other")
        for how in ("--dry-run", "--execute"):
            on.run(f"kafka-consumer-groups --reset-offsets --group {group} --topic work "
                   f"--to-latest {how}")  # fmt: skip
    _look(on, group)
    on.run(f"kafka-consumer-groups --delete-offsets --group {group} --topic other")
    on.run(f"kafka-consumer-groups --delete-offsets --group {group} --topic nothing")
    on.run(f"kafka-consumer-groups --delete-offsets --group {group} --topic work:0")
    on.run(f"kafka-consumer-groups --delete-offsets --group {group} --topic work")
    _look(on, group)
    on.run(f"kafka-consumer-groups --delete --group {group}")
    _look(on, group)
    on.run("kafka-topics --delete --topic work")
    on.run("kafka-topics --delete --topic other")


def classic(on: Session) -> None:
    """A group of the classic protocol: with a member, empty, deleted."""
    _with_member(on, "olds")


def static(on: Session) -> None:
    """A classic group with a static member."""
    _with_member(on, "statics", group_instance_id="the-instance")


def consumer(on: Session) -> None:
    """A group of the consumer protocol."""
    _with_member(on, "news", group_protocol="consumer")


def listed(on: Session) -> None:
    """Filters of states, types and protocols."""
    _fill(on, "work", 2)
    with (
        _member(on, "olds", ["work"]),
        _member(on, "news", ["work"], group_protocol="consumer"),
        _member(on, "named", ["work"], group_protocol="consumer", group_instance_id="i",
                group_remote_assignor="range"),
    ):  # fmt: skip
        on.run("kafka-consumer-groups --reset-offsets --group simple --topic work --to-offset 3 "
               "--execute")  # fmt: skip
        on.run("kafka-consumer-groups --list")
        for state in ("", "Stable", "stable", "Empty", "Stable,Empty", "Dead"):
            on.run(f"kafka-consumer-groups --list --state {state}")
        for kind in ("", "classic", "consumer", "Consumer", "classic,consumer", "share", "x"):
            on.run(f"kafka-consumer-groups --list --type {kind}")
        on.run("kafka-consumer-groups --list --state Stable --type consumer")
        for only in ("", "--consumer", "--share", "--streams", "--group-type classic",
                     "--group-type consumer", "--protocol consumer", "--protocol x",
                     "--group-type classic --protocol consumer"):  # fmt: skip
            on.run(f"kafka-groups --list {only}")
        for all_of in ("--offsets", "--members", "--state", "--members --verbose"):
            on.run(f"kafka-consumer-groups --describe --all-groups {all_of} --verbose")
        on.run("kafka-consumer-groups --describe --group olds --group news --group nobody")
        on.run("kafka-consumer-groups --describe --group named --members --verbose")
        _look(on, "simple")
    on.run("kafka-consumer-groups --delete --group olds --group news --group nobody")
    on.run("kafka-consumer-groups --delete --all-groups")
    on.run("kafka-consumer-groups --list")
    on.run("kafka-topics --delete --topic work")


def resets(on: Session) -> None:
    """Every way of resetting offsets."""
    _fill(on, "work", 2)
    _fill(on, "other", 1)
    base = "kafka-consumer-groups --reset-offsets --group again"
    for to in ("--to-earliest", "--to-latest", "--to-offset 7", "--to-offset 700", "--shift-by 3",
               "--shift-by -2", "--shift-by 100", "--to-current",
               "--to-datetime 2023-11-14T22:13:20.005",
               "--to-datetime 2023-11-14T22:13:20.005+00:00", "--to-datetime yesterday",
               "--by-duration P1D", "--by-duration PT0S", "--by-duration x"):  # fmt: skip
        on.run(f"{base} --topic work {to} --dry-run")
        on.run(f"{base} --topic work {to} --execute")
        on.run("kafka-consumer-groups --describe --group again")
    on.run(f"{base} --topic work:1 --to-earliest --execute")
    on.run(f"{base} --topic work:0,1 --topic other --to-offset 4 --execute --export")
    on.run(f"{base} --topic work:9 --to-earliest --execute")
    on.run(f"{base} --topic work:x --to-earliest --execute")
    on.run(f"{base} --topic nothing --to-earliest --execute")
    on.run(f"{base} --all-topics --to-offset 6 --export --dry-run")
    on.run(f"{base} --all-topics --to-offset 6")
    on.run(
        "kafka-consumer-groups --reset-offsets --all-groups --all-topics --to-offset 8 --execute"
    )
    path = on.files / "resets.csv"
    path.write_text("work,0,11\nwork,1,12\nother,0,13\n")
    on.run(f"{base} --from-file {path} --execute")
    path.write_text("again,work,0,1\nfresh,other,0,2\n")
    on.run("kafka-consumer-groups --reset-offsets --group again --group fresh "
           f"--from-file {path} --execute")  # fmt: skip
    path.write_text("nonsense\n")
    on.run(f"{base} --from-file {path} --execute")
    on.run("kafka-consumer-groups --describe --all-groups")
    on.run("kafka-consumer-groups --delete --group again --group fresh")
    on.run("kafka-topics --delete --topic work")
    on.run("kafka-topics --delete --topic other")


def wrongly(on: Session) -> None:
    """What the tool refuses, and the check of expressions."""
    on.run("kafka-consumer-groups")
    on.run("kafka-consumer-groups --describe")
    on.run("kafka-consumer-groups --describe --group a --all-groups")
    on.run("kafka-consumer-groups --delete")
    on.run("kafka-consumer-groups --reset-offsets --group a")
    for expression in ("a.*", "(", "[a-z]+", "a{2,1}", "\\p{Greek}", "(?<n>a)", "a(?=b)"):
        on.run("kafka-consumer-groups --validate-regex", expression)


SCRIPTS = (gone, classic, static, consumer, listed, resets, wrongly)
