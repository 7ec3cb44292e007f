"""The command line that shows the same as a view: to read, to copy, to learn from."""

import shlex
from typing import Final

from console.called import typed
from console.model.access.access import question
from console.model.asking.failure import Failure
from console.model.asking.profiles import where
from console.model.quotas.quota_rules import client_of, flags
from console.screens.places import (
    ACLS,
    AUDIT,
    CAN,
    CERTIFICATES,
    CLIENTS,
    GROUP,
    GROUPS,
    HEAT,
    JOB,
    JOBS,
    LOG,
    NODES,
    OVERVIEW,
    PREVIEW,
    QUOTA,
    QUOTAS,
    RECORD,
    RECORDS,
    TAIL,
    TOPIC,
    TOPICS,
    TOPOLOGY,
    TRASH,
    TXNS,
    USERS,
    Place,
    record_of,
)

_LINES: Final = {
    TOPICS: "penstock topic list -o wide",
    TOPIC: "penstock topic describe {} -a",
    GROUPS: "penstock group list -o wide",
    GROUP: "penstock group describe {}",
    QUOTAS: "penstock quota list",
    JOBS: "penstock job status",
    JOB: "penstock job status {}",
    PREVIEW: "penstock job preview {}",
    TXNS: "penstock txn list --open -o wide",
    LOG: "penstock console log",
    NODES: "penstock cluster status",
    CLIENTS: "penstock client list",
    TRASH: "penstock topic list --deleted",
    HEAT: "penstock topic list -o wide",
    TOPOLOGY: "penstock group lag",
    RECORDS: "penstock consume {} -e",
    TAIL: "penstock consume {} -o end",
    USERS: "penstock user list",
    ACLS: "penstock acl list",
    AUDIT: "penstock audit",
    CERTIFICATES: "penstock doctor",
}


_READ: Final = {
    OVERVIEW: "penstock stats -w",
    CLIENTS: "penstock client list -w",
    LOG: "penstock event list -f",
    AUDIT: "penstock audit -f",
    CERTIFICATES: "penstock doctor",
}
"""Of an appliance of this host, without asking it."""


def line(place: Place, bootstrap: str, data_dir: str, jobs: str = "") -> str:
    """The command line for a place. data_dir: of the appliance when it is one of this host, else
    ""; jobs: its jobs folder, likewise.
    """
    if place.kind in _READ and data_dir:
        return reading(_READ[place.kind], data_dir)
    if place.kind == CLIENTS:
        return typed(_LINES[CLIENTS])
    if place.kind == OVERVIEW:
        return asking("penstock topic list -o wide", bootstrap)
    if place.kind == QUOTA:
        who = " ".join(map(quoted, flags(client_of(place.name).entity)))
        return asking(f"penstock quota explain {who}", bootstrap)
    if place.kind == QUOTAS and data_dir:
        return asking("penstock quota usage -w", bootstrap)
    if place.kind == CAN:
        return of_words(("acl", "can", *question(place.name).flags), bootstrap)
    if place.kind == ACLS and place.name:
        return of_words(("acl", "list", place.name), bootstrap)
    if place.kind in (AUDIT, CERTIFICATES):
        return typed(_LINES[place.kind])
    if place.kind == RECORD:
        topic, partition, offset = record_of(place)
        where = f"{partition}:{offset}..{offset + 1}"
        return asking(f"penstock consume {quoted(topic)} -o {where} -J", bootstrap)
    words = _LINES[place.kind].format(quoted(place.name))
    if place.kind in (JOBS, JOB, PREVIEW) and jobs:
        words += f" --jobs {quoted(jobs)}"
        if place.kind != PREVIEW:  # the folder says it all
            return typed(words)
    return asking(words, bootstrap)


def asking(words: str, bootstrap: str) -> str:
    """A command that asks the broker at that address: it is named where the command would ask
    another one."""
    try:
        there = where(None, None).bootstrap
    except Failure:  # of profiles that are wrong: the command would say so
        there = ""
    return typed(words if bootstrap == there else f"{words} -b {quoted(bootstrap)}")


def reading(words: str, data_dir: str) -> str:
    """A command that reads an appliance's folder; "" where that is not known: it would read the one
    of another."""
    return typed(f"{words} --data {quoted(data_dir)}") if data_dir else ""


def of_words(words: tuple[str, ...], bootstrap: str) -> str:
    """A command by its words behind `penstock`, as it is typed."""
    line = " ".join(("penstock", *map(quoted, words)))
    return typed(line) if words[0] == "job" else asking(line, bootstrap)  # --jobs says it all


def quoted(text: str) -> str:
    """For a shell. Control characters are written as escapes: what is pasted must not end the
    terminal's brackets around it."""
    if text.isprintable():
        return shlex.quote(text)
    told = "".join(_escaped(char) for char in text)
    return f"$'{told}'"


def _escaped(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    if char.isprintable():
        return char
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return (
        f"\\x{code:02x}"
        if code < 0x80
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )
