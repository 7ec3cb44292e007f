"""`penstock console` as a process at a terminal, and somebody who reads and types there."""

import fcntl
import os
import pty
import re
import select
import subprocess
import termios
import time

from tests.console_process import PENSTOCK

LIMIT_S = 60.0


def _take_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A console at the other end of a terminal, or another command, and what it has written."""

    def __init__(self, *words, command=(*PENSTOCK, "console"), cwd=None, controlling=False, **env):
        """controlling: the end of the terminal is a SIGHUP for it."""
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*command, *words], stdin=theirs, stdout=theirs, stderr=theirs,
            env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"} | env,
            start_new_session=True, cwd=cwd, preexec_fn=_take_terminal if controlling else None,
        )  # fmt: skip
        os.close(theirs)
        self.said = b""

    def until(self, words):
        """Read until it has written this: a text, or a pattern of it."""
        wanted = re.compile(getattr(words, "pattern", None) or re.escape(words))
        end = time.monotonic() + LIMIT_S
        while not wanted.search(self.said.decode(errors="replace")):
            assert time.monotonic() < end, self.said[-2000:]
            if select.select([self._ours], [], [], 1.0)[0]:
                self.said += os.read(self._ours, 65536)

    def echoes(self):
        """Whether what is typed is shown by the terminal itself."""
        return bool(termios.tcgetattr(self._ours)[3] & termios.ECHO)

    def hang_up(self):
        """Nobody is at the terminal any more."""
        os.close(self._ours)

    def type(self, text):
        os.write(self._ours, text.encode())

    def ends(self):
        """Its exit code, when it has ended; what it still writes is read meanwhile."""
        while self.process.poll() is None:
            if select.select([self._ours], [], [], 0.1)[0]:
                try:
                    self.said += os.read(self._ours, 65536)
                except OSError:  # nobody holds the other end
                    return self.process.wait(LIMIT_S)
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._ours)
