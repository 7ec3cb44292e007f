"""Addresses: who listens where clients are sent, and whether they get there."""

from collections.abc import Iterator
from typing import Final

from appliance.ring.security_table import LoginCount
from console.model.access.certificates import AT_ONCE_S, Shown, describe_problem
from console.model.doctor.facts import Advertised, Facts, Listening, RefusedLogin
from console.model.doctor.finding import CRITICAL, WARNING, Finding

_LOOPBACK: Final = ("localhost", "127.", "::1")
DEFAULT_PORT: Final = 9092
_MANY: Final = 100
"""Failed logins since the start that are worth a look."""


def judge(facts: Facts) -> Iterator[Finding]:
    """Findings about ports of this host and advertised addresses."""
    if not facts.runs:
        taken = [one for one in facts.listening if one.port == DEFAULT_PORT]
        if taken:
            yield _taken(taken[0], "the appliance cannot listen there", WARNING)
    for one in facts.advertised:
        if one.problem:
            yield _lost(one)
            continue
        if one.own:
            yield from _where(one, facts.listening)
        if one.shown is not None:
            yield from _certificate(one, one.shown)
    yield from map(_refused_login, facts.refused_logins)
    yield from (_logins(one) for one in facts.logins if one.failed >= max(_MANY, one.succeeded))


def _refused_login(one: RefusedLogin) -> Finding:
    return Finding(
        level=CRITICAL, check="node-login", subject=one.address,
        found=f"this node's login there is refused: {one.cause}",
        wanted="the user and password that the other node knows",
        why="nodes that do not reach one another elect no leader and replicate nothing",
        remedy=f"correct username and password in listener.name.{one.listener.lower()}"
        ".MECHANISM.sasl.jaas.config, or the user at the other nodes; penstock config reload",
    )  # fmt: skip


def _logins(one: LoginCount) -> Finding:
    return Finding(
        level=WARNING, check="logins", subject=one.listener,
        found=f"{one.failed:,} logins by {one.mechanism} failed, {one.succeeded:,} succeeded",
        wanted="fewer failures than logins",
        why="a client has a wrong password or certificate, or passwords are being guessed",
        remedy="look who it is, from where and why: penstock audit --event login-failed",
    )  # fmt: skip


def _lost(one: Advertised) -> Finding:
    return Finding(
        level=CRITICAL if one.own else WARNING, check="advertised", subject=f"node {one.node}",
        found=one.problem, wanted=f"a connection to {one.host}:{one.port}",
        why="clients are sent there after their first question",
        remedy="set advertised.listeners to an address that clients reach, and start it again",
    )  # fmt: skip


def _certificate(one: Advertised, shown: Shown) -> Iterator[Finding]:
    found = shown.certificate
    if found is None:
        yield _shows(
            one, CRITICAL if one.own else WARNING, f"no certificate is shown: {shown.problem}",
            "a certificate", "no client gets beyond its handshake",
        )  # fmt: skip
        return
    if wrong := describe_problem(found, one.looked_s):
        ends = found.ends_s - one.looked_s < AT_ONCE_S or one.looked_s < found.begins_s
        yield _shows(
            one, CRITICAL if ends else WARNING, f"its certificate ({found.subject}) {wrong}",
            "one that is good for two weeks or more", "clients refuse it outside of its time",
        )  # fmt: skip
    if not found.covers(one.host):
        names = ", ".join(found.names) or "nothing"
        yield Finding(
            level=WARNING, check="certificate", subject=f"{one.host}:{one.port}",
            found=f"its certificate ({found.subject}) is for {names}",
            wanted=f"{one.host} among its subject alternative names",
            why="clients are sent there and refuse a certificate for another name",
            remedy="set advertised.listeners to a name that it covers, or renew it with that name",
        )  # fmt: skip


def _shows(one: Advertised, level: str, found: str, wanted: str, why: str) -> Finding:
    return Finding(
        level=level, check="certificate", subject=f"{one.host}:{one.port}", found=found,
        wanted=wanted, why=why,
        remedy="renew it: a file that changes is read again without a restart; penstock event list"
        " --level warning says why one is not used",
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
    """True if one name may lead to both: localhost is 127.0.0.1 and ::1."""
    local = one.address.startswith(_LOOPBACK) and other.address.startswith(_LOOPBACK)
    return local or one.any_host or other.any_host


def _taken(one: Listening, why: str, level: str) -> Finding:
    where = f"[{one.address}]" if ":" in one.address else one.address
    return Finding(
        level=level, check="port", subject=f"{where}:{one.port}", found="another program listens",
        wanted="nobody else", why=why,
        remedy=f"ss -ltnp sport = :{one.port} names it; stop it, or penstock up --listen elsewhere",
    )  # fmt: skip
