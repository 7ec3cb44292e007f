"""The command tree without its commands: a table of names, one line of help each and where the
command lives. A command's module is imported when it is called or asked for its own help.

`run` is the only place that exits: it maps failures to exit codes and prints cause and hint.
"""

import os
import sys
from typing import Any, Final, NoReturn

import click

from console import import_module
from console.model.asking.failure import INTERRUPTED, OK, PIPE_GONE, USAGE, Failure, usage
from console.streams import OutputFailed, ReaderGone, escaped_in_json, flush, hush, is_unicode
from console.tied import watch_parent

COMPLETE: Final = "_PENSTOCK_COMPLETE"
"""Set by the shell while it completes: bash_source, bash_complete and so on."""
OUTPUT_KEY: Final = "penstock.output"
"""Where a command's context remembers its output form."""
TRACEBACK: Final = "PENSTOCK_TRACEBACK"
"""Set to see where an error comes from that no command foresaw."""

_UNTOLD: Final = frozenset(("USAGE", "FAILED"))
"""Names of failures that say no more than their text; of the others `penstock explain` knows."""

Table = dict[str, tuple[str, str]]
"""Name of a command → (its module below the group's package, with `:name` when what is called there
is not `command`; one line of help)."""
_GROUPS: Final[dict[str, Table]] = {
    "Start": {
        "up": ("up", "Start an appliance in this terminal."),
        "restart": ("restart", "Restart or upgrade an appliance while its clients wait."),
        "wait": ("wait", "Wait until an appliance of this host is ready."),
        "run": ("run", "Run a command beside a temporary appliance."),
        "demo": ("demo.command", "Load real data, run jobs over it and compare the results."),
        "service": ("service", "Install and control the systemd service."),
        "profile": ("profile", "Manage named connections to several appliances."),
        "version": ("version", "Show the version."),
        "help": ("help", "Show help for a command."),
    },
    "Data": {
        "topic": ("topic", "Create, inspect, change and delete topics."),
        "produce": ("produce", "Write records from stdin or files."),
        "consume": ("consume", "Read records by offset, by time or from the end."),
        "group": ("group", "Inspect consumer groups and reset their offsets."),
        "txn": ("txn", "Inspect and abort open transactions."),
    },
    "Jobs": {
        "job": ("job", "Run and inspect derived streams on Spark."),
    },
    "Operate": {
        "console": ("console", "Open the terminal console: rates, topics, groups, jobs."),
        "status": ("status", "Show the state of an appliance on one screen."),
        "top": ("top", "Show live throughput by topic, client and process."),
        "connections": ("client.list", "List client connections; the same as client list."),
        "client": ("client", "Inspect connected clients and their metrics."),
        "acl": ("acl", "Say who may do what, and ask whether a user may."),
        "quota": ("quota", "Set client quotas and see which clients are throttled."),
        "cluster": ("cluster", "Inspect, grow and shrink a cluster."),
        "config": ("config", "Show and change settings of brokers, topics and groups."),
        "user": ("user", "Manage the users that log in with SASL."),
        "token": ("token", "Manage delegation tokens, by which clients log in for a while."),
        "secure": ("secure", "Create certificates and encrypt the listeners."),
        "event": ("event", "List and follow the appliance's own events."),
        "audit": ("audit", "Show logins, denials and changes, and who did them."),
        "stats": ("stats", "Show request rates, latencies and errors."),
        "metrics": ("metrics", "Show the metrics, alert rules and dashboard for Prometheus."),
    },
    "Repair": {
        "doctor": ("doctor", "Check this host and the appliance, and suggest remedies."),
        "explain": ("explain", "Explain an error or an event, and what to do about it."),
        "backup": ("backup", "Back up an appliance to a folder or a bucket."),
        "restore": ("restore", "Restore a data folder from a backup, up to a point in time."),
        "log": ("log", "Dump and verify segments of a data folder."),
        "storage": ("storage", "Find and repair damage in a data folder."),
        "metadata": ("metadata", "Repair the metadata log of a data folder."),
        "import": ("kafka_folders:take_in", "Convert a data folder of Apache Kafka."),
        "export": ("kafka_folders:give_out", "Write a data folder that Apache Kafka starts with."),
        "debug": ("debug", "Collect a bundle for a bug report."),
    },
}
"""The commands of the tree's root by what they are for."""


class LazyGroup(click.Group):
    """A group that knows its commands by a table and imports a command when it is called.

    package: the package of the commands' modules. table: its commands, or its commands by section
    of the help text. aliases: other name → name.
    """

    def __init__(
        self,
        name: str,
        *,
        package: str,
        table: Table | dict[str, Table],
        aliases: dict[str, str] | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(name, **rest)
        self._package = package
        self._sections = _sections_of(table)
        self._table = {
            name: entry for part in self._sections.values() for name, entry in part.items()
        }
        self._aliases = aliases or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does it, and an option that stands too early is told where it belongs."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as wrong:
            text = f"{wrong.format_message()} Options of a command follow its name."
            raise click.UsageError(text, ctx) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        known = self._table.get(self._aliases.get(cmd_name, cmd_name))
        if known is None:
            return None
        module, _, called = known[0].partition(":")
        found = import_module(f".{module}", self._package)
        command = getattr(found, called or "command")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with the nearest name when there is none."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from difflib import get_close_matches

            names = [*self._table, *self._aliases]
            near = get_close_matches(args[0], names, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            ctx.fail(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, self._table))
        for title, part in self._sections.items():
            with formatter.section(title):
                rows = [(name.ljust(widest), line) for name, (_, line) in part.items()]
                formatter.write_dl(rows)


def _sections_of(table: Table | dict[str, Table]) -> dict[str, Table]:
    """The commands by section of the help text; a table without sections is one of Commands."""
    sections: dict[str, Table] = {}
    for name, entry in table.items():
        if isinstance(entry, dict):
            sections[name] = entry
        else:
            sections.setdefault("Commands", {})[name] = entry
    return sections


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        command = root.get_command(ctx, "version")
        assert command is not None
        ctx.exit(ctx.invoke(command, output="table"))


root = LazyGroup(
    "penstock",
    package="console.commands",
    table=_GROUPS,
    params=[
        click.Option(
            ["--profile"],
            metavar="NAME",
            help="Use this named connection.  [default: $PENSTOCK_PROFILE]",
        ),
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version and exit.",
        ),
    ],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="A Kafka-compatible event-streaming appliance: one host, or three as a cluster.",
    epilog="""\b
Examples:
  penstock demo                                      load real data, end to end
  penstock up                                        serve clients on localhost:9092
  penstock topic create hello
  echo world | penstock produce hello
  penstock consume hello -o start -e

TAB completion: eval "$(_PENSTOCK_COMPLETE=bash_source penstock)"; zsh_source and fish_source too.
Exit codes: 0 ok, 1 refused or failed, 2 usage or settings, 3 unreachable or too late,
4 a check failed, 130 Ctrl-C.""",
)


