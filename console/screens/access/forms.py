"""Forms for changes of users and ACLs."""

import re
import shlex
from typing import Final

from appliance.authorization import operations as kafka
from appliance.authorization.standard import ALLOW, ANY_HOST, DENY, LITERAL, PREFIXED, AclRule
from appliance.authorization.words import KINDS
from console.model.access import access_changes, acls, grants, users
from console.model.access.access import KIND_WORDS, Question
from console.model.access.acls import Target
from console.model.asking.change import Proposal
from console.model.asking.failure import Failure, usage
from console.screens.changes.form import FLAG, YES, Field, Form, Values, needed

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
PRODUCER, CONSUMER = "producer", "consumer"
"""Words that stand for all operations that such a client needs."""
_PRODUCES: Final = {
    kafka.TOPIC: (kafka.WRITE, kafka.DESCRIBE, kafka.CREATE),
    kafka.TRANSACTIONAL_ID: (kafka.WRITE, kafka.DESCRIBE),
}
_CONSUMES: Final = {kafka.TOPIC: (kafka.READ, kafka.DESCRIBE), kafka.GROUP: (kafka.READ,)}


def begun(principal: str) -> str:
    """A question as it begins with a principal; "" without one."""
    return f"{shlex.quote(principal)} " if principal else ""


def _file_of(name: str) -> str:
    return f"{_UNSAFE.sub('_', name) or 'user'}.properties"


def new_user() -> Form:
    """A user, its rights, and the file for its client's properties."""

    def propose(values: Values) -> Proposal:
        name = values["name"].strip()
        file = values["file"].strip() or _file_of(name)
        return access_changes.add_user(name, values["can"].split(), values["by"], file)

    return Form(
        "New user",
        (
            Field("name", "Name", check=needed, about="The principal is User:NAME."),
            Field("can", "May", hint="write:orders read:sensor-* group:billing",
                  about=f"Words with blanks between them: {grants.KNOWN}.", check=_rights),
            Field("by", "Logs in by", access_changes.MECHANISM, choices=tuple(users.NUMBERS)),
            _file(),
        ),
        propose,
        about="The password is generated, and written into a file that you alone may read.",
    )  # fmt: skip


def password(user: users.User) -> Form:
    """The file for the new properties of a user's clients."""

    def propose(values: Values) -> Proposal:
        return access_changes.new_password(user, values["file"].strip() or _file_of(user.name))

    return Form(f"New password of {user.name}", (_file(),), propose)


def _file() -> Field:
    return Field(
        "file", "Write to", hint="NAME.properties",
        about="A new file on this host, for librdkafka, kcat -F and penstock --command-config.",
    )  # fmt: skip


def _rights(text: str) -> str:
    try:
        grants.read(text.split(), "x")
    except Failure as wrong:
        return f"{wrong.message}; {wrong.hint}" if wrong.hint else wrong.message
    return ""


def new_rule(principal: str, asked: Question | None = None) -> Form:
    """One ACL or several. principal, asked: stand there at first."""
    target = asked.target if asked is not None else Target(kafka.TOPIC, "")
    operation = asked.words[1] if asked is not None else ""
    name = "" if target.kind == kafka.CLUSTER else target.name

    def propose(values: Values) -> Proposal:
        return access_changes.add_rules(_rules(values))

    return Form(
        "New ACL",
        (
            Field("who", "Who", principal, hint="loader, User:CN=b.example.org, User:*",
                  check=needed, about="A user's name, or TYPE:NAME; User:* is everybody."),
            Field("what", "May do", operation, hint="write describe, producer, all", check=needed,
                  about="Operations, or producer or consumer for all that such a client needs."),
            Field("kind", "With kind", acls.typed(KINDS[target.kind]), choices=KIND_WORDS),
            Field("name", "Name", name, hint="orders", about="Of a cluster there is no name."),
            Field("prefixed", "All that begin so", kind=FLAG),
            Field("host", "Only from", "", hint="every address", about="An IP address."),
            Field("deny", "Deny it", kind=FLAG, about="Whatever other ACLs allow."),
        ),
        propose,
    )  # fmt: skip


def _rules(values: Values) -> list[AclRule]:
    """Raises Failure (USAGE)."""
    who = acls.principal_of(values["who"].strip())
    kind = KINDS.index(values["kind"].upper().replace("-", "_"))
    name = kafka.CLUSTER_NAME if kind == kafka.CLUSTER else values["name"].strip()
    if not name:
        raise usage(f"which {values['kind']}?", "its name, or * for all")
    prefixed = values["prefixed"] == YES
    target = Target(kind, name, PREFIXED if prefixed and kind != kafka.CLUSTER else LITERAL)
    permission = DENY if values["deny"] == YES else ALLOW
    pairs = [(target, one) for one in _operations(values["what"], target)]
    return acls.product([who], [values["host"].strip() or ANY_HOST], permission, pairs)


def _operations(text: str, target: Target) -> list[int]:
    """Raises Failure (USAGE)."""
    found: dict[int, None] = {}
    for word in text.replace(",", " ").split():
        needed_by = {PRODUCER: _PRODUCES, CONSUMER: _CONSUMES}.get(word)
        if needed_by is not None and target.kind not in needed_by:
            raise usage(f"{word} matches nothing on a {acls.typed(KINDS[target.kind])}")
        wanted = needed_by[target.kind] if needed_by is not None else (acls.operation_of(word),)
        for operation in wanted:
            acls.check_applies(operation, target)
            found[operation] = None
    return list(found)
