"""Addresses: who listens where clients are sent, and whether they get there."""

from collections.abc import Iterator
from typing import Final

from console.model.doctor.facts import Advertised, Facts, Listening
from console.model.doctor.finding import CRITICAL, WARNING, Finding

_LOOPBACK: Final = ("localhost", "127.", "::1")
DEFAULT_PORT: Final = 9092


def judge(facts: Facts) -> Iterator[Finding]:
    """Of ports of this host and of what clients are told."""
    if not facts.runs:
        taken = [one for one in facts.listening if one.port == DEFAULT_PORT]
        if taken:
            yield _taken(taken[0], "the appliance cannot listen there", WARNING)
    for one in facts.advertised:
        if one.problem:
            yield _lost(one)
        elif one.own:
            yield from _where(one, facts.listening)


def _lost(one: Advertised) -> Finding:
    return Finding(
        level=CRITICAL if one.own else WARNING, check="advertised", subject=f"node {one.node}",
        found=one.problem, wanted=f"a connection to {one.host}:{one.port}",
        why="clients are sent there after their first question",
        remedy="set advertised.listeners to an address that clients reach, and start it again",
    )  # fmt: skip


def _where(one: Advertised, sockets: tuple[Listening, ...]) -> Iterator[Finding]:
    at_port = [each for each in sockets if each.port == one.port]
    ours = [each for each in at_port if each.ours]
    if not ours:
        return
    for other in at_port:
        if not other.ours and any(_meet(other, each) for each in ours):
            yield _taken(other, "some clients reach it instead of the appliance", CRITICAL)
    if one.host.startswith(_LOOPBACK) and any(each.any_host for each in ours):
        yield Finding(
            level=WARNING, check="advertised", subject=f"node {one.node}",
            found=f"it listens at every address and says {one.host}:{one.port}",
            wanted="an address that other hosts know",
            why="clients of other hosts are sent to themselves",
            remedy="set advertised.listeners, or listen on localhost alone",
        )  # fmt: skip


def _meet(one: Listening, other: Listening) -> bool:
    """Whether one name may lead to both: localhost is 127.0.0.1 and ::1."""
    local = one.address.startswith(_LOOPBACK) and other.address.startswith(_LOOPBACK)
    return local or one.any_host or other.any_host


def _taken(one: Listening, why: str, level: str) -> Finding:
    where = f"[{one.address}]" if ":" in one.address else one.address
    return Finding(
        level=level, check="port", subject=f"{where}:{one.port}", found="another program listens",
        wanted="nobody else", why=why,
        remedy=f"ss -ltnp sport = :{one.port} names it; stop it, or penstock up --listen elsewhere",
    )  # fmt: skip