def run() -> NoReturn:
    """Parse sys.argv, run the command, exit."""
    if instruction := os.environ.get(COMPLETE):
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(root, {}, "penstock", COMPLETE, instruction))
    try:
        code = _outcome()
        flush()
    except ReaderGone:  # without a word, as a program that SIGPIPE kills
        hush()
        code = PIPE_GONE
    except OutputFailed as why:
        hush()
        code = _reported(Failure(f"stdout: {why}", name="OUTPUT_FAILED"))
    sys.exit(code)


def _outcome() -> int | str:
    """Run the command: its exit code, the reason of a failure told. Raises OutputFailed."""
    context: click.Context | None = None
    try:
        watch_parent()
        with root.make_context("penstock", sys.argv[1:]) as context:
            code = root.invoke(context)
        return code if isinstance(code, int) else OK
    except OutputFailed:
        raise
    except SystemExit as end:
        return OK if end.code is None else end.code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except Exception as problem:
        return _ended(context, problem)


def _ended(context: click.Context | None, problem: Exception) -> int:
    """The exit code of a command that raised this, its reason told."""
    if isinstance(problem, click.exceptions.Exit):
        return problem.exit_code
    if isinstance(problem, click.exceptions.NoArgsIsHelpError):
        problem.show()
        return USAGE
    if isinstance(problem, click.ClickException):
        _misused(context, problem)
        return USAGE
    failure = problem if isinstance(problem, Failure) else _unforeseen(problem)
    return failure.code if _as_json(context, failure) else _reported(failure)


def _unforeseen(problem: Exception) -> Failure:
    """A Failure of an exception that no command expects."""
    if isinstance(problem, OSError):
        # A file or folder of this host: what concerns a broker has become a Failure on the way.
        return Failure(_of_the_host(problem), name="OS_ERROR")
    if isinstance(problem, UnicodeEncodeError) and not problem.object.isprintable():
        return usage(f"{ascii(problem.object)[1:-1]} is no text in UTF-8")
    if os.environ.get(TRACEBACK):
        import traceback

        traceback.print_exception(problem)
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})"
    text = " ".join(str(problem).split())
    return Failure(
        f"{type(problem).__name__}: {text}{place}",
        f"this is a fault of penstock; {TRACEBACK}=1 shows how it comes about",
        name="INTERNAL_ERROR",
    )


def _misused(context: click.Context | None, wrong: click.ClickException) -> None:
    """Say what is wrong with the command line, with the usage where a person reads it."""
    told = usage(wrong.format_message())
    if _as_json(context, told):
        return
    if _is_journal():
        _report(told)
    else:
        wrong.show()


def _of_the_host(problem: OSError) -> str:
    where = (
        f"{os.fsdecode(problem.filename)}: " if isinstance(problem.filename, str | bytes) else ""
    )
    return f"{where}{problem.strerror or problem}"


def _as_json(context: click.Context | None, failure: Failure) -> bool:
    """Print the failure as JSON on stdout, in JSON mode; True when it is that mode."""
    if context is None or context.meta.get(OUTPUT_KEY) not in ("json", "jsonl"):
        return False
    import json

    told = {"code": failure.name, "kafka_code": failure.kafka_code}
    told |= {"message": failure.message, "where": failure.where or None, "hint": failure.hint}
    line = json.dumps({"error": told}, ensure_ascii=not is_unicode(sys.stdout))
    print(escaped_in_json(line), flush=True)
    return True


def _reported(failure: Failure) -> int:
    """Its exit code, told on stderr."""
    _report(failure)
    return failure.code


def _report(failure: Failure) -> None:
    """Cause and hint on stderr, as the last lines; for the journal with the priority of errors, so
    that `journalctl -p err` shows why a unit did not start."""
    from console.called import typed

    begin = "<3>" if _is_journal() else ""
    told = f"penstock: {failure.message}"
    if failure.name not in _UNTOLD and failure.name[0] != "_":  # those are librdkafka's own
        told += f" [{failure.name}]"
    if failure.hint:
        told += f"\n{typed(f'hint: {failure.hint}')}"
    for line in told.splitlines():
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
        print(begin + text, file=sys.stderr)


def _is_journal() -> bool:
    """True if stderr goes to the journal."""
    if "JOURNAL_STREAM" not in os.environ:
        return False
    from appliance.shell.log import is_journal

    return is_journal(2)
