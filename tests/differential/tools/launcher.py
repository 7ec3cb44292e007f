"""Apache Kafka's command line tools in one JVM that stays: `Tools.run` tells what one printed."""

import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from struct import pack, unpack
from tempfile import TemporaryDirectory

from benchmarks import kafka

SOURCE = Path(__file__).with_name("Launcher.java")
LIMIT_S = 90
"""A tool that takes longer hangs; its JVM is killed, and whoever waits for it fails."""


@dataclass(frozen=True)
class Printed:
    """What a tool left: its exit code, and its output and errors as text."""

    code: int
    out: str
    err: str


class Tools:
    """The JVM. Use it as a context manager; `kafka.unavailable()` must have said None."""

    def __enter__(self) -> "Tools":
        # Libraries that Java puts there stay when it is killed.
        self._temporary = TemporaryDirectory(prefix="penstock-tools-")
        command = kafka.java(str(SOURCE), heap="256m")
        command[1:1] = ["-Dlog4j2.level=OFF", f"-Djava.io.tmpdir={self._temporary.name}"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._temporary.cleanup()

    def run(self, name: str, *arguments: str, stdin: str = "") -> Printed:
        """Call the main method of class `name` with `arguments`."""
        words = [text.encode() for text in (stdin, name, *arguments)]
        frame = pack(">i", len(words)) + b"".join(pack(">i", len(w)) + w for w in words)
        to_it = self._process.stdin
        assert to_it is not None
        watch = threading.Timer(LIMIT_S, self._process.kill)
        watch.start()
        try:
            to_it.write(frame)
            to_it.flush()
            (code,) = unpack(">i", self._read(4))
            return Printed(code, self._text(), self._text())
        except EOFError as error:
            raise RuntimeError(f"{name} {arguments} hung, or the JVM ended: {error}") from None
        finally:
            watch.cancel()

    def _text(self) -> str:
        (length,) = unpack(">i", self._read(4))
        return self._read(length).decode()

    def _read(self, count: int) -> bytes:
        from_it, errors = self._process.stdout, self._process.stderr
        assert from_it is not None and errors is not None
        data = from_it.read(count)
        if len(data) < count:
            raise EOFError(errors.read().decode()[-3000:])
        return data
