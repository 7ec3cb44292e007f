"""`penstock up`: settings → supervisor, and what a person wants to read when it is ready.

Everything the children use is imported here, before the first fork, so that they share its memory.
"""

import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from appliance.base.errors import ConfigError, StorageFailed
from appliance.config import open_listeners
from appliance.config.broker import BrokerConfig
from appliance.config.listeners import LOOPBACK, parse_endpoint
from appliance.config.load import load
from appliance.shell.log import INFO, Log
from appliance.shell.version import current
from console import BEGAN_S, SUCCEEDS, tied
from console.called import anew, typed
from console.flags.private import private
from console.model.access.jaas_file import jvm_remarks, of_jaas_file
from console.model.asking.failure import FAILED, OK, Failure, usage
from console.model.asking.version import compiled
from console.model.local.listening import listeners
from console.model.storage.data_folder import DEFAULT_DATA, KEPT
from console.preload import preload

if TYPE_CHECKING:
    from appliance.control.quorum.first_voters import FirstVoters

DEFAULT_PORT: Final = 9092
Read = Callable[[], tuple[BrokerConfig, list[str]]]
"""The settings as they are when it is called, and warnings. Raises ConfigError."""
_LOOK_UP_S: Final = 2.0
_JOIN_S: Final = 10.0


@click.command("up")
@click.option("--data", metavar="DIR", help=f"The data folder.  [default: ./{DEFAULT_DATA}]")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    multiple=True,
    help="Address of a client listener; may be repeated. Port 0 takes a free port.  [default: "
    "localhost:9092]",
)
@click.option("--config", metavar="FILE", help="Settings in Kafka's own server.properties form.")
@click.option(
    "-o", "settings", metavar="KEY=VALUE", multiple=True, help="A setting; overrides the file."
)
@click.option(
    "--cluster-id",
    metavar="ID",
    default="",
    help="The cluster that an empty data folder is formatted for: 16 bytes in URL-safe base64,"
    " the same on every node.  [default: a new one]",
)
@click.option(
    "--standalone",
    is_flag=True,
    help="Begin a cluster in an empty data folder with this node as its first voter; others join.",
)
@click.option(
    "--initial-controllers",
    "initial",
    metavar="VOTER[,...]",
    help="Begin a cluster in empty data folders with these voters, the same on each of them:"
    " ID@HOST:PORT:DIRECTORY-ID, of their controller listeners; penstock cluster new-id makes a"
    " directory id.",
)
@click.option(
    "--add-scram",
    "users",
    metavar="SCRAM-SHA-512=[name=USER,password=SECRET]",
    multiple=True,
    help="A user that a new cluster begins with, in the words of kafka-storage format, or @FILE"
    " with them: every user of the host can read the command line of a process. May be repeated.",
)
@click.option(
    "--join",
    metavar="HOST:PORT[,...]",
    help="Join the cluster of this broker as a new node, with an empty data folder.",
)
@click.option(
    "--node-id",
    metavar="N",
    type=click.IntRange(0),
    help="With --join: the id of this node.  [default: the next free id]",
)
@click.option(
    "--token",
    metavar="TOKEN",
    help="With --join: the token that penstock cluster invite printed; it admits one node, once.",
)
@click.option(
    "--ready-fd",
    metavar="N",
    type=int,
    help="Write HOST:PORT and a newline to this descriptor when the appliance is ready.",
)
@click.option(
    "--check", is_flag=True,
    help="Check whether it would start with these settings and this folder; change nothing.",
)  # fmt: skip
@private
def command(
    data: str | None,
    listen: tuple[str, ...],
    config: str | None,
    settings: tuple[str, ...],
    cluster_id: str,
    standalone: bool,
    initial: str | None,
    users: tuple[str, ...],
    join: str | None,
    node_id: int | None,
    token: str | None,
    ready_fd: int | None,
    check: bool,
) -> int:
    """Start an appliance in this terminal; Ctrl-C shuts it down cleanly.

    The first start formats an empty data folder. Only this host can connect unless --listen or the
    setting "listeners" names another address; other hosts need a login or a certificate there
    (penstock secure init), or penstock.listeners.without.authentication=allow.

    \b
    penstock up
    penstock up --data /srv/events --listen localhost:9192
    penstock up --config server.properties -o log.retention.hours=24
    penstock up --join a.example.org:9092
    penstock up --config server.properties --cluster-id ID --initial-controllers 1@a:9093:DIR,…
    """
    if ready_fd is not None:
        try:
            os.fstat(ready_fd)
        except OSError:
            raise usage(f"--ready-fd {ready_fd} is not an open descriptor") from None
    cluster_id = _cluster_id(cluster_id)
    if sum((standalone, initial is not None, join is not None)) > 1:
        raise usage("--standalone, --initial-controllers and --join exclude each other")
    again = _words(data, listen if join is None else (), config, settings)
    if join is not None:
        if check:
            raise usage("--check asks no cluster", "leave out --join: --check is about a folder")
        cluster_id = _join(join, node_id, data, config, cluster_id, listen, settings, token)
        listen = ()
    elif node_id is not None:
        raise usage("--node-id goes with --join", f"else: -o node.id={node_id}")
    elif token is not None:
        raise usage("--token goes with --join")
    if config is None and os.path.exists(_kept(data)):
        config = _kept(data)
    read = partial(_read, os.path.abspath(config) if config else None, listen, given(settings))
    broker = _load(read)
    if check:
        return _check(_folders(data, broker), broker, cluster_id)
    folder, *others = _made(_folders(data, broker))
    _warn_of_unknown_names(broker)
    first = _first_voters(broker, initial, standalone=standalone)
    return serve(broker, folder, ready_fd, others, cluster_id, read, first, again, users)


