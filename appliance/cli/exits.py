"""Exit codes and failures of every command: they are an interface, scripts rely on them."""

from typing import Final

OK: Final = 0
FAILED: Final = 1  # the broker or the operation said no
USAGE: Final = 2  # the command line or a setting is wrong; trying again is useless
UNREACHABLE: Final = 3  # no broker, or no answer in time; trying again may help
NEGATIVE: Final = 4  # a check came out negative
INTERRUPTED: Final = 130  # Ctrl-C
PIPE_GONE: Final = 141  # nobody reads our stdout any more (128 + SIGPIPE)


class Failure(Exception):
    """A command cannot go on. `message` names the cause, `hint` the remedy, `code` the exit code.

    `name` is Kafka's name of the error or one of ours in the same style; `kafka_code` its number.
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        code: int = FAILED,
        name: str = "FAILED",
        kafka_code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
        self.name = name
        self.kafka_code = kafka_code


def usage(message: str, hint: str = "") -> Failure:
    """What the user typed is wrong."""
    return Failure(message, hint, code=USAGE, name="USAGE")
