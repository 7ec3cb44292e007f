"""Apache Kafka's command line tools for tests that only want to know what one prints.

A start of a JVM costs more processor time than most tools, so each worker has one JVM, which starts
with the first tool, runs one after the other, and ends with the session. `benchmarks.kafka` starts
a JVM for each: for tests of what only a process has, such as signals.
"""

import subprocess
import threading

from tests.differential.tools.launcher import Tools

_tools: Tools | None = None
_one_at_a_time = threading.Lock()


def tool(
    class_name: str, *arguments: str, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's tools to its end; output captured as text. Raises RuntimeError when it
    hangs; `kafka.unavailable()` must have said None."""
    global _tools
    with _one_at_a_time:
        if _tools is None:
            _tools = Tools().__enter__()
        try:
            said = _tools.run(class_name, *arguments, stdin=stdin or "")
        except RuntimeError:  # its JVM is gone: the next one gets another
            _end()
            raise
    words = [class_name, *arguments]
    return subprocess.CompletedProcess(words, said.code, said.out, said.err)


def _end() -> None:
    global _tools
    if _tools is not None:
        _tools.__exit__()
        _tools = None


def pytest_sessionfinish() -> None:
    _end()
