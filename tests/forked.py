"""Appliances forked from a process that has imported them: most of a start is imports.

`start` takes a command as `subprocess.Popen` does. Where it is `penstock up` of this interpreter,
a stem (one process of each worker, `stem.py`) forks the appliance, which then is a child of the
caller as any other, with the command, environment and descriptors that were asked for. Everything
else is executed as ever, so is an appliance with variables that only an interpreter's start reads.
What tests exec (README's commands, succession, units) they start themselves.
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

MOST_WORDS = 4096
"""Bytes of a command: room for it is kept where the kernel shows the stem's own."""
MOST_DESCRIPTOR = 400
"""Of those that are passed on; the stem has higher ones in use for a moment."""
_PR_SET_CHILD_SUBREAPER = 36
_EXECS = ("PYTHON", "LD_", "MALLOC_", "GLIBC_")
"""Variables that only a new interpreter reads begin so."""
_lock = threading.Lock()
_stem: "Stem | None" = None


class Stem:
    """The process that forks; it ends with its end of the socket."""

    def __init__(self) -> None:
        self.environment = _read_by_exec(os.environ)
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            words = [
                sys.executable,
                "-P",
                str(Path(__file__).with_name("stem.py")),
                str(theirs.fileno()),
            ]
            self._process = subprocess.Popen(
                [*words, "x" * MOST_WORDS], stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),)
            )
        self._libc = ctypes.CDLL(None, use_errno=True)

    def start(self, asked: dict[str, Any], descriptors: Sequence[int]) -> int:
        """The process id of the new child. Raises EOFError when the stem has ended."""
        with self._adopting():
            socket.send_fds(self._socket, [json.dumps(asked).encode()], descriptors)
            answer = self._socket.recv(64)
        if not answer:
            raise EOFError("the process that forks appliances has ended")
        return int(answer)

    @contextlib.contextmanager
    def _adopting(self) -> Iterator[None]:
        """Who forks the appliance ends at once: meanwhile orphans below us become our children."""
        self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            yield
        finally:
            self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)

    def end(self) -> None:
        self._socket.close()
        self._process.wait()


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
    """As `subprocess.Popen`."""
    words = [str(one) for one in command]
    variables = dict(os.environ if env is None else env)
    files = (stdin, stdout, stderr)
    if not _is_up(words) or not _may_fork(words, variables, files, pass_fds):
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
    with open(os.devnull, "r+b", buffering=0) as nothing:
        ours = [
            nothing.fileno() if one == subprocess.DEVNULL else n if one is None else _number(one)
            for n, one in enumerate(files)
        ]
        with _lock:
            pid = _fork(asked, [*ours, *pass_fds])
    return _child(words, pid)


def _is_up(words: list[str]) -> bool:
    at = 2 if words[1:2] == ["-P"] else 1
    return words[0] == sys.executable and words[at : at + 3] == ["-m", "console", "up"]


def _may_fork(
    words: list[str], variables: dict[str, str], files: Sequence[Any], passed: Sequence[int]
) -> bool:
    here = dict(os.environ) if _stem is None else _stem.environment
    return (
        not {subprocess.PIPE, subprocess.STDOUT} & {one for one in files if isinstance(one, int)}
        and len("\0".join(words).encode()) < MOST_WORDS
        and max(passed, default=0) < MOST_DESCRIPTOR
        and _read_by_exec(variables) == _read_by_exec(here)
    )


def _read_by_exec(variables: Mapping[str, str]) -> dict[str, str]:
    """Those variables; a path that names what is imported here anyway is as good as none."""
    found = {key: value for key, value in variables.items() if key.startswith(_EXECS)}
    first, _, rest = found.get("PYTHONPATH", "").partition(os.pathsep)
    if first == str(Path(local.__file__).parents[1]):
        found["PYTHONPATH"] = rest
    return {key: value for key, value in found.items() if value}


def _number(file: Any) -> int:
    return file if isinstance(file, int) else file.fileno()


def _the_stem() -> Stem:
    global _stem
    if _stem is None:
        _stem = Stem()
    return _stem


def _fork(asked: dict[str, Any], descriptors: Sequence[int]) -> int:
    """The process id of the new child, by another stem where this one has ended."""
    global _stem
    try:
        return _the_stem().start(asked, descriptors)
    except (OSError, EOFError):
        _stem = None
        return _the_stem().start(asked, descriptors)


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
    if _stem is not None:
        _stem.end()
        _stem = None
