"""The one error of the model, and the exit codes that it becomes: scripts rely on them."""

from typing import Final

OK: Final = 0
FAILED: Final = 1  # the broker or the operation said no
USAGE: Final = 2  # the command line or a setting is wrong; trying again is useless
UNREACHABLE: Final = 3  # no broker, or no answer in time; trying again may help
NEGATIVE: Final = 4  # a check came out negative
INTERRUPTED: Final = 130  # Ctrl-C
PIPE_GONE: Final = 141  # nobody reads our stdout any more (128 + SIGPIPE)


class Failure(Exception):
    """It cannot be done. `message` names what, `where` the broker or folder that was asked ("" when
    none was), `hint` the remedy, `code` the exit code.

    `name` is Kafka's name of the error or one of ours in the same style; `kafka_code` its number.
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        where: str = "",
        code: int = FAILED,
        name: str = "FAILED",
        kafka_code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.code = code
        self.name = name
        self.kafka_code = kafka_code


def usage(message: str, hint: str = "") -> Failure:
    """The failure for a mistake in what the user typed."""
    return Failure(message, hint, code=USAGE, name="USAGE")


def unreadable(path: str, problem: OSError | UnicodeDecodeError) -> Failure:
    """A file that the user named cannot be read, or is no text."""
    why = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
    return usage(f"{path} cannot be read: {why or problem}")


def unknown_topic(message: str, hint: str = "") -> Failure:
    """A topic or a partition is not there."""
    hint = hint or "penstock topic list shows the topics"
    return Failure(message, hint, name="UNKNOWN_TOPIC_OR_PARTITION", kafka_code=3)