def serve(
    broker: BrokerConfig,
    folder: str,
    ready_fd: int | None,
    others: Sequence[str] = (),
    cluster_id: str = "",
    read: Read | None = None,
    first: "FirstVoters | None" = None,
    again: Sequence[str] = (),
    users: Sequence[str] = (),
) -> int:
    """Be the appliance in `folder`, and in the others for more partitions, until it ends: the exit
    code. read: the settings once more, for a reload. first: who votes first, where it says so.
    again: the command that starts it so once more. users: of --add-scram. Raises Failure."""
    preload()
    tied.unwatch_parent()
    from appliance.supervisor import CannotStart, Successor, run

    log = Log("supervisor", json=broker.text("penstock.log.format") == "json")
    said: list[str] = []

    def ready(addresses: Sequence[str], _: float) -> None:
        took = round((time.monotonic() - BEGAN_S) * 1000)
        _narrate(log, said, took, addresses, broker)
        if ready_fd is not None:
            with suppress(OSError):  # who waited for it may have gone
                os.write(ready_fd, f"{addresses[0]}\n".encode())
            os.close(ready_fd)

    try:
        return run(
            broker,
            data_dir=folder,
            other_dirs=others,
            on_ready=ready,
            read=read,
            successor=Successor(tuple(again), (*again, "--check"), _now) if again else None,
            prepare=lambda: said.extend(_open([folder, *others], broker, cluster_id, first, users)),
            log=log,
        )
    except ConfigError as problem:
        raise usage(str(problem)) from None
    except (CannotStart, StorageFailed) as problem:
        raise Failure(str(problem), name="CANNOT_START") from None
    except OSError as problem:
        raise _unusable(folder, problem) from None


def _words(
    data: str | None, listen: Sequence[str], config: str | None, settings: Sequence[str]
) -> list[str]:
    """The command that starts this appliance once more, without what only a first start needs."""
    named = {"--data": [data], "--listen": listen, "--config": [config], "-o": settings}
    given = [(name, one) for name, values in named.items() for one in values if one is not None]
    return [*anew(), "up", *(word for pair in given for word in pair)]


def _now() -> dict[str, str]:
    """For who succeeds in this process."""
    return {SUCCEEDS: repr(time.monotonic())}


def _check(folders: Sequence[str], broker: BrokerConfig, cluster_id: str) -> int:
    """Say that it would start. Raises Failure, as a start would."""
    preload()
    from console.model.local.starting import check

    state = check(folders, broker, cluster_id)
    print(f"Penstock {current()} would start; data {', '.join(folders)}{state}")
    return OK


def _cluster_id(text: str) -> str:
    """As it goes into the folder. Raises Failure."""
    from appliance.wire.uuids import format_uuid, parse_uuid

    try:
        return format_uuid(parse_uuid(text)) if text else ""
    except ValueError as problem:
        raise usage(f"--cluster-id {text}: {problem}") from None


