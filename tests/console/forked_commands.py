"""Commands in processes of their own, each forked from one that has imported them all: a real
stdout, a real exit, and milliseconds instead of a start of Python.

`python -m tests.console.forked_commands` is the process that forks; `Forks` asks it.
"""

import errno
import gc
import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from types import SimpleNamespace

import click

LIMIT_S = 60.0
KEPT, CLOSED, NO_READER, FULL, HUNG_UP, TERMINAL = [
    "kept",
    "closed",
    "no-reader",
    "full",
    "hung-up",
    "tty",
]
"""What stdout is: a file; not open; a pipe that nobody reads (EPIPE); /dev/full (ENOSPC); a
terminal that is gone (EIO); a terminal."""


def leaves(group=None, path=()):
    """(words, command) of every command of the tree."""
    from console.root import root

    group = root if group is None else group
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from leaves(found, (*path, name))
        else:
            yield (*path, name), found


class Forks:
    """The process that forks, until `close`."""

    def __init__(self, **env):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.console.forked_commands"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | env, text=True,
        )  # fmt: skip

    def run(
        self, *words, stdout=KEPT, stderr=KEPT, stdin=b"", env=None, cwd=None, umask=None,
        encoding=None,
    ):  # fmt: skip
        """The ended command: returncode, stdout and stderr as bytes; all that a terminal got is
        in stdout. env: None in the place of a value takes the variable away. stderr: KEPT, FULL or
        CLOSED."""
        how = {"words": [os.fsencode(word).decode("latin-1") for word in words], "stdout": stdout}
        how |= {
            "stderr": stderr,
            "stdin": stdin.decode("latin-1"),
            "env": env or {},
            "cwd": cwd,
            "umask": umask,
        }
        print(json.dumps(how | {"encoding": encoding}), file=self._process.stdin, flush=True)
        told = json.loads(self._process.stdout.readline())
        out, err = (told[name].encode("latin-1") for name in ("stdout", "stderr"))
        return SimpleNamespace(returncode=told["code"], stdout=out, stderr=err)

    def close(self):
        self._process.stdin.close()
        self._process.wait(LIMIT_S)
        self._process.stdout.close()


def _opened(kind):
    """(descriptor for the command, the one that is read while it runs or -1)."""
    if kind == NO_READER:
        ours, theirs = os.pipe()
        os.close(ours)
        return theirs, -1
    if kind in (HUNG_UP, TERMINAL):
        ours, theirs = pty.openpty()
        if kind == TERMINAL:
            return theirs, ours
        os.close(ours)
        return theirs, -1
    if kind == FULL:
        return os.open("/dev/full", os.O_WRONLY), -1
    file, name = tempfile.mkstemp()
    os.unlink(name)
    return file, -1


def _answer(how):
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as err:
        stdin.write(how["stdin"].encode("latin-1"))
        stdin.seek(0)
        out, read = _opened(how["stdout"])
        pid = os.fork()
        if not pid:
            if read >= 0:
                os.close(read)
            told = _opened(FULL)[0] if how["stderr"] == FULL else err.fileno()
            seat = (stdin.fileno(), out, out if read >= 0 else told)
            return _become(how, seat)
        painted = b""
        if read >= 0:
            os.close(out)
            painted = _drained(read)
        _, status = os.waitpid(pid, 0)
        told = painted if read >= 0 else b""
        if how["stdout"] == KEPT:
            told = os.pread(out, os.fstat(out).st_size, 0)
        if read < 0:
            os.close(out)
        err.seek(0)
        answer = {"code": os.waitstatus_to_exitcode(status), "stdout": told.decode("latin-1")}
        print(json.dumps(answer | {"stderr": err.read().decode("latin-1")}), flush=True)
    return True


def _drained(read):
    """All that is written to a terminal until nobody holds it."""
    got = b""
    try:
        while select.select([read], [], [], LIMIT_S)[0]:
            got += os.read(read, 65536)
    except OSError as end:  # nobody holds the other end
        if end.errno != errno.EIO:
            raise
    finally:
        os.close(read)
    return got


def _become(how, seat):
    """This process is the command now; False, so that the loop ends."""
    for number, fd in enumerate(seat):
        os.dup2(fd, number)
    if how["stdout"] == CLOSED:
        os.close(1)
    if how["stderr"] == CLOSED:
        os.close(2)
    signal.alarm(int(LIMIT_S))
    for name, value in how["env"].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    if how["cwd"]:
        os.chdir(how["cwd"])
    if how["umask"] is not None:
        os.umask(how["umask"])
    encoding = how["encoding"] or "utf-8"
    sys.stdin = os.fdopen(0, encoding=encoding, errors="surrogateescape", closefd=False)
    sys.stdout = None
    if how["stdout"] != CLOSED:
        sys.stdout = os.fdopen(1, "w", encoding=encoding, closefd=False)
    sys.stderr = None
    if how["stderr"] != CLOSED:
        sys.stderr = os.fdopen(2, "w", encoding=encoding, errors="backslashreplace", closefd=False)
    sys.argv = ["penstock", *(os.fsdecode(word.encode("latin-1")) for word in how["words"])]
    return False


def _leave():
    """The command, and the end of a program without what an interpreter tidies up."""
    from console import main

    code = 120
    try:
        main()
    except SystemExit as end:
        code = end.code
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except BaseException as problem:
        os.write(2, f"Exception ignored: {problem!r}".encode())
        code = 120
    os._exit(code or 0)


def _serve():
    """Until nobody asks any more; a fork leaves it to be the command, as the program is."""
    for _ in leaves():
        pass
    import encodings.idna  # noqa: F401 - by the first name that is resolved

    import confluent_kafka.admin  # noqa: F401

    gc.freeze()
    asked = os.fdopen(os.dup(0), encoding="utf-8")
    while line := asked.readline():
        if not _answer(json.loads(line)):
            _leave()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        _serve()
