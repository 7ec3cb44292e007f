"""`penstock console` as a process at a terminal of its own."""

import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest

from tests.console_process import PENSTOCK, typing

LIMIT_S = 60.0


def test_it_needs_a_terminal_and_a_place_that_there_is(run):
    assert "needs a terminal" in run("console", code=2).stderr
    told = run("console", "nowhere", code=2).stderr
    assert "topic NAME" in told and "overview" in told


def test_nothing_of_it_is_loaded_for_other_commands():
    code = (
        "import sys; from console.root import root; "
        "root.get_help(root.make_context('penstock', ['version'])); "
        "bad = [n for n in sys.modules if n.startswith(('textual', 'console.screens'))]; "
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


class Terminal:
    """A console at the other end of a terminal, and what it has written."""

    def __init__(self, *words, **env):
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*PENSTOCK, "console", *words], stdin=theirs, stdout=theirs, stderr=theirs,
            env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"} | env,
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self.said = b""

    def until(self, words):
        """Read until it has written this."""
        end = time.monotonic() + LIMIT_S
        while words.encode() not in self.said:
            assert time.monotonic() < end, self.said[-2000:]
            if select.select([self._ours], [], [], 1.0)[0]:
                self.said += os.read(self._ours, 65536)

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


@pytest.mark.parametrize("key", ["q", "\x11"])
def test_somebody_opens_it_looks_and_leaves(alone, key):
    typing(alone.bootstrap)("topic", "create", "--if-not-exists", "console.seen")
    terminal = Terminal("topics", PENSTOCK_BOOTSTRAP=alone.bootstrap)
    try:
        terminal.until("READ-ONLY")
        terminal.until("console.seen")
        terminal.type("y")
        terminal.until("\x1b]52;c;")
        terminal.type(key)
        assert terminal.ends() == 0
        assert b"Traceback" not in terminal.said
    finally:
        terminal.close()


def test_without_colours_there_are_greys(alone):
    env = {"PENSTOCK_BOOTSTRAP": alone.bootstrap, "COLORTERM": "truecolor"}
    terminal = Terminal(NO_COLOR="1", **env)
    try:
        terminal.until("Nothing needs attention")
        terminal.type("q")
        assert terminal.ends() == 0
        shades = re.findall(rb"[34]8;2;(\d+);(\d+);(\d+)", terminal.said)
        assert shades and all(red == green == blue for red, green, blue in shades)
    finally:
        terminal.close()