def _first_voters(
    broker: BrokerConfig, initial: str | None, *, standalone: bool
) -> "FirstVoters | None":
    """As the command line says. Raises Failure."""
    from appliance.control.quorum import first_voters

    if initial is None and not standalone:
        return None
    try:
        first = first_voters.FirstVoters()
        if initial is not None:
            first = first_voters.parse(initial, broker)
        first_voters.check(first, broker)
    except ConfigError as problem:
        raise usage(str(problem)) from None
    return first


def _open(
    folders: Sequence[str],
    broker: BrokerConfig,
    cluster_id: str,
    first: "FirstVoters | None",
    users: Sequence[str] = (),
) -> tuple[str, str]:
    """Format the folders if they are empty, refuse one that is not ours to serve, before anything
    else is started: (what is to be said about them, the cluster id). Raises ConfigError,
    StorageFailed."""
    from appliance.base.os_disk import OsDisk
    from appliance.control.folder import bootstrap_users
    from appliance.control.folder.format import (
        check_metadata_is_there,
        format_log_dirs,
        open_or_format,
    )
    from appliance.control.quorum import first_voters

    disk = OsDisk()
    folder = folders[0]
    now_ms = time.time_ns() // 1_000_000
    made = bootstrap_users.records(users, os.urandom) if users else ()
    told = disk, folder, broker, os.urandom, now_ms, cluster_id, first, made
    identity, fresh = open_or_format(*told)
    if users and not fresh:
        print(f"{folder} is formatted: {bootstrap_users.FLAG} is left out", file=sys.stderr)
    late = None if fresh else first
    if late is not None and not first_voters.write_late(
        disk, folder, late, broker, identity, now_ms
    ):
        left_out = f"{folder} has metadata: {late.word} is left out, its log says who votes"
        print(left_out, file=sys.stderr)
    check_metadata_is_there(disk, folder)
    format_log_dirs(disk, folders, identity, os.urandom)
    return ", ".join([f"{folder}{' (new)' if fresh else ''}", *folders[1:]]), identity.cluster_id


def _join(
    servers: str,
    node_id: int | None,
    data: str | None,
    config: str | None,
    cluster_id: str,
    listen: tuple[str, ...],
    settings: tuple[str, ...],
    token: str | None,
) -> str:
    """Leave the settings of a new node of their cluster in the data folder: the cluster's id."""
    from console.model.asking.link import Link
    from console.model.cluster import joining
    from penstock.reach import SPEAKS_TLS, barred

    chosen = given(settings)
    if config is not None or "log.dirs" in chosen or "log.dir" in chosen:
        raise usage(
            "--join writes the settings into the folder of --data",
            "other settings go with it as -o KEY=VALUE; with a file of your own name the"
            " controllers there: controller.quorum.bootstrap.servers",
        )
    link = Link(servers, {}, _JOIN_S)
    if (trouble := barred(servers)) is not None and SPEAKS_TLS in trouble.options:
        raise usage(trouble.what, "nodes speak to each other without TLS: name a listener for that")
    return joining.prepare(link, _kept(data), node_id, cluster_id, listen, chosen, token)


def _kept(data: str | None) -> str:
    """Where the settings of a folder are that joined."""
    return os.path.join(os.path.abspath(data or DEFAULT_DATA), KEPT)


def given(settings: tuple[str, ...]) -> dict[str, str]:
    """The settings of the flags -o. Raises Failure."""
    found: dict[str, str] = {}
    for item in settings:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise usage(f"-o {item!r} is not KEY=VALUE", "for example -o num.partitions=3")
        found[key.strip()] = value.strip()
    return found


def _load(read: Read) -> BrokerConfig:
    """For a start: what is wrong ends it, warnings are said. Raises Failure."""
    try:
        broker, warnings = read()
    except ConfigError as problem:
        raise usage(str(problem)) from None
    for warning in (*jvm_remarks(), *warnings):
        print(f"warning: {warning}", file=sys.stderr)
    return broker


def _read(
    config: str | None, listen: tuple[str, ...], settings: Mapping[str, str]
) -> tuple[BrokerConfig, list[str]]:
    """The settings of a file, and those of the command line, which win; warnings. Raises
    ConfigError; Failure for a wrong --listen."""
    overrides = {**settings}
    name = config or "the file"
    try:
        text = None if config is None else Path(config).read_text()
    except OSError as problem:
        raise ConfigError(f"{config} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{config} is not a text file in UTF-8") from None
    environment = of_jaas_file(text, overrides, file_name=name)
    # Those of the file are not opened where --listen names others.
    allowed = {open_listeners.SETTING: open_listeners.ALLOW} if listen else {}
    broker, warnings = load(text, overrides | allowed, file_name=name, environment=environment)
    if listen or "listeners" not in broker.set_names():
        overrides |= listeners(listen or (f"localhost:{DEFAULT_PORT}",), broker)
        broker, warnings = load(text, overrides, file_name=name, environment=environment)
    return broker.telling(_host_name), warnings


