"""`penstock run -- COMMAND`: a command with an appliance of its own, which is gone when it ends."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import click

from console.flags.connection import key_values
from console.model.asking.failure import Failure, usage
from console.model.asking.link import Link, asking
from console.model.asking.setting_values import in_units
from console.model.local.run_folders import RunFolder, make_folder
from console.model.topics import topics
from console.tied import unwatch_parent, watch_parent
from penstock import tied
from penstock.local import Appliance, ApplianceError

_PR_SET_PDEATHSIG: Final = 1
_TIMEOUT_S: Final = 30.0
_NOT_FOUND, _NOT_RUN = 127, 126
_PASSED: Final = frozenset(
    {
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGWINCH,
    }
)
_ENDS: Final = (signal.SIGTERM, signal.SIGHUP)
"""These end us while there is no command yet; Ctrl-C raises by itself."""


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.option(
    "-t", "--topic", "wanted", metavar="NAME[:PARTITIONS]", multiple=True,
    help="Create this topic before the command starts; may be repeated.",
)  # fmt: skip
@click.option(
    "--data", metavar="DIR", help="Keep the data in this folder.  [default: a temporary folder]"
)
@click.option(
    "-o", "settings", metavar="KEY=VALUE", multiple=True, help="A setting of the appliance."
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND...")
def command(
    wanted: tuple[str, ...], data: str | None, settings: tuple[str, ...], command: tuple[str, ...]
) -> int:
    """Run a command beside a temporary appliance on a free port, and stop the appliance with it.

    The command finds the address in PENSTOCK_BOOTSTRAP, BOOTSTRAP_SERVERS, KAFKA_BOOTSTRAP_SERVERS,
    KAFKA_BROKERS, RPK_BROKERS, SPRING_KAFKA_BOOTSTRAP_SERVERS and similar variables. Signals are
    forwarded to the command. The exit code is that of the command, 128 plus the number of the
    signal that ended it, or 127 when the command is not found.

    \b
    penstock run -- pytest
    penstock run -t orders:3 -t payments -- mvn test
    penstock run --data ./kept -o log.retention.ms=1h -- ./loader --fast
    """
    given = in_units(key_values(settings, "-o"))
    warn_of(given)
    counts = [_counted(one) for one in wanted]
    outlives = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    for one in _ENDS:
        signal.signal(one, _ended)
    with _ends_with_parent(outlives), _appliance(data, given) as running:
        link = Link(running.bootstrap, {}, _TIMEOUT_S)
        with asking(link):
            for name, partitions in counts:
                _make(link, name, partitions)
        return _attend(command, os.environ | running.environment())


@contextmanager
def _ends_with_parent(outlives: bool) -> Iterator[None]:
    """This command ends with its parent, however that ends. outlives: not so, as nohup asks."""
    if outlives or tied.VARIABLE in os.environ:
        yield  # the latter is watched by every command
        return
    # Signals are for the main thread alone, which waits for them.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED | {signal.SIGCHLD})
    try:
        os.environ[tied.VARIABLE] = tied.process_name(os.getppid())
        watch_parent()
    finally:
        os.environ.pop(tied.VARIABLE, None)  # children have their own parent
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield
    finally:
        unwatch_parent()


def _ended(number: int, _: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def warn_of(settings: dict[str, str]) -> None:
    """Says what `penstock up` would say of these settings. Raises Failure (USAGE)."""
    from appliance.base.errors import ConfigError
    from appliance.config.load import load
    from console.model.access.jaas_file import of_jaas_file

    try:
        _, warnings = load(None, settings, environment=of_jaas_file(None, settings))
    except ConfigError as problem:
        raise usage(str(problem)) from None
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def _counted(text: str) -> tuple[str, int | None]:
    """(name, partitions) of NAME[:PARTITIONS]. Raises Failure (USAGE)."""
    name, colon, count = text.partition(":")
    if not name or (colon and not (count.isdecimal() and 0 < int(count) <= topics.PARTITIONS_MOST)):
        raise usage(f"--topic {text!r} is not NAME[:PARTITIONS]", "for example --topic orders:3")
    return name, int(count) if colon else None


@contextmanager
def _appliance(data: str | None, settings: dict[str, str]) -> Iterator[Appliance]:
    """Running, in a session of its own: the terminal's Ctrl-C is for the command. Raises
    Failure."""
    made = None if data else _folder()
    folder = made.path / "data" if made is not None else Path(data or "").absolute()
    one = Appliance(folder, settings, own_session=True)
    try:
        try:
            one.start()
        except ApplianceError as problem:
            raise Failure(problem.reason, name="CANNOT_START") from None
        yield one
    finally:
        if one.running:
            one.stop() if data else one.kill()  # nothing of what is removed is worth an orderly end
        if made is not None:
            made.remove()


def _folder() -> RunFolder:
    try:
        return make_folder()
    except OSError as problem:
        raise Failure(
            f"no temporary folder: {problem.filename}: {problem.strerror}",
            "set TMPDIR to a folder that can be written", name="CANNOT_START",
        ) from None  # fmt: skip


def _make(link: Link, name: str, partitions: int | None) -> None:
    failure = topics.create(link, [name], partitions=partitions, settings={}, dry_run=False)[name]
    if failure is not None and failure.name != "TOPIC_ALREADY_EXISTS":
        raise failure


def _attend(command: tuple[str, ...], environment: dict[str, str]) -> int:
    """Be there until the command ends: its exit code.

    Signals are waited for, not handled, so that none comes between. What the terminal sends goes
    to the command too, by the kernel; what somebody sends to us alone we pass on."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED | {signal.SIGCHLD})
    libc, ours = ctypes.CDLL(None), os.getpid()

    def tie_child() -> None:
        # Before it becomes the command, which nothing else can tell of our end.
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if os.getppid() != ours:
            os._exit(1)

    try:
        process = subprocess.Popen(command, env=environment, close_fds=False, preexec_fn=tie_child)
    except OSError as problem:
        code = _NOT_FOUND if isinstance(problem, FileNotFoundError) else _NOT_RUN
        raise Failure(f"{command[0]}: {problem.strerror}", code=code, name="NOT_RUN") from None
    while True:
        ended = process.poll()
        if ended is not None:
            return ended if ended >= 0 else 128 - ended
        heard = signal.sigwaitinfo(_PASSED | {signal.SIGCHLD})
        by_kernel = heard.si_code > 0
        if heard.si_signo in _PASSED and not by_kernel:
            process.send_signal(heard.si_signo)
