"""Changes of users and ACLs as plans (`asking/change.py`). A password is made here, written into a
file of its owner alone, and shown nowhere."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from appliance.authorization import operations as kafka
from appliance.authorization.standard import ALLOW, ANY_HOST, DENY, PREFIXED, AclRule
from appliance.authorization.words import KINDS, OPERATIONS
from console.model.access import acls, client_files, grants, users
from console.model.asking.change import Change, Fact, Proposal, Tier
from console.model.asking.failure import Failure, usage
from console.model.asking.link import Link

MECHANISM: Final = "SCRAM-SHA-512"
_DISCONNECTS: Final = "its clients are refused from their next request on"
_STAYS: Final = (
    "Connections that have logged in stay, until connections.max.reauth.ms where it is set."
)


def add_user(name: str, rights: Sequence[str], mechanism: str, file: str) -> Proposal:
    """A new user. rights: words like `write:orders`. file: where its client's properties go.
    Raises Failure (USAGE)."""
    if not name or any(one in name for one in "\r\n"):
        raise usage("a user needs a name of one line")
    wanted = grants.read(rights, name)
    return Proposal(
        f"Add user {name}", Tier.PLAN, partial(_adding, name, wanted, mechanism, Path(file))
    )


def _adding(
    name: str, wanted: Sequence[grants.Grant], mechanism: str, file: Path, link: Link
) -> Change:
    if users.user_named(link, name) is not None:
        raise Failure(f"user {name} is there already", "change its password with p",
                      name="DUPLICATE_RESOURCE")  # fmt: skip
    said = () if wanted else ("Where ACLs are in force it may do nothing yet.",)
    words = tuple(word for one in wanted for word in ("--can", str(one)))
    return _with_password(
        link, name, (mechanism,), file, "Add", ("user", "add", name, *words),
        said=said, before=lambda link: grants.allow(link, name, wanted),
        facts=(Fact("may", ", ".join(map(str, wanted)) or "nothing"),),
    )  # fmt: skip


def new_password(user: users.User, file: str) -> Proposal:
    """Another password by the same mechanisms. file: where its client's properties go."""
    kinds = tuple(one for one in user.mechanisms if one in users.NUMBERS) or (MECHANISM,)

    def plan(link: Link) -> Change:
        return _with_password(
            link, user.name, kinds, Path(file), "Change", ("user", "password", user.name),
            said=(f"The old password ends at once for new logins. {_STAYS}",),
        )  # fmt: skip

    return Proposal(f"New password of {user.name}", Tier.PLAN, plan)


def _with_password(
    link: Link,
    name: str,
    kinds: tuple[str, ...],
    file: Path,
    verb: str,
    words: tuple[str, ...],
    *,
    said: tuple[str, ...],
    before: Callable[[Link], None] = lambda link: None,
    facts: tuple[Fact, ...] = (),
) -> Change:
    """A plan that gives a user a generated password. It is sent once: nothing tells later which of
    two passwords holds."""
    if file.exists():
        raise usage(f"{file} is there already", "name another file: it would be overwritten")
    at = client_files.place(link) or client_files.Place("HOST:PORT", "SASL_SSL")

    def apply(link: Link) -> str:
        secret = users.generated_password()
        text = client_files.FORMS["librdkafka"](at, max(kinds), name, secret)
        _write_private(file, text)
        try:
            before(link)
            users.set_password(link, name, secret, kinds)
        except Failure as failure:
            failure.hint = failure.hint or f"{file} has the password that was to be set"
            raise
        return f"{file} has its properties"

    more = (Fact("logs in by", ", ".join(kinds)), Fact("properties", str(file)))
    return Change(verb, words, apply, says=said, facts=(*more, *facts))


def _write_private(file: Path, text: str) -> None:
    """A new file that its owner alone may read. Raises Failure."""
    try:
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as out:
            out.write(text)
    except OSError as why:
        raise Failure(f"{file}: {why.strerror}", "name another file") from None


def remove_user(name: str) -> Proposal:
    """A user goes, with its ACLs."""
    return Proposal(f"Remove user {name}", Tier.NAME, partial(_removing, name), (name,))