@cache
def _host_name() -> str:
    """Asked for once: the answer may take long, and an appliance that runs has no time for it."""
    return socket.getfqdn()


def _warn_of_unknown_names(broker: BrokerConfig) -> None:
    """Clients are sent to what advertised.listeners names. It is looked up by another process,
    because the answer may take long and threads must not be there when children are forked."""
    told = [parse_endpoint("advertised.listeners", t) for t in broker.list("advertised.listeners")]
    for host in sorted({one.host for one in told} - {"", *LOOPBACK}):
        import subprocess

        look_up = "import socket, sys; socket.getaddrinfo(sys.argv[1], None)"
        try:
            found = subprocess.run(
                [sys.executable, "-I", "-S", "-c", look_up, host],
                stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                timeout=_LOOK_UP_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            why = f"could not be resolved within {_LOOK_UP_S:g} s"
        else:
            why = "cannot be resolved by this host" if found.returncode else ""
        if why:
            print(
                f"warning: advertised.listeners: {host} {why}; clients connect there",
                file=sys.stderr,
            )


def _folders(data: str | None, broker: BrokerConfig) -> list[str]:
    """The log folders: --data, else log.dirs, else log.dir, else ours. The first one holds the
    metadata."""
    dirs = [os.path.abspath(path) for path in broker.list("log.dirs")]
    chosen = [os.path.abspath(str(data or broker.get_value("log.dir") or DEFAULT_DATA))]
    if len(dirs) > 1 and data is not None and dirs[0] != chosen[0]:
        raise usage(
            f"--data {data} is not the first of log.dirs ({dirs[0]})",
            "leave --data out, or name that folder first: it holds the metadata",
        )
    if dirs and (data is None or len(dirs) > 1):
        chosen = dirs
    if len(set(chosen)) < len(chosen):
        raise usage("log.dirs names a folder twice")
    return chosen


def _made(chosen: list[str]) -> list[str]:
    """The same folders, there if that can be; the first one must be."""
    for folder in chosen:
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as problem:
            if folder == chosen[0]:
                raise _unusable(folder, problem) from None
    return chosen


def _unusable(folder: str, problem: OSError) -> Failure:
    return Failure(
        f"{problem.filename or folder}: {problem.strerror or problem}",
        f"{folder} must be a folder that this user may write to; choose another with --data",
        code=FAILED,
        name="CANNOT_START",
    )


def _narrate(
    log: Log, said: list[str], took_ms: int, addresses: Sequence[str], broker: BrokerConfig
) -> None:
    """Say where it is; what to try only to somebody who sits there. In the journal as an event."""
    data, cluster_id = said
    address = addresses[0]
    where = ", ".join(addresses)
    (log.note_event if log.for_people else log.event)(
        INFO, "ready", took_ms=took_ms, listens_on=where, data=data, cluster_id=cluster_id
    )
    if not log.for_people:
        return
    serves_clients, protocols = broker.is_broker, broker.protocols()
    b = "" if address == f"localhost:{DEFAULT_PORT}" else f" -b {address}"
    if "PLAINTEXT" not in [protocols.get(one.name) for one in broker.endpoints()]:
        b += " -X security.protocol=SSL -X ssl.ca.location=FILE"
    kind = "" if serves_clients else ", as controller"
    lines = [
        f"Penstock {current()} is ready in {took_ms} ms{kind}",
        f"  listens on  {where}",
        f"  data        {data}",
        f"  cluster id  {cluster_id}",
    ]
    if os.isatty(2) and serves_clients:
        lines += [
            "Try in another terminal:",
            typed(f"  penstock topic create hello{b}"),
            typed(f"  echo world | penstock produce hello{b}"),
            typed(f"  penstock consume hello -o start -e{b}"),
            "Ctrl-C ends it in order.",
        ]
        if not compiled():
            lines.append("Its hot modules are interpreted; penstock doctor says what that costs.")
    with suppress(OSError):
        os.write(2, ("\n".join(lines) + "\n").encode())
