"""The command tree without its commands: a table of names, one line of help each and where the
command lives. A command's module is imported when it is called or asked for its own help.

`run` is the only place that exits: it maps failures to exit codes and prints cause and hint.
"""

import importlib
import os
import sys
from typing import Final, NoReturn

import click

from appliance.cli.exits import INTERRUPTED, OK, USAGE, Failure

VERSION: Final = "0.1.0"

Table = dict[str, tuple[str, str]]
_COMMANDS: Final[Table] = {
    "up": ("appliance.cli.up", "Start an appliance in this terminal."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by a table: name → (module, one line of help). The command is
    the module's `command`."""

    def __init__(self, *args: object, table: Table, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._table:
            return None
        command = importlib.import_module(self._table[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._table.items()])


root = LazyGroup(
    "penstock",
    table=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="A Kafka-compatible event-streaming appliance for one host.",
)


def run() -> NoReturn:
    """Parse sys.argv, run the command, exit."""
    try:
        code = root.main(standalone_mode=False, prog_name="penstock")
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else OK)
    except click.exceptions.NoArgsIsHelpError as help_wanted:
        help_wanted.show()
        sys.exit(USAGE)
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(USAGE)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _hush()
    except Failure as failure:
        report(failure)
        sys.exit(failure.code)


def report(failure: Failure) -> None:
    """Cause and hint on stderr, as the last lines."""
    print(f"penstock: {failure.message}", file=sys.stderr)
    if failure.hint:
        print(f"hint: {failure.hint}", file=sys.stderr)


def _hush() -> NoReturn:
    """Whoever read our stdout has gone: end as SIGPIPE would, without a word."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(128 + 13)
