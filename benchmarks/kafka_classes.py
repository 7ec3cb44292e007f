"""An archive of Kafka's parsed classes (Java's class data sharing), so that its JVMs start sooner.

    python -m benchmarks.kafka_classes      make it, if it is not there

A JVM spends most of a short tool's processor time on parsing and verifying classes. The archive
lies in $XDG_CACHE_HOME/penstock-tests (~/.cache), named by the jars and by Java. Only small JVMs of
the tests use it (`benchmarks.kafka.java`): what is benchmarked starts as it is shipped. A JVM that
cannot use it goes on without.
"""

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

LIMIT_S = 120
KEPT = 3
"""Archives that stay, for as many checkouts; older ones are removed when another one is made."""
TOOLS = "org.apache.kafka.tools"


@cache
def archive(jars: Path) -> Path:
    """The place of the archive of these jars, whether it is there or not. jars: their folder."""
    java = os.path.realpath(shutil.which("java") or "java")
    found = hashlib.sha256(f"{java}\0{os.stat(java).st_mtime_ns}\0{jars}\0".encode())
    for jar in sorted(jars.glob("*.jar")):
        found.update(f"{jar.name}\0{jar.stat().st_size}\0{jar.stat().st_mtime_ns}\0".encode())
    named = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(named) if named else Path.home() / ".cache") / "penstock-tests"
    return folder / f"kafka-{found.hexdigest()[:16]}.jsa"


def flags(jars: Path) -> list[str]:
    """Options of a small JVM: the archive, if there is one, and few threads of its own."""
    small = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    found = archive(jars)
    return [*small, f"-XX:SharedArchiveFile={found}", "-Xlog:cds=off"] if found.exists() else small


def make(jars: Path) -> Path:
    """Start Kafka, use its tools and clients once, and archive the classes that they loaded.
    Raises TimeoutExpired or OSError. Takes half a minute, once."""
    place = archive(jars)
    if place.exists():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="kafka-classes-") as temporary:
        folder = Path(temporary)
        loaded = dict.fromkeys(_loaded_classes(jars, folder))
        listed = folder / "classes.txt"
        listed.write_text("".join(f"{line}\n" for line in loaded))
        made = folder / "made.jsa"
        dump = ["-Xshare:dump", "-XX:+UseSerialGC", f"-XX:SharedClassListFile={listed}"]
        _run(jars, folder, *dump, f"-XX:SharedArchiveFile={made}", "-Xlog:disable")
        made.rename(place)
    _remove_old(place.parent)
    return place


def _remove_old(folder: Path) -> None:
    made = sorted(folder.glob("kafka-*.jsa"), key=lambda one: one.stat().st_mtime)
    for old in made[:-KEPT]:
        old.unlink(missing_ok=True)


def _loaded_classes(jars: Path, folder: Path) -> Iterator[str]:
    """Lines of the class lists of a broker, and of tools that talk to it."""
    lists = (folder / f"{number}.list" for number in range(100))
    with contextlib.ExitStack() as ended:
        ports = [ended.enter_context(socket.socket()) for _ in range(2)]
        for port in ports:
            port.bind(("127.0.0.1", 0))
        broker, controller = (port.getsockname()[1] for port in ports)
    made = []

    def run(*words: str, stdin: str = "") -> None:
        made.append(next(lists))
        _run(jars, folder, f"-XX:DumpLoadedClassList={made[-1]}", *words, stdin=stdin)

    properties = folder / "server.properties"
    properties.write_text(
        f"process.roles=broker,controller\nnode.id=1\nlog.dirs={folder / 'logs'}\n"
        f"listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}\n"
        f"controller.listener.names=CONTROLLER\noffsets.topic.num.partitions=1\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:{controller}\n"
        f"offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n"
        f"transaction.state.log.min.isr=1\n"
    )
    cluster = ("-t", "cGVuc3RvY2stYmVuY2htYQ", "-c", str(properties), "--standalone")
    run("kafka.tools.StorageTool", "format", *cluster)
    made.append(next(lists))
    command = _command(jars, folder, f"-XX:DumpLoadedClassList={made[-1]}", "kafka.Kafka")
    with (folder / "out.txt").open("wb") as out:
        server = subprocess.Popen([*command, str(properties)], stdout=out, stderr=out)
    try:
        at = ("--bootstrap-server", f"127.0.0.1:{broker}")
        topic = ("--topic", "orders")
        run(f"{TOOLS}.TopicCommand", *at, "--create", "--if-not-exists", *topic)
        run(f"{TOOLS}.TopicCommand", *at, "--describe")
        run("kafka.admin.ConfigCommand", *at, "--describe", "--entity-type", "brokers")
        run(f"{TOOLS}.ConsoleProducer", *at, *topic, stdin="1\n2\n")
        some = ("--from-beginning", "--max-messages", "2", "--group", "readers")
        run(f"{TOOLS}.consumer.ConsoleConsumer", *at, *topic, *some)
        group = ("--describe", "--group", "readers")
        run(f"{TOOLS}.consumer.group.ConsumerGroupCommand", *at, *group)
    finally:
        server.terminate()
        try:
            server.wait(LIMIT_S)
        finally:
            server.kill()
    for one in made:
        yield from one.read_text().splitlines() if one.exists() else ()


def _command(jars: Path, folder: Path, *words: str) -> list[str]:
    options = ["-Xmx256m", "-XX:+UseSerialGC", f"-Dkafka.logs.dir={folder}", "-Dlog4j2.level=OFF"]
    return ["java", *options, "-cp", f"{jars}/*", *words]


def _run(jars: Path, folder: Path, *words: str, stdin: str = "") -> None:
    command = _command(jars, folder, *words)
    subprocess.run(
        command, input=stdin, text=True, capture_output=True, timeout=LIMIT_S, check=False
    )


def main() -> None:
    from benchmarks import kafka

    if reason := kafka.unavailable():
        raise SystemExit(reason)
    jars = kafka.libs()
    assert jars is not None
    print(make(jars.resolve()))


if __name__ == "__main__":
    main()
