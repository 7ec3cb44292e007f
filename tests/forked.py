"""Appliances forked from a process that has imported them: most of a start is imports.

`start` takes a command as `subprocess.Popen` does. Where it is `penstock up` of this interpreter, a
stem (one process of each worker, `stem.py`) forks the appliance. The appliance is a child of the
caller as any other, with the command, environment and descriptors that were asked for. Everything
else is executed: other commands, and an appliance with variables that only an interpreter's start
reads. What tests execute (README's commands, succession, units) they start themselves.

The worker connects for each start and holds no descriptor of the stem in between, because a test
that closes a number twice would close that one. PENSTOCK_TEST_EXEC=1 executes every appliance.
"""

import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from penstock import local

ROOT = Path(local.__file__).parents[1]
COMMAND_BYTES = 4096
"""Most bytes of a command: room for it is kept where the kernel shows the stem's own."""
MOST_DESCRIPTOR = 400
"""Of those that are passed on; the stem uses higher ones for a moment."""
LIMIT_S = 60.0
_PR_SET_CHILD_SUBREAPER = 36
_READ_BY_EXEC = ("PYTHON", "LD_", "MALLOC_", "GLIBC_")
"""Variables that only a new interpreter reads begin so."""
_lock = threading.Lock()
_stem: "Stem | None" = None


class Stem:
    """The process that forks. It ends with this process, or when `end` is called."""

    def __init__(self) -> None:
        self.environment = read_by_exec(os.environ)
        self.owner = os.getpid()
        self._address = f"\0penstock-stem-{self.owner}"
        ready, theirs = os.pipe()
        with socket.socket(*_KIND) as listener:
            listener.bind(self._address)
            listener.listen(16)
            command = [
                sys.executable, "-P", str(Path(__file__).with_name("stem.py")), str(ROOT),
                str(listener.fileno()), str(theirs), "x" * COMMAND_BYTES,
            ]  # fmt: skip
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                pass_fds=(listener.fileno(), theirs),
            )  # fmt: skip
        os.close(theirs)
        os.read(ready, 1)
        os.close(ready)

    def fork(self, asked: dict[str, Any], descriptors: Sequence[int]) -> int:
        """The process id of the new child. Raises OSError when the stem does not answer."""
        with socket.socket(*_KIND) as link, _adopting():
            link.settimeout(LIMIT_S)
            link.connect(self._address)
            socket.send_fds(link, [json.dumps(asked).encode()], descriptors)
            answer = link.recv(64)
        if not answer:
            raise ConnectionError("the stem closed the connection")
        return int(answer)

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()

    def why(self) -> str:
        """How it ended; it is ended if it runs. What it said is in our own standard error."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        code = self._process.poll()
        self.end()
        return f"exit code {code}"


_KIND = (socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    """The process that forks the appliance ends at once: orphans below us become our children."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def start(
    command: Sequence[str],
    *,
    stdin: Any = None,
    stdout: Any = None,
    stderr: Any = None,
    env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    start_new_session: bool = False,
) -> subprocess.Popen[bytes]:
    """As `subprocess.Popen`. Raises RuntimeError when two stems have ended by themselves."""
    words = [str(one) for one in command]
    variables = dict(os.environ if env is None else env)
    files = (stdin, stdout, stderr)
    if not _is_up(words) or not _can_fork(words, variables, files, pass_fds):
        return subprocess.Popen(
            words, stdin=stdin, stdout=stdout, stderr=stderr, env=env, pass_fds=pass_fds,
            start_new_session=start_new_session,
        )  # fmt: skip
    asked = {
        "words": words,
        "environment": variables,
        "folder": os.getcwd(),
        "session": start_new_session,
        "as": [0, 1, 2, *pass_fds],
    }
    with open(os.devnull, "r+b", buffering=0) as nothing, _lock:
        ours = [
            nothing.fileno() if one == subprocess.DEVNULL else n if one is None else _number(one)
            for n, one in enumerate(files)
        ]
        pid = _fork(asked, [*ours, *pass_fds])
    return _child(words, pid)


def _fork(asked: dict[str, Any], descriptors: Sequence[int]) -> int:
    """The process id of the new child; another stem forks it where this one has ended."""
    global _stem
    stem = _running_stem()
    try:
        return stem.fork(asked, descriptors)
    except OSError as problem:
        told = f"the stem forks no more: {problem}; {stem.why()}"
        os.write(2, f"{told}\n".encode())
        _stem = None
        try:
            return _running_stem().fork(asked, descriptors)
        except OSError as again:
            raise RuntimeError(told) from again


def _is_up(words: list[str]) -> bool:
    at = 2 if words[1:2] == ["-P"] else 1
    return words[0] == sys.executable and words[at : at + 3] == ["-m", "console", "up"]


def _can_fork(
    words: list[str], variables: dict[str, str], files: Sequence[Any], passed: Sequence[int]
) -> bool:
    here = read_by_exec(os.environ) if _stem is None else _stem.environment
    return (
        os.environ.get("PENSTOCK_TEST_EXEC") != "1"
        and not {subprocess.PIPE, subprocess.STDOUT} & {one for one in files if type(one) is int}
        and len("\0".join(words).encode()) < COMMAND_BYTES
        and max(passed, default=0) < MOST_DESCRIPTOR
        and read_by_exec(variables) == here
    )


def read_by_exec(variables: Mapping[str, str]) -> dict[str, str]:
    """Those variables; a path that names what is imported here anyway is as good as none."""
    found = {key: value for key, value in variables.items() if key.startswith(_READ_BY_EXEC)}
    first, _, rest = found.get("PYTHONPATH", "").partition(os.pathsep)
    if first == str(ROOT):
        found["PYTHONPATH"] = rest
    return {key: value for key, value in found.items() if value}


def _number(file: Any) -> int:
    return file if isinstance(file, int) else file.fileno()


def _running_stem() -> Stem:
    global _stem
    if _stem is None or _stem.owner != os.getpid():  # a fork of a worker has its own
        _stem = Stem()
    return _stem


def _child(words: list[str], pid: int) -> subprocess.Popen[bytes]:
    """A Popen of a child that is there already."""
    made = subprocess.Popen.__new__(subprocess.Popen)
    made.__dict__ |= {
        "args": words, "pid": pid, "returncode": None, "stdin": None, "stdout": None,
        "stderr": None, "encoding": None, "errors": None, "text_mode": None, "pipesize": -1,
        "_input": None, "_communication_started": False, "_child_created": True,
        "_sigint_wait_secs": 0.25, "_waitpid_lock": threading.Lock(),
        "_closed_child_pipe_fds": True,
    }  # fmt: skip
    return made


def pytest_configure() -> None:
    """`penstock.local` starts its appliances so, too."""
    local.subprocess = SimpleNamespace(Popen=start, DEVNULL=subprocess.DEVNULL)  # type: ignore[attr-defined]


def pytest_sessionfinish() -> None:
    global _stem
    if _stem is not None and _stem.owner == os.getpid():
        _stem.end()
    _stem = None
