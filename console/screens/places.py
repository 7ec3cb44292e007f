"""Where somebody is in the console, how they say where to go, and where they have been."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from console.model.access.access import question
from console.model.access.acls import principal_of
from console.model.asking.failure import Failure
from console.model.quotas.quota_rules import client_of

T = TypeVar("T")
OVERVIEW: Final = "overview"
TOPICS: Final = "topics"
TOPIC: Final = "topic"
GROUPS: Final = "groups"
GROUP: Final = "group"
QUOTAS: Final = "quotas"
QUOTA: Final = "quota"
JOBS: Final = "jobs"
JOB: Final = "job"
PREVIEW: Final = "preview"
CLIENTS: Final = "clients"
TXNS: Final = "txns"
LOG: Final = "log"
NODES: Final = "nodes"
TRASH: Final = "deleted"
USERS: Final = "users"
ACLS: Final = "acls"
"""Of a name: the rules that hold for the principal of that name."""
CAN: Final = "can"
"""Its name is an `access.Question`, as its text has it."""
AUDIT: Final = "audit"
CERTIFICATES: Final = "certificates"
TOPOLOGY: Final = "topology"
HEAT: Final = "heat"
"""Of a name: the partitions of that topic; else those of all."""

RECORDS: Final = "records"
TAIL: Final = "tail"
RECORD: Final = "record"
"""Of a name `TOPIC PARTITION:OFFSET`; of the other two the name is a topic's."""

LISTS: Final = (OVERVIEW, TOPICS, GROUPS, QUOTAS, JOBS, CLIENTS, TXNS, LOG, NODES, USERS)
"""In the order of their tabs and of the keys 1, 2, … 9, 0."""
ACCESS: Final = (USERS, ACLS, AUDIT, CERTIFICATES)
"""The places about who may come in and do what; one key goes around."""
_OF_TOPIC: Final = (RECORDS, TAIL)
_ABOVE: Final = {
    TOPIC: TOPICS, GROUP: GROUPS, QUOTA: QUOTAS, JOB: JOBS, PREVIEW: JOBS, TRASH: TOPICS,
    TOPOLOGY: TOPICS, HEAT: TOPICS,
    **dict.fromkeys((*_OF_TOPIC, RECORD), TOPICS), **dict.fromkeys((*ACCESS[1:], CAN), USERS),
}  # fmt: skip
_TRANSACTIONS: Final = "transactions"
_OF: Final = {TOPICS: TOPIC, GROUPS: GROUP, QUOTAS: QUOTA, JOBS: JOB}
"""The list → one of what it lists."""
_MORE: Final = (TRASH, TOPOLOGY, HEAT, *ACCESS[1:])
"""Places without a name and without a tab."""
_NAMED: Final = (
    "topic NAME, records TOPIC, tail TOPIC, heat TOPIC, group NAME, quota WHO, job NAME, "
    "preview JOB|FILE, acls PRINCIPAL, can WHO OPERATION KIND NAME"
)
_MOST: Final = 100


@dataclass(slots=True, frozen=True)
class Place:
    """kind: one of the above. name: of the topic, group or job (for PREVIEW also of a file); for
    QUOTA who the client is, as `quota_rules.Client.text` has it; "" elsewhere."""

    kind: str
    name: str = ""

    @property
    def above(self) -> "Place":
        """Where Escape leads: from a topic to the topics, from a list to the overview."""
        if self.kind in _OF_TOPIC or (self.kind == HEAT and self.name):
            return Place(TOPIC, self.name)
        if self.kind == RECORD:
            return Place(RECORDS, record_of(self)[0])
        if self.kind == CAN:
            return Place(ACLS)
        return Place(_ABOVE.get(self.kind, OVERVIEW))

    @property
    def needs_name(self) -> bool:
        """True if it is one of several of its kind."""
        return self.kind in (*_OF.values(), *_OF_TOPIC, RECORD, CAN)

    @property
    def tab(self) -> str:
        """The list that it belongs to."""
        return _ABOVE.get(self.kind, self.kind)


HOME: Final = Place(OVERVIEW)


