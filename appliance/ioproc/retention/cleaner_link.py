"""The other end of the cleaner's process: starts it when it is needed, asks, ends it.

Invariant: one question at a time; whatever ends the process is a StorageFailed for the log at hand
and the next question starts another one. `ask` blocks: called on a thread of its own.
"""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import appliance
from appliance.base.errors import DiskFull, StorageFailed

_ROOT: Final = str(Path(next(iter(appliance.__path__))).parent)
_SAID: Final = 300


class CleanerLink:
    """One cleaner's process at most."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ask_cleaner(self, folder: str, question: dict[str, Any]) -> dict[str, Any]:
        """Its answer. Raises StorageFailed: what it met in `folder`, or that it died."""
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except (OSError, ValueError):
            line = b""
        if not line:
            said = self.end_cleaner()
            raise StorageFailed(folder, errno.ESRCH, f"the cleaner's process ended: {said}")
        answer: dict[str, Any] = json.loads(line)
        if "failure" in answer:
            text = answer["failure"].removeprefix(f"{answer['path']}: ")
            kind = DiskFull if answer["full"] else StorageFailed
            raise kind(answer["path"], answer["errno"], text)
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        paths = [_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "appliance.ioproc.retention.cleaner_process", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,  # Ctrl-C is for the supervisor
        )
        return self._process

    def kill(self) -> None:
        """End it without waiting; who waits for an answer is told. Any thread."""
        process = self._process
        if process is not None:
            process.kill()

    def end_cleaner(self) -> str:
        """End it and wait; how it ended."""
        process, self._process = self._process, None
        if process is None:
            return "it was not running"
        process.kill()
        _, said = process.communicate()
        lines = said.decode(errors="replace").strip().splitlines()
        return lines[-1][:_SAID] if lines else f"status {process.returncode}"
