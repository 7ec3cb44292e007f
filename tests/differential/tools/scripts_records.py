"""kafka-get-offsets, kafka-delete-records and the console's clients."""

from tests.differential.tools.session import Session


def offsets(on: Session) -> None:
    """kafka-get-offsets by every kind of time, kafka-delete-records."""
    on.run("kafka-topics --create --topic counted --partitions 2")
    on.run("kafka-topics --create --topic empty")
    on.run("kafka-topics --create --topic lonely")
    lines = "".join(f"k{number}\tvalue {number}\n" for number in range(20))
    on.run("kafka-console-producer --topic counted --reader-property parse.key=true", stdin=lines)
    on.run("kafka-console-producer --topic lonely", stdin="a value\n")
    for time in ("latest", "earliest", "max-timestamp", "earliest-local", "latest-tiered",
                 "earliest-pending-upload", "-1", "-2", "-3", "-4", "-5", "-6", "0", "-9",
                 "9999999999999", "now"):  # fmt: skip
        for topic in ("counted", "lonely") if time not in ("max-timestamp", "-3") else ("lonely",):
            on.run(f"kafka-get-offsets --topic {topic} --time {time}")
    on.run("kafka-get-offsets")
    on.run("kafka-get-offsets --topic nothing")
    on.run("kafka-get-offsets --topic counted --partitions 1")
    on.run("kafka-get-offsets --topic counted --partitions 5")
    on.run("kafka-get-offsets --topic-partitions counted:0-1,empty")
    on.run("kafka-get-offsets --topic-partitions counted:0,empty:0 --time earliest")
    on.run("kafka-get-offsets --topic-partitions counted:x")
    on.run("kafka-get-offsets --exclude-internal-topics")
    delete = f"kafka-delete-records {on.hurried()}"
    for offset, partition, topic in (
        (3, 0, "counted"), (-1, 1, "counted"), (99, 0, "counted"), (-5, 0, "counted"),
        (0, 7, "counted"), (0, 0, "nothing"),
    ):  # fmt: skip
        row = {"topic": topic, "partition": partition, "offset": offset}
        plan = {"version": 1, "partitions": [row]}
        on.run(f"{delete} --offset-json-file", on.file("delete.json", plan))
        on.run("kafka-get-offsets --topic counted --time earliest")
    twice = {"topic": "counted", "partition": 0, "offset": 1}
    for plan in ({"version": 1, "partitions": [twice, twice]}, {"version": 9, "partitions": []},
                 {"version": 1}):  # fmt: skip
        on.run(f"{delete} --offset-json-file", on.file("delete.json", plan))
    for name in ("counted", "empty", "lonely"):
        on.run(f"kafka-topics --delete --topic {name}")


def console(on: Session) -> None:
    """The console's producer and consumer, with all that a record can hold."""
    on.run("kafka-topics --create --topic spoken")
    reader = ("parse.headers=true", "parse.key=true", "null.marker=NULL")
    reads = " ".join(f"--reader-property {word}" for word in reader)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        stdin = f"a:1,b:2\t{codec}\tNULL\nc:3\tNULL\tv\n"
        on.run(f"kafka-console-producer --topic spoken {reads} --compression-codec {codec}",
               stdin=stdin)  # fmt: skip
    prints = ("headers", "offset", "key", "partition", "epoch", "delivery")
    shows = " ".join(f"--formatter-property print.{word}=true" for word in prints)
    read = "kafka-console-consumer --topic spoken --partition 0 --timeout-ms 5000"
    on.run(f"{read} --offset earliest --max-messages 10 {shows}")
    on.run(f"{read} --offset 7 --max-messages 3 {shows}")
    on.run("kafka-console-consumer --topic spoken --group read-by --from-beginning "
           f"--timeout-ms 15000 --max-messages 4 {shows}")  # fmt: skip
    on.run(f"kafka-console-consumer --topic spoken --group read-by --timeout-ms 15000 "
           f"--max-messages 6 {shows}")  # fmt: skip
    on.run("kafka-console-producer --topic spoken --command-property max.request.size=2000",
           stdin="x" * 3000 + "\n")  # fmt: skip
    on.run("kafka-topics --create --topic narrow --config max.message.bytes=200")
    on.run("kafka-console-producer --topic narrow", stdin="x" * 3000 + "\n")
    on.run("kafka-topics --create --topic keys --config cleanup.policy=compact")
    on.run("kafka-console-producer --topic keys", stdin="no key\n")
    on.run("kafka-console-producer --topic made-by-producing", stdin="a\n")
    on.run("kafka-get-offsets --topic made-by-producing")
    on.run("kafka-consumer-groups --delete --group read-by")
    for name in ("spoken", "narrow", "keys", "made-by-producing"):
        on.run(f"kafka-topics --delete --topic {name}")


SCRIPTS = (offsets, console)
