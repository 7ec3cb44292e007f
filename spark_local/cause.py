"""A failure with its remedy, as the command line tells it. Imports nothing of Spark's."""

from typing import Final

NEEDS_TLS: Final = (
    "name a client file: --command-config FILE for all jobs, or client_config in the job file"
)


class JobError(Exception):
    """Something about jobs cannot go on: `problem` is one sentence, `remedy` what to do. `final`:
    trying again would not help. `waits`: it is waited for without end."""

    def __init__(
        self, problem: str, remedy: str = "", *, final: bool = True, waits: bool = False
    ) -> None:
        assert not (final and waits)
        super().__init__(f"{problem}; {remedy}" if remedy else problem)
        self.problem = problem
        self.remedy = remedy
        self.final = final
        self.waits = waits


def needs_tls(where: str) -> JobError:
    """The error for a listener with TLS at HOST:PORT."""
    return JobError(f"{where} is a listener with TLS", NEEDS_TLS)
