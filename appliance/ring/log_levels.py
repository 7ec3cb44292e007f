"""How much each process writes of what happens: levels of loggers in one word of the process table.

A logger stands for the processes of one kind, `root` for those without a level of their own.
Kafka's APIs of loggers (resource BROKER_LOGGER, KIP-412) change them while the appliance runs;
control alone writes the word, every process looks at it before it writes a line. They begin at INFO
with each start of the appliance.
"""

from collections.abc import Mapping
from typing import Final

ROOT: Final = "root"
LOGGERS: Final = (ROOT, "penstock.supervisor", "penstock.control", "penstock.ioproc",
                  "penstock.netproc", "penstock.exporter")  # fmt: skip
LEVELS: Final = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")
DEBUG: Final = LEVELS.index("DEBUG")
"""From here on what is else only kept for who looks is written, too."""
TRACE: Final = LEVELS.index("TRACE")
"""Nothing is left out for being too many."""
USUAL: Final = LEVELS.index("INFO")
_PRIORITIES: Final = (2, 3, 4, 6, 7, 8)
"""Of each level: what is written is at most this, as syslog counts."""
_BITS: Final = 4  # of each logger: 1 + its level, 0 when it has none of its own
_MASK: Final = (1 << _BITS) - 1


class LogLevels:
    """Over a memory of one word, zero at first."""

    __slots__ = ("_word",)

    def __init__(self, word: memoryview) -> None:
        self._word = word

    def set(self, logger: str, level: str | None) -> None:
        """Control: this logger has this level from now on; None: that of root."""
        place = LOGGERS.index(logger) * _BITS
        own = 0 if level is None else 1 + LEVELS.index(level)
        self._word[0] = self._word[0] & ~(_MASK << place) | own << place

    def level(self, number: int) -> int:
        """The number in LEVELS that holds for the logger with this number."""
        word = self._word[0]
        own = word >> number * _BITS & _MASK or word & _MASK
        return own - 1 if own else USUAL

    def all(self) -> Mapping[str, str]:
        """Every logger with the level that holds for it."""
        return {name: LEVELS[self.level(number)] for number, name in enumerate(LOGGERS)}


def logger_of(process: str) -> int:
    """The number of a process' logger, root for one that has none. process: such as netproc-0."""
    name = f"penstock.{process.partition('-')[0]}"
    return LOGGERS.index(name) if name in LOGGERS else LOGGERS.index(ROOT)


def writes(level: int, priority: int) -> bool:
    """True if an event of this syslog priority is written."""
    return priority <= _PRIORITIES[level]
