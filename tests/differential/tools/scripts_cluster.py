"""The tools for the cluster itself: its versions, features, quorum, folders and replicas."""

from tests.differential.tools.session import Session


def alike(on: Session) -> None:
    """Begin alike: for its eligible leader replicas Kafka writes min.insync.replicas into the
    cluster's defaults, where every topic's description would show it."""
    on.run("kafka-features downgrade --feature eligible.leader.replicas.version=0")
    on.run("kafka-configs --alter --entity-type brokers --entity-default "
           "--delete-config min.insync.replicas")  # fmt: skip
    on.run("kafka-configs --describe --entity-type brokers --entity-default")


def cluster(on: Session) -> None:
    on.run("kafka-broker-api-versions")
    on.run("kafka-cluster cluster-id")
    on.run("kafka-cluster list-endpoints")
    on.run("kafka-cluster list-endpoints --include-fenced-brokers")
    on.run("kafka-cluster unregister --id 7")
    on.run("kafka-metadata-quorum describe --status")
    on.run("kafka-metadata-quorum describe --replication")
    on.run("kafka-metadata-quorum describe --replication --human-readable")
    on.run("kafka-metadata-quorum describe")
    on.run("kafka-metadata-quorum remove-controller --controller-id 7 "
           "--controller-directory-id AAAAAAAAAAAAAAAAAAAAAQ")  # fmt: skip


def features(on: Session) -> None:
    on.run("kafka-features describe")
    on.run("kafka-features upgrade --release-version 4.3 --dry-run")
    on.run("kafka-features upgrade --metadata 4.3")
    on.run("kafka-features upgrade --feature group.version=1")
    on.run("kafka-features upgrade --feature group.version=9")
    on.run("kafka-features upgrade --feature nonsense=1")
    on.run("kafka-features downgrade --feature group.version=0 --dry-run")
    on.run("kafka-features downgrade --metadata 3.3 --dry-run")
    on.run("kafka-features downgrade --feature transaction.version=0")
    on.run("kafka-features upgrade --feature transaction.version=2")
    on.run("kafka-features feature-dependencies --feature transaction.version=2")
    on.run("kafka-features disable --feature nonsense")
    on.run("kafka-features version-mapping")
    on.run("kafka-features feature-dependencies --feature group.version=1")
    on.run("kafka-features describe")


def folders(on: Session) -> None:
    on.run("kafka-topics --create --topic stored --partitions 2")
    on.run("kafka-console-producer --topic stored --reader-property parse.key=true",
           stdin="k\ta\nk\tb\n")  # fmt: skip
    on.run("kafka-log-dirs --describe --topic-list stored")
    on.run("kafka-log-dirs --describe --topic-list nothing")
    on.run("kafka-log-dirs --describe --topic-list stored --broker-list 1")
    on.run("kafka-log-dirs --describe --topic-list stored --broker-list 7")
    on.run("kafka-log-dirs --describe --broker-list x")
    on.run("kafka-topics --delete --topic stored")


def elections(on: Session) -> None:
    on.run("kafka-topics --create --topic led --partitions 2")
    run = "kafka-leader-election --election-type"
    on.run(f"{run} PREFERRED --topic led --partition 0")
    on.run(f"{run} UNCLEAN --topic led --partition 0")
    on.run(f"{run} preferred --all-topic-partitions")
    on.run(f"{run} UNCLEAN --all-topic-partitions")
    on.run(f"{run} PREFERRED --topic nothing --partition 0")
    on.run(f"{run} PREFERRED --topic led --partition 9")
    on.run(f"{run} nonsense --topic led --partition 0")
    on.run(f"{run} PREFERRED")
    for rows in ([("led", 0), ("led", 1)], [("led", 0), ("nothing", 0)], [("led", 0), ("led", 0)]):
        plan = {"partitions": [{"topic": name, "partition": index} for name, index in rows]}
        on.run(f"{run} PREFERRED --path-to-json-file", on.file("elect.json", plan))
    on.run("kafka-topics --delete --topic led")


def reassignments(on: Session) -> None:
    on.run("kafka-topics --create --topic moved --partitions 2")
    run = "kafka-reassign-partitions"
    on.run(f"{run} --list")
    topics = on.file("topics.json", {"version": 1, "topics": [{"topic": "moved"}]})
    on.run(f"{run} --generate --topics-to-move-json-file {topics} --broker-list 1")
    on.run(f"{run} --generate --topics-to-move-json-file {topics} --broker-list 7")
    on.run(f"{run} --generate --topics-to-move-json-file {topics} --broker-list 1,1")
    there = ("moved", 0, [1])
    for topic, partition, replicas in (
        there, ("moved", 0, [7]), ("moved", 0, [1, 7]), ("moved", 0, [1, 1]),
        ("moved", 9, [1]), ("nothing", 0, [1]), ("moved", 0, []),
    ):  # fmt: skip
        row = {"topic": topic, "partition": partition, "replicas": replicas}
        plan = on.file("plan.json", {"version": 1, "partitions": [row]})
        on.run(f"{run} --reassignment-json-file {plan} --execute")
        # To verify and to cancel, the tool waits long for what is not there.
        for verb in ("--verify", "--cancel") if (topic, partition, replicas) == there else ():
            on.run(f"{run} --reassignment-json-file {plan} {verb}")
    row = {"topic": "moved", "partition": 0, "replicas": [1], "log_dirs": ["/not/there"]}
    plan = on.file("plan.json", {"version": 1, "partitions": [row]})
    on.run(f"{run} --reassignment-json-file {plan} --execute")
    on.run(f"{run} --reassignment-json-file {plan} --verify")
    row = {"topic": "moved", "partition": 0, "replicas": [1], "log_dirs": ["any"]}
    plan = on.file("plan.json", {"version": 1, "partitions": [row]})
    on.run(f"{run} --reassignment-json-file {plan} --execute --throttle 100000")
    on.run("kafka-configs --describe --entity-type topics --entity-name moved")
    on.run("kafka-configs --describe --entity-type brokers --entity-name 1")
    on.run(f"{run} --reassignment-json-file {plan} --verify --preserve-throttles")
    on.run(f"{run} --reassignment-json-file {plan} --verify")
    on.run("kafka-configs --describe --entity-type topics --entity-name moved")
    on.run("kafka-configs --describe --entity-type brokers --entity-name 1")
    on.run("kafka-topics --describe --topic moved")
    on.run("kafka-topics --delete --topic moved")


SCRIPTS = (cluster, features, folders, elections, reassignments)
