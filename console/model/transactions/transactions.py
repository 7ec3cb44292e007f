"""Transactions as their coordinators know them: which ids there are, and what each of them does.

Every broker is asked for those that it coordinates, over a connection of our own: confluent-kafka
has no such request. Nobody is asked who coordinates an id, because that makes a broker create the
topic.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from appliance.base import errors
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check
from console.model.cluster import cluster
from console.model.groups.groups import Place
from console.model.topics.topics import compiled

ONGOING: Final = "ongoing"
ENDING: Final = ("prepare-commit", "prepare-abort")
"""It is decided how it ends, and its markers are on their way."""
OPEN: Final = (ONGOING, *ENDING)
_DESCRIBE: Final = (65, 0)
_LIST: Final = (66, 0)


@dataclass(slots=True, frozen=True)
class Listed:
    """A transactional id as the list has it. state: as Kafka's, `prepare-commit`. coordinator: a
    broker's id; server: its HOST:PORT."""

    name: str
    state: str
    producer_id: int
    coordinator: int
    server: str

    @property
    def is_open(self) -> bool:
        """True if its open transaction holds records back."""
        return self.state in OPEN


@dataclass(slots=True, frozen=True)
class Transaction:
    """A transactional id, and its transaction if one is open. started_ms: since 1970, None without
    one. places: the partitions that belong to it."""

    name: str
    state: str
    producer_id: int
    epoch: int
    timeout_ms: int
    started_ms: int | None
    coordinator: int
    server: str
    places: tuple[Place, ...]

    @property
    def is_open(self) -> bool:
        """True if its open transaction holds records back."""
        return self.state in OPEN


def listed(link: Link, names: tuple[str, ...] = (), regex: str | None = None) -> list[Listed]:
    """The ids that are named or found by the expression, by name. Raises Failure."""
    pattern = compiled(regex)
    found = []
    for broker, server in cluster.read_cluster(link).brokers.items():
        answer = ask_server(link, *_LIST, {"state_filters": [], "producer_id_filters": []}, server)
        check(int(answer.error_code), None, f"transactions of broker {broker}")
        for one in answer.transaction_states:
            name = str(one.transactional_id)
            if (not names or name in names) and pattern.search(name):
                state = _spelled(one.transaction_state)
                found.append(Listed(name, state, int(one.producer_id), broker, server))
    return sorted(found, key=lambda one: one.name)


def described(link: Link, names: list[str]) -> list[Transaction]:
    """In the order of the names. Raises Failure (TRANSACTIONAL_ID_NOT_FOUND) for an id that is not
    there."""
    left = dict.fromkeys(names)
    found: dict[str, Transaction] = {}
    for broker, server in cluster.read_cluster(link).brokers.items():
        known, codes = _described(link, [one for one in left if one not in found], broker, server)
        found |= {one.name: one for one in known}
        for name, code in codes.items():
            if code not in (errors.NOT_COORDINATOR, errors.TRANSACTIONAL_ID_NOT_FOUND):
                check(code, None, name)
    for name in left:
        if name not in found:
            raise missing(name)
    return [found[name] for name in left]


def still_there(link: Link, ids: list[Listed]) -> list[Transaction]:
    """Those that are there of ids that were just listed. Raises Failure."""
    found = []
    for broker, server in {one.coordinator: one.server for one in ids}.items():
        names = [one.name for one in ids if one.coordinator == broker]
        known, codes = _described(link, names, broker, server)
        found += known
        for name, code in codes.items():
            if code != errors.TRANSACTIONAL_ID_NOT_FOUND:
                check(code, None, name)
    return found


def missing(name: str) -> Failure:
    """There is no such id."""
    return Failure(
        f"{name}: there is no such transactional id",
        "penstock txn list shows the existing ones",
        name="TRANSACTIONAL_ID_NOT_FOUND",
        kafka_code=errors.TRANSACTIONAL_ID_NOT_FOUND,
    )


def _described(
    link: Link, names: list[str], broker: int, server: str
) -> tuple[list[Transaction], dict[str, int]]:
    """Those that this broker coordinates, and the error code of each other one."""
    if not names:
        return [], {}
    known, codes = [], {}
    for one in ask_server(
        link, *_DESCRIBE, {"transactional_ids": names}, server
    ).transaction_states:
        if int(one.error_code) == errors.NONE:
            known.append(_transaction(one, broker, server))
        else:
            codes[str(one.transactional_id)] = int(one.error_code)
    return known, codes


def _transaction(one: Any, broker: int, server: str) -> Transaction:
    began = one.transaction_start_time
    return Transaction(
        str(one.transactional_id),
        _spelled(one.transaction_state),
        int(one.producer_id),
        int(one.producer_epoch),
        round(one.transaction_timeout.total_seconds() * 1000),
        None if began is None else round(began.timestamp() * 1000),
        broker,
        server,
        tuple(sorted((str(of.topic), int(n)) for of in one.topics for n in of.partitions)),
    )


def _spelled(state: str) -> str:
    """PrepareCommit → prepare-commit."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", state).lower()
