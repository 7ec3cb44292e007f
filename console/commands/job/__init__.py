"""`penstock job …`: the table of its commands. What runs jobs is in spark_local."""

from console.root import LazyGroup

command = LazyGroup(
    "job",
    package=__name__,
    table={
        "setup": ("setup", "Download Spark's Kafka connector, once."),
        "serve": ("serve", "Run all jobs in this terminal."),
        "add": ("add", "Add job files and start their jobs."),
        "list": ("list", "List jobs."),
        "status": ("status", "Show the state of jobs: rates, lag, watermark, failures."),
        "start": ("wish:start_jobs", "Start jobs."),
        "stop": ("wish:stop", "Stop jobs after their current batch."),
        "restart": ("wish:restart", "Stop jobs and start them."),
        "logs": ("logs", "Show the log of a job."),
        "reset": ("forget:reset", "Reset the progress of a job."),
        "remove": ("forget:remove", "Delete jobs with their progress and logs."),
        "preview": ("look:preview", "Show sample rows that a job would derive."),
        "explain": ("look:explain", "Show Spark's plan and the state of a job."),
        "bench": ("bench", "Measure how fast a job is on this machine."),
        "run": ("run", "Run one job in this terminal."),
    },
    aliases={"ls": "list", "rm": "remove", "log": "logs"},
    help="Run derived streams: jobs in SQL or Python over topics, on Spark.",
    epilog="""\b
Examples:
  penstock job setup
  penstock job preview delays.toml
  penstock job add delays.toml
  penstock job serve
  penstock job status

docs/jobs.md describes job files.""",
)
"""What the root calls for `penstock job`."""