def key_of(kind: str) -> str:
    """The key that leads to one of LISTS."""
    return str((LISTS.index(kind) + 1) % 10)


class History:
    """The places where somebody has been, as a browser keeps them: going somewhere forgets what was
    ahead. The oldest are forgotten."""

    def __init__(self, first: Place) -> None:
        self._places = [first]
        self._at = 0

    @property
    def here(self) -> Place:
        """Where they are."""
        return self._places[self._at]

    def go_to(self, place: Place) -> None:
        """To another place; nothing happens when they are there."""
        if place != self.here:
            self._places[self._at + 1 :] = [place]
            del self._places[:-_MOST]
            self._at = len(self._places) - 1

    @property
    def before(self) -> Place | None:
        """Where they were before."""
        return self._places[self._at - 1] if self._at else None

    def back(self) -> bool:
        """One back; False when there is nothing."""
        if not self._at:
            return False
        self._at -= 1
        return True

    def forward(self) -> bool:
        """One ahead; False when there is nothing."""
        if self._at + 1 == len(self._places):
            return False
        self._at += 1
        return True


def record_of(place: Place) -> tuple[str, int, int]:
    """(topic, partition, offset) of a RECORD. Raises NoPlace when its name is none."""
    topic, _, where = place.name.rpartition(" ")
    partition, colon, offset = where.partition(":")
    if not (topic and colon and partition.isdecimal() and offset.isdecimal()):
        raise NoPlace(f"{place.name!r} is no record: TOPIC PARTITION:OFFSET")
    return topic, int(partition), int(offset)


class NoPlace(ValueError):
    """There is no such place; the text says which there are."""


def jump(text: str) -> Place:
    """Parses text behind `:`: `topics`, `t`, `topic orders`, `groups`, `g billing` … With a name it
    means the one thing of that name. Raises NoPlace.
    """
    word, _, name = text.strip().partition(" ")
    name = name.strip()
    if word == PREVIEW and name:
        return Place(PREVIEW, name)
    if word == CAN:
        return Place(CAN, _said(question, name).text)
    for kind in _OF_TOPIC:
        if len(word) > 1 and kind.startswith(word):
            return _of_topic(kind, name)
    if len(word) > 1 and _TRANSACTIONS.startswith(word):
        word = TXNS
    kinds = [kind for kind in (*LISTS, *_MORE) if word and kind.startswith(word)]
    if not kinds:
        raise NoPlace(f"there is no {word!r}: {', '.join((*LISTS, *_MORE))}, {_NAMED}")
    kind = kinds[0]
    if not name:
        return Place(kind)
    if kind in _OF:
        one = _OF[kind]
        return Place(one, _said(client_of, name).text if one == QUOTA else name)
    if kind == HEAT:
        return Place(HEAT, name)
    if kind == ACLS:
        return Place(ACLS, _said(principal_of, name))
    raise NoPlace(f"{kind} takes no name: these do: {_NAMED}")


def _said(read: Callable[[str], T], text: str) -> T:
    """The result of `read` for a text. Raises NoPlace for its Failure."""
    try:
        return read(text)
    except Failure as wrong:
        raise NoPlace(f"{wrong.message}: {wrong.hint}" if wrong.hint else wrong.message) from None


def _of_topic(kind: str, name: str) -> Place:
    if not name:
        raise NoPlace(f"{kind} of which topic? For example {kind} orders")
    if " " in name:  # which no topic has in its name
        place = Place(RECORD, name)
        record_of(place)
        return place
    return Place(kind, name)


FUZZY: Final = "-f "
"""How a filter begins that is content with letters in their order."""


def keeps(filter_text: str, name: str) -> bool:
    """True if a name passes the text behind `/`: all of its words are in it, whatever the case; a
    word that begins with `!` must not be. Behind `-f ` its letters are, in that order.
    """
    if not filter_text:
        return True
    low = name.lower()
    if filter_text.startswith(FUZZY):
        letters = iter(low)
        return all(one in letters for one in filter_text.lower().removeprefix(FUZZY) if one != " ")
    return all(
        (word[1:] not in low if len(word) > 1 else True) if word[0] == "!" else word in low
        for word in filter_text.lower().split()
    )
