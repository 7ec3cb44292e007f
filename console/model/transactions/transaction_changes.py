"""Ending a transaction for somebody else: by its coordinator, or where none knows it any more by a
marker in its partition."""

import time
from typing import Final

from appliance.base import errors
from console.model.asking.change import Change, Fact, Proposal, Tier
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check
from console.model.groups.groups import Place
from console.model.transactions import producers as of_partitions
from console.model.transactions import transactions
from console.model.transactions.open_transactions import Open, Watch, confirmed
from console.model.transactions.producers import Producer
from console.model.transactions.transactions import Transaction

_INIT: Final = (22, 4)
_AGAIN_S: Final = 0.1
_COLUMNS: Final = ("topic", "partition", "first record", "held back")
_LOST: Final = "What it wrote is never read with read_committed. It cannot be brought back."
_FENCED: Final = "Its producer is fenced: its next step fails, and it must start over."
_BUSY: Final = (
    errors.CONCURRENT_TRANSACTIONS,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
)


def abort(name: str) -> Proposal:
    """The transaction that this id has open is aborted, and its producer fenced."""

    def plan(link: Link) -> Change:
        (known,) = transactions.described(link, [name])
        _refuse_closed(known)
        held = [of for one in Watch(link, keeps=False).read_transactions(time.time(), only=[name])
                for of in one.held]  # fmt: skip

        def apply(writing: Link) -> str:
            (now,) = transactions.described(writing, [name])
            if not _is_same(now, known):
                return f"it has ended meanwhile: {now.state}"
            _fence(writing, now)
            return "aborted, its producer is fenced"

        def find_done(reading: Link) -> str | None:
            (now,) = transactions.described(reading, [name])
            return None if _is_same(now, known) else f"it is not open any more: {now.state}"

        return Change(
            "Abort", ("txn", "abort", name), apply, find_done,
            says=(_LOST, _FENCED),
            facts=(
                Fact("held back", sum(of.records for of in held), "records"),
                Fact("open for", _open_s(known), "s"),
                Fact("timeout", known.timeout_ms // 1000, "s"),
                Fact("producer", f"{known.producer_id}, epoch {known.epoch}"),
            ),
            columns=_COLUMNS,
            rows=tuple((of.topic, of.partition, of.start, of.records) for of in held),
        )  # fmt: skip

    return Proposal(f"Abort transaction of {name}", Tier.NAME, plan, names=(name,))


def abort_hanging(topic: str, partition: int, start: int) -> Proposal:
    """Aborts a hanging transaction of one partition that begins at this offset."""
    place = (topic, partition)

    def plan(link: Link) -> Change:
        found = _starting(link, place, start)
        if found is None:
            raise Failure(
                f"{topic} {partition} has no open transaction that begins at {start}",
                "penstock txn hanging shows hanging ones", name="NOTHING_TO_DO",
            )  # fmt: skip
        _refuse_known(link, place, found)

        def apply(writing: Link) -> str:
            now = _starting(writing, place, start)
            if now is None:
                return "it has ended meanwhile"
            _refuse_known(writing, place, now)
            of_partitions.abort(writing, place, now)
            return "aborted by a marker"

        def find_done(reading: Link) -> str | None:
            left = _starting(reading, place, start)
            return "it is not open any more" if left is None else None

        words = ("txn", "abort", "-t", f"{topic}:{partition}", "--start", str(start))
        return Change(
            "Abort", words, apply, find_done, says=(_LOST,),
            facts=(
                Fact("producer", f"{found.producer_id}, epoch {found.epoch}"),
                Fact("first record", start),
            ),
        )  # fmt: skip

    name = f"{topic}:{partition}"
    return Proposal(f"Abort what hangs in {name}", Tier.NAME, plan, names=(name,))


def proposal(one: Open) -> Proposal:
    """How this one is ended."""
    if not one.hangs:
        return abort(one.name)
    (held,) = one.held
    assert held.start is not None, "what hangs was found by its first record"
    return abort_hanging(held.topic, held.partition, held.start)


def _refuse_closed(one: Transaction) -> None:
    if one.state == transactions.ONGOING:
        return
    if one.is_open:
        raise Failure(
            f"{one.name} is ending already ({one.state}): its markers are on their way",
            "look again; what hinders them is in the log of the broker", name="NOTHING_TO_DO",
        )  # fmt: skip
    raise Failure(
        f"{one.name} has no open transaction: it is {one.state}",
        "penstock txn list shows those that are open", name="NOTHING_TO_DO",
    )  # fmt: skip


def _is_same(now: Transaction, planned: Transaction) -> bool:
    """True if it still is the transaction of the plan. Before transaction.version 2 the next one of
    the same producer has its epoch, too.
    """
    marks = [(one.producer_id, one.epoch, one.started_ms) for one in (now, planned)]
    return now.state == transactions.ONGOING and marks[0] == marks[1]


def _fence(link: Link, one: Transaction) -> None:
    """Take its id over, which aborts what is open (KIP-360). The timeout stays what it was."""
    wanted = {
        "transactional_id": one.name,
        "transaction_timeout": one.timeout_ms,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    until = time.monotonic() + link.timeout_s
    while True:
        code = int(ask_server(link, *_INIT, wanted, one.server).error_code)
        if code not in _BUSY or time.monotonic() >= until:
            check(code, None, one.name)
            return
        time.sleep(_AGAIN_S)


def _starting(link: Link, place: Place, start: int) -> Producer | None:
    found = of_partitions.producers(link, [place]).get(place, [])
    return next((one for one in found if one.start == start), None)


def _refuse_known(link: Link, place: Place, one: Producer) -> None:
    if not confirmed(link, {place: [one]}):
        raise Failure(
            f"what is open at {place[0]} {place[1]} belongs to a transaction that is known",
            "abort that: penstock txn list -o wide", name="INVALID_TXN_STATE",
        )  # fmt: skip


def _open_s(one: Transaction) -> int | None:
    return None if one.started_ms is None else round(time.time() - one.started_ms / 1000)
