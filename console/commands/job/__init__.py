"""`penstock job …`: the table of its commands. What runs jobs is in spark_local."""

from console.root import LazyGroup

command = LazyGroup(
    "job",
    package=__name__,
    table={
        "setup": ("setup", "Fetch what Spark needs to talk to the appliance, once."),
        "serve": ("serve", "Keep all jobs running, in this terminal."),
        "add": ("add", "Take in job files and start them."),
        "list": ("list", "List jobs."),
        "status": ("status", "Show how jobs are: rates, lag, watermark, what failed."),
        "start": ("wish:start", "Start jobs."),
        "stop": ("wish:stop", "Stop jobs, each after its batch."),
        "restart": ("wish:restart", "Stop jobs and start them."),
        "logs": ("logs", "Show what happened to a job."),
        "reset": ("forget:reset", "Let a job forget how far it came."),
        "remove": ("forget:remove", "Delete jobs with all they know."),
        "preview": ("look:preview", "Show rows of what a job would derive."),
        "explain": ("look:explain", "Show how Spark runs a job and what it remembers."),
        "run": ("run", "Run one job in this terminal."),
    },
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
