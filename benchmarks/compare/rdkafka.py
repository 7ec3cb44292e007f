"""librdkafka's own load generator, rdkafka_performance, built once from Debian's source package.

    python -m benchmarks.compare.rdkafka build

Debian ships the library (package librdkafka1) but not this example program. The program is built
against that very library, with all its codecs. PENSTOCK_RDKAFKA_PERFORMANCE may name one that is
built already. Rows that need it say "skipped" while it is absent.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.compare import check, tools
from benchmarks.compare.measure import Effort, size_text
from benchmarks.compare.systems import NotObtainable, System
from benchmarks.peer import WrongAnswer

TARGET = Path(__file__).parents[1] / "out" / "rdkafka"
BUILD_LIMIT_S = 900
_PRODUCED = re.compile(r"(\d+) messages produced .* (\d+) delivered .* (\d+) failed\) in (\d+)ms")
_CONSUMED = re.compile(r"(\d+) messages \((\d+) bytes\) consumed in (\d+)ms")


def program() -> Path:
    """The built program. Raises NotObtainable."""
    named = os.environ.get("PENSTOCK_RDKAFKA_PERFORMANCE")
    path = Path(named) if named else TARGET / "rdkafka_performance"
    if not path.exists():
        raise NotObtainable(
            "rdkafka_performance is not built: python -m benchmarks.compare.rdkafka build"
        )
    return path


def build() -> Path:
    """Fetch the source by apt-get with the sources this machine has, build, keep the program.

    Needs gcc, tar, zlib's headers and librdkafka1.
    """
    work = TARGET / "source"
    (work / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    sources = Path("/etc/apt/sources.list.d/debian.sources").read_text()
    (work / "all.sources").write_text(sources.replace("Types: deb\n", "Types: deb-src\n"))
    apt = ["apt-get", "-q", "-o", f"Dir::Etc::sourcelist={work}/all.sources",
           "-o", "Dir::Etc::sourceparts=-", "-o", f"Dir::State::lists={work}/lists"]  # fmt: skip
    for step in ([*apt, "update"], [*apt, "source", "--download-only", "librdkafka"]):
        subprocess.run(step, cwd=work, check=True, timeout=BUILD_LIMIT_S)
    archive = next(work.glob("librdkafka_*.orig.tar.*"))
    subprocess.run(["tar", "xf", archive.name], cwd=work, check=True)
    tree = next(path for path in work.glob("librdkafka-*") if path.is_dir())
    compile_ = ["gcc", "-O2", "-I.", "-I../src", "-I..", "rdkafka_performance.c", "-o",
                str(TARGET / "rdkafka_performance"), "-l:librdkafka.so.1",
                "-lpthread", "-lz", "-lm"]  # fmt: skip
    subprocess.run(["./configure"], cwd=tree, check=True, timeout=BUILD_LIMIT_S)
    subprocess.run(compile_, cwd=tree / "examples", check=True, timeout=BUILD_LIMIT_S)
    shutil.rmtree(work)
    return program()


def begin(system: System, *arguments: str) -> subprocess.Popen[str]:
    return tools.begin([str(program()), "-b", system.bootstrap, *arguments])


@dataclass(frozen=True)
class Performance:
    """rdkafka_performance -P: `producers` processes, then (or at once) `consumers` with -G.

    Each consumer is a group of its own and reads everything, so `consumers` is the fan-out.
    """

    size: int
    records: int
    producers: int = 1
    consumers: int = 0
    acks: int = 1
    codec: str = "none"
    partitions: int = 6
    linger_ms: int = 5

    @property
    def title(self) -> str:
        codec = "" if self.codec == "none" else f", {self.codec}"
        text = f"{size_text(self.size)}{codec}, acks={self.acks}, linger {self.linger_ms} ms"
        if self.producers > 1 or self.consumers:
            text += f", {self.producers} producers, {self.consumers} groups"
        return f"rdkafka_performance {text}"

    def prepare(self, system: System, effort: Effort) -> None:
        program()

    def run(self, system: System, effort: Effort) -> dict[str, float]:
        each = max(1, effort.count(self.records) // self.producers)
        records, topic = each * self.producers, system.peer.create(self.partitions)
        try:
            begun = time.monotonic()
            readers = [self._reader(system, topic, records, i) for i in range(self.consumers)]
            writers = [self._writer(system, topic, each) for _ in range(self.producers)]
            wrote = [_wrote(tools.finish(writer), each) for writer in writers]
            read = [_read(tools.finish(reader), records) for reader in readers]
            passed = time.monotonic() - begun
            if self.acks:
                check.whole(system.peer, topic, self.partitions, records)
        finally:
            system.peer.delete(topic)
        rates = wrote + read
        single = self.producers == 1 and not self.consumers
        rate = wrote[0] if single else records / passed
        return {
            "records_s": rate,
            "mb_s": rate * self.size * max(1, self.consumers) / 1e6,
            "fairness": min(rates) / max(rates),
            "bytes": float(records * self.size * (1 + self.consumers)),
        }

    def _writer(self, system: System, topic: str, count: int) -> subprocess.Popen[str]:
        codec = [] if self.codec == "none" else ["-z", self.codec]
        return begin(
            system, "-P", "-t", topic, "-s", str(self.size), "-c", str(count), "-a",
            str(self.acks), "-X", f"linger.ms={self.linger_ms}",
            "-X", "queue.buffering.max.kbytes=65536", "-X", "message.max.bytes=2097152",
            *codec,
        )  # fmt: skip

    def _reader(self, system: System, topic: str, count: int, number: int) -> subprocess.Popen[str]:
        return begin(
            system, "-G", f"{topic}-{number}", "-t", topic, "-c", str(count), "-o", "beginning",
            "-X", "auto.offset.reset=earliest",
        )  # fmt: skip


def _wrote(said: str, count: int) -> float:
    """Records per second of one producer. Raises WrongAnswer unless all were delivered."""
    found = _PRODUCED.findall(said)
    if not found or int(found[-1][2]) or int(found[-1][0]) != count:
        raise WrongAnswer(f"not all delivered: {said[-300:]}")
    return count / max(1, int(found[-1][3])) * 1e3


def _read(said: str, count: int) -> float:
    found = _CONSUMED.findall(said)
    if not found or int(found[-1][0]) < count:
        raise WrongAnswer(f"not all consumed: {said[-300:]}")
    return count / max(1, int(found[-1][2])) * 1e3


if __name__ == "__main__":
    if sys.argv[1:] != ["build"]:
        raise SystemExit(__doc__)
    print(build())