def _removing(name: str, link: Link) -> Change:
    user = users.user_named(link, name)
    if user is None:
        raise Failure(f"there is no user {name}", name="RESOURCE_NOT_FOUND")
    gone = rules_of(link, f"User:{name}")

    def apply(link: Link) -> str:
        users.remove(link, user)
        acls.remove(link, gone)
        return f"removed, with {len(gone)} ACLs"

    def was_done(link: Link) -> str | None:
        left = users.user_named(link, name) is not None or rules_of(link, f"User:{name}")
        return None if left else f"removed, with {len(gone)} ACLs"

    return Change(
        "Remove", ("user", "remove", name), apply, was_done,
        says=("It cannot log in any more.", _STAYS),
        facts=(Fact("logs in by", ", ".join(sorted(user.mechanisms))), Fact("ACLs", len(gone))),
        columns=("is removed, too",), rows=tuple((acls.sentence(one),) for one in gone),
    )  # fmt: skip


def rules_of(link: Link, principal: str) -> list[AclRule]:
    """The ACLs that name a principal; none without an authorizer. Raises Failure."""
    try:
        return [one for one in acls.rules(link) if one.principal == principal]
    except Failure as failure:
        if failure.name != acls.NO_ACLS:
            raise
        return []


def add_rules(wanted: Sequence[AclRule]) -> Proposal:
    """These rules. Allowing is done at once, since it can be taken back; denying is shown first."""
    assert wanted, "there is something to add"
    denies = any(one.permission == DENY for one in wanted)
    title = "Deny" if denies else "Allow"
    return Proposal(
        f"{title} {wanted[0].principal}", Tier.PLAN if denies else Tier.UNDO,
        partial(_adding_rules, tuple(wanted)),
    )  # fmt: skip


def _adding_rules(wanted: tuple[AclRule, ...], link: Link) -> Change:
    there = set(acls.rules(link))
    missing = tuple(one for one in wanted if one not in there)
    if not missing:
        raise Failure("nothing to add: these ACLs are there already", name="NO_CHANGE")
    denies = missing[0].permission == DENY

    def apply(link: Link) -> str:
        acls.add(link, missing)
        return f"added: {_listed(missing)}"

    def was_done(link: Link) -> str | None:
        return f"added: {_listed(missing)}" if set(missing) <= set(acls.rules(link)) else None

    return Change(
        "Deny" if denies else "Allow", words_of(missing, "add"), apply, was_done,
        says=("A denial wins over all other ACLs, from the next request on.",)
        if denies else (),
        columns=("before", "after"),
        rows=tuple(("none", acls.sentence(one)) for one in missing),
        undo=remove_rules(missing),
    )  # fmt: skip


def remove_rules(gone: Sequence[AclRule]) -> Proposal:
    """These rules go."""
    title = f"Remove ACL of {gone[0].principal}" if len(gone) == 1 else f"Remove {len(gone)} ACLs"
    return Proposal(title, Tier.PLAN, partial(_removing_rules, tuple(gone)))


def _removing_rules(gone: tuple[AclRule, ...], link: Link) -> Change:
    there = set(acls.rules(link))
    left = tuple(one for one in gone if one in there)
    if not left:
        raise Failure("nothing to remove: these ACLs are gone already", name="NO_CHANGE")
    allows = any(one.permission == ALLOW for one in left)

    def apply(link: Link) -> str:
        acls.remove(link, left)
        return f"removed: {_listed(left)}"

    def was_done(link: Link) -> str | None:
        return None if set(left) & set(acls.rules(link)) else f"removed: {_listed(left)}"

    says = (
        f"What no other ACL allows: {_DISCONNECTS}." if allows else "What it denied may be allowed."
    )
    return Change(
        "Remove", words_of(left, "remove"), apply, was_done, says=(says,),
        columns=("before", "after"),
        rows=tuple((acls.sentence(one), "none") for one in left), undo=add_rules(left),
    )  # fmt: skip


def words_of(rules: Sequence[AclRule], verb: str) -> tuple[str, ...]:
    """The command about the first of these rules, and those like it, behind `penstock`."""
    first = rules[0]
    alike = [one for one in rules if one._replace(operation=first.operation) == first]
    operations = [acls.typed(OPERATIONS[one.operation]) for one in alike]
    kind = acls.typed(KINDS[first.kind])
    name = () if first.kind == kafka.CLUSTER else (first.name,)
    prefixed = ("--prefixed",) if first.pattern == PREFIXED else ()
    host = () if first.host == ANY_HOST else ("--host", first.host)
    deny = ("--deny",) if first.permission == DENY else ()
    return ("acl", verb, first.principal, *operations, f"--{kind}", *name, *prefixed, *host, *deny)


def _listed(rules: Sequence[AclRule]) -> str:
    first = acls.sentence(rules[0])
    return first if len(rules) == 1 else f"{first} and {len(rules) - 1} more"
