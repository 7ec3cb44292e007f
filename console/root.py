"""The command tree without its commands: a table of names, one line of help each and where the
command lives. A command's module is imported when it is called or asked for its own help.

`run` is the only place that exits: it maps failures to exit codes and prints cause and hint.
"""

import importlib
import os
import sys
from typing import Any, Final, NoReturn

import click

from console.model.failure import INTERRUPTED, OK, PIPE_GONE, USAGE, Failure, usage
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
_COMMANDS: Final[Table] = {
    "up": ("up", "Start an appliance in this terminal."),
    "restart": ("restart", "Restart or upgrade it; its clients wait for it."),
    "run": ("run", "Run a command beside an appliance of its own."),
    "wait": ("wait", "Wait until an appliance of this host is ready."),
    "doctor": ("doctor", "Say what is wrong with this host or the appliance, and what helps."),
    "explain": ("explain", "Say what an error or an event means, and what helps."),
    "demo": ("demo.command", "Load real data, run jobs over it, compare what comes out."),
    "status": ("status", "How it stands, on one screen; the exit code says so too."),
    "top": ("top", "What goes through it, live: by topic, client, process."),
    "connections": ("client.list", "Who is connected, how fast; as client list."),
    "topic": ("topic", "Create, inspect, change and delete topics."),
    "group": ("group", "Inspect consumer groups, move their offsets."),
    "txn": ("txn", "Open transactions: what they hold back; abort them."),
    "cluster": ("cluster", "Nodes, quorum, replicas: who is missing, and why."),
    "quota": ("quota", "Say how much clients may use; see who is throttled."),
    "client": ("client", "See who is connected, how fast, and who has to wait."),
    "event": ("event", "See what happens in it: its own events, as they come."),
    "config": ("config", "Settings of broker, cluster, topics and groups."),
    "secure": ("secure", "Certificates: open it to other hosts, encrypted."),
    "profile": ("profile", "Names of your own for several appliances."),
    "produce": ("produce", "Write records: lines of stdin, or files."),
    "consume": ("consume", "Read records: by offset, by time, from the end."),
    "job": ("job", "Derived streams: jobs over topics, run by Spark."),
    "stats": ("stats", "How it is doing: requests, latencies, errors, topics."),
    "metrics": ("metrics", "What it tells Prometheus; alert rules, a board."),
    "console": ("console", "Watch it on one screen: rates, topics, groups."),
    "log": ("log", "Look into the files of a data folder."),
    "storage": ("storage", "Find and repair damage in a data folder."),
    "backup": ("backup", "Keep copies of an appliance, in a folder or a bucket."),
    "restore": ("restore", "Make a data folder of a backup, up to a point in time."),
    "import": ("kafka_folders:take_in", "Make a data folder of Apache Kafka's."),
    "export": ("kafka_folders:give_out", "Make a folder that Apache Kafka starts with."),
    "debug": ("debug", "Gather what somebody needs who helps."),
    "metadata": ("metadata", "Repair the metadata log of a data folder."),
    "service": ("service", "Start it with the host, or your login, by systemd."),
    "version": ("version", "Say which version this is."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by a table. package: where their modules are. aliases: other
    name → name."""

    def __init__(
        self,
        name: str,
        *,
        package: str,
        table: Table,
        aliases: dict[str, str] | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(name, **rest)
        self._package = package
        self._table = table
        self._aliases = aliases or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does it, and an option that stands too early is told where it belongs."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as wrong:
            text = f"{wrong.format_message()} Options of a command stand behind its name."
            raise click.UsageError(text, ctx) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        known = self._table.get(self._aliases.get(cmd_name, cmd_name))
        if known is None:
            return None
        module, _, called = known[0].partition(":")
        found = importlib.import_module(f".{module}", self._package)
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
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._table.items()])


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        command = root.get_command(ctx, "version")
        assert command is not None
        ctx.exit(ctx.invoke(command, output="table"))


root = LazyGroup(
    "penstock",
    package="console.commands",
    table=_COMMANDS,
    params=[
        click.Option(
            ["--profile"],
            metavar="NAME",
            help="Which appliance, by a name of your own.  [default: $PENSTOCK_PROFILE]",
        ),
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Say which version this is.",
        ),
    ],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="A Kafka-compatible event-streaming appliance: one host, or three as a cluster.",
    epilog="""\b
Examples:
  penstock demo                                      real data, end to end
  penstock up                                        an appliance on localhost:9092
  penstock topic create hello
  echo world | penstock produce hello
  penstock consume hello -o start -e

TAB completion: eval "$(_PENSTOCK_COMPLETE=bash_source penstock)"; zsh_source and fish_source too.
Exit codes: 0 ok, 1 refused or failed, 2 usage or settings, 3 unreachable or too late,
4 a check came out negative, 130 Ctrl-C.""",
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
