"""`penstock debug bundle`."""

import os
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Final

import click

from appliance.metadata.image import MetadataImage
from appliance.observer.door import NotThere, Observer
from appliance.shell.version import current
from console.commands.up import command as up
from console.flags.connection import connected
from console.flags.folder import data_option, folder
from console.flags.output import long_formatted
from console.model.asking.failure import OK, Failure, usage
from console.model.asking.link import Link
from console.model.bundle import folder as files
from console.model.bundle import host, logs, running
from console.model.bundle.archive import Bundle
from console.model.bundle.secrets import Secrets
from console.model.cluster.nodes import read_nodes
from console.model.doctor import gather, judge
from console.model.doctor.host import Host
from console.show.output import emit, print_note, rows_of

_PATIENCE_S: Final = 5.0
_NOT_RUNNING: Final = "no appliance runs there"


@click.command("bundle")
@click.option(
    "-o", "--file", "file", metavar="FILE",
    help="The archive.  [default: ./penstock-bundle-DATE-TIME.tar.gz]",
)  # fmt: skip
@data_option
@click.option(
    "--config", metavar="FILE",
    help="Its settings file.  [default: that of the running appliance]",
)  # fmt: skip
@click.option(
    "--log", "log_files", metavar="FILE", multiple=True,
    help="Include the last 2 MB of this log file; may be repeated.",
)  # fmt: skip
@long_formatted
@connected
def command(
    link: Link,
    file: str | None,
    data: str | None,
    config: str | None,
    log_files: tuple[str, ...],
    output: str,
) -> int:
    """Collect an archive for a bug report: version, host, settings, metrics, partitions, processes,
    latest events and log lines, the quorum, file sizes.

    It contains no records and no secrets; its manifest.json lists what is included and what is not.
    The appliance need not run; unavailable parts are left out, and the manifest says why.

    \b
    penstock debug bundle
    penstock debug bundle --data /srv/events -o help.tar.gz --log /var/log/penstock.log
    tar xzOf help.tar.gz penstock-bundle/manifest.json
    """
    data = folder(data, click.get_current_context().params.get("bootstrap"), must=False)
    if not os.path.isdir(data):
        raise usage(f"{data} is no folder", "--data names the data folder of an appliance")
    at_s = int(time.time())
    file = file or time.strftime("penstock-bundle-%Y%m%d-%H%M%S.tar.gz", time.localtime(at_s))
    secrets = Secrets()
    secrets.learn_named(link.properties)
    made = Bundle(secrets)
    _gather(made, link, os.path.abspath(data), config, log_files)
    archive = made.written(
        {"made_s": at_s, "version": current(), "data": os.path.abspath(data)}, at_s
    )
    _write(file, archive)
    emit(rows_of(made.parts), output, name="part")
    print_note(f"{file} ({len(archive)} bytes) is written; its manifest.json lists the contents")
    return OK


def _write(file: str, archive: bytes) -> None:
    """For whoever gathered it alone. Raises Failure, OSError."""
    try:
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise Failure(f"{file} is there already", "-o names another file") from None
    with open(fd, "wb") as out:
        out.write(archive)


def _gather(
    made: Bundle, link: Link, data: str, config: str | None, log_files: tuple[str, ...]
) -> None:
    observer: Observer | None = None
    why = _NOT_RUNNING
    try:
        observer = Observer(data)
    except (NotThere, OSError) as problem:
        why = str(problem)
    pid = 0 if observer is None else observer.head.pid
    secrets = made.secrets
    made.add("version.json", "version and build", lambda: host.versions(current()))
    made.add("host.json", "kernel, memory, file system, limits", lambda: host.facts(data, pid))
    made.add("doctor.jsonl", "what penstock doctor finds", lambda: _doctor(data))
    how = running.Started()

    def settings() -> object:
        nonlocal how
        how = running.started(pid, config, _parsed)
        return running.settings(how, secrets)

    made.add("settings.json", "what was set at its start, secrets blanked", settings)
    folders = [data]
    folders += [one for one in how.config.list("log.dirs") if os.path.isdir(one) and one != data]
    image = _metadata(made, observer, data, folders)
    made.add("quorum.json", "the metadata's quorum", lambda: files.quorum(data, image))
    _tables(made, observer, why, image, (data, folders), how)
    made.add("files.jsonl", "sizes of the files", lambda: files.sizes(folders))
    made.add("checkpoints.json", "recovery points and such", lambda: files.checkpoints(folders))
    _cluster(made, link)
    made.add("logs/journal.txt", "the journal's last lines", lambda: logs.journal(pid))
    for number, path in enumerate(log_files):
        name = f"logs/{number}.txt"
        made.add(name, f"the end of {path}", lambda path=path: logs.tail(path))  # type: ignore[misc]


def _doctor(data: str) -> object:
    return [asdict(one) for one in judge.findings(gather.of_folder(Host(), data))]


def _parsed(words: list[str]) -> dict[str, object]:
    return up.make_context("up", words, resilient_parsing=True).params


def _metadata(
    made: Bundle, observer: Observer | None, data: str, folders: list[str]
) -> MetadataImage | None:
    """As it is committed, or as far as it can be read."""
    found: list[MetadataImage] = []

    def settings() -> object:
        if observer is not None:
            found.append(running.image_of(observer, data))
        else:
            found.append(files.image_of(data, folders[1:]))
        return files.dynamic_settings(found[0], made.secrets)

    made.add("dynamic-settings.jsonl", "settings changed while it ran", settings)
    if not found:
        return None
    made.add("quotas.jsonl", "limits of clients", lambda: files.quotas(found[0]))
    return found[0]


def _tables(
    made: Bundle,
    observer: Observer | None,
    why: str,
    image: MetadataImage | None,
    where: tuple[str, list[str]],
    how: running.Started,
) -> None:
    """Adds the tables that only a running appliance has."""
    data, folders = where
    table: dict[str, tuple[str, Callable[[Observer], object]]] = {
        "processes.json": ("processes, restarts", running.processes),
        "partitions.jsonl": ("the partition table", lambda one: running.partitions(one, image)),
        "metrics.prom": ("counters", lambda one: running.metrics(one, folders, how.config)),
        "events.jsonl": ("its last events", lambda _: running.events(data)),
    }
    for name, (what, make) in table.items():
        if observer is None:
            made.without(name, what, why)
        else:
            made.add(name, what, lambda make=make: make(observer))  # type: ignore[misc]


def _cluster(made: Bundle, link: Link) -> None:
    """Adds the nodes as the Link's broker reports them."""
    link.timeout_s = min(link.timeout_s, _PATIENCE_S)
    made.add(
        "cluster.json", f"the nodes, as {link.bootstrap} told", lambda: asdict(read_nodes(link))
    )
