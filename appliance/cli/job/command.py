"""`penstock job …`: the table of its commands."""

from typing import Final

from appliance.cli.root import LazyGroup, Table

_HERE: Final = "appliance.cli.job"
_TABLE: Final[Table] = {
    "setup": (f"{_HERE}.setup", "Fetch what Spark needs to talk to the appliance, once."),
    "serve": (f"{_HERE}.serve", "Keep all jobs running, in this terminal."),
    "add": (f"{_HERE}.add", "Take in job files and start them."),
    "list": (f"{_HERE}.list", "List jobs."),
    "status": (f"{_HERE}.status", "Show how jobs are: rates, lag, watermark, what failed."),
    "start": (f"{_HERE}.start", "Start jobs."),
    "stop": (f"{_HERE}.stop", "Stop jobs, each after its batch."),
    "restart": (f"{_HERE}.restart", "Stop jobs and start them."),
    "logs": (f"{_HERE}.logs", "Show what happened to a job."),
    "reset": (f"{_HERE}.reset", "Let a job forget how far it came."),
    "remove": (f"{_HERE}.remove", "Delete jobs with all they know."),
    "preview": (f"{_HERE}.preview", "Show rows of what a job would derive."),
    "explain": (f"{_HERE}.explain", "Show how Spark runs a job and what it remembers."),
    "run": (f"{_HERE}.run", "Run one job in this terminal."),
}

command = LazyGroup(
    "job",
    table=_TABLE,
    aliases={"ls": "list", "rm": "remove", "log": "logs"},
    help="Derived streams: jobs in SQL or Python over topics, run by Spark.",
    epilog="""\b
Examples:
  penstock job setup
  penstock job preview delays.toml
  penstock job add delays.toml
  penstock job serve
  penstock job status

docs/jobs.md says what a job file may say.""",
)
"""What the root calls for `penstock job`."""
