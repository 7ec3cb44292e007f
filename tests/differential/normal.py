"""What cannot be the same on two brokers is replaced by a word before answers are compared.

Lists of things that have a name become mappings by that name, so that their order does not count
and a path into an answer reads `topics[t].partitions[0].error_code`.
"""

import re
import time

NAMES = (
    "name", "topic", "topic_name", "config_name", "group_id", "transactional_id", "member_id",
    "resource_name", "feature", "log_dir", "key", "api_key", "node_id", "broker_id", "replica_id",
    "partition_index", "partition", "partition_id", "index", "entity_type", "topic_id", "entity",
    "user", "mechanism",
)  # fmt: skip
"""Fields that name the element of a list, the first one that is there; an answer's empty or null
name counts as missing."""
ONE_OF_TWO = {"cluster_id": "cluster", "finalized_features_epoch": "epoch"}
"""Fields whose value is one broker's own; null, -1 and empty stay what they are."""
PORTS = {"port"}
BYTES = {"total_bytes", "usable_bytes"}
UNORDERED = {"acls", "matching_acls"}
"""Lists of things without a name of their own, in whatever order each broker holds them."""
COUNTED = {"producer_id"}
"""Ids that are numbered by each broker as it likes: equal ones stay equal."""

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LONG_NUMBER = re.compile(r"-?\d{13,}")
_HOUR_MS = 3_600_000


class Normaliser:
    """For one run of one script. known: text → the word that stands for it; the longest wins.
    numbers: the same for numbers."""

    def __init__(self, known, ports=(), folder=None, numbers=()):
        known = dict(known)
        if folder:
            known[folder] = "<folder>"
        self._known = known
        texts = sorted(known, key=len, reverse=True)
        self._texts = re.compile("|".join(map(re.escape, texts))) if texts else None
        self._ports = tuple(ports)
        self._numbers = dict(numbers)
        self._seen = {}
        self._now = time.time() * 1000

    def note(self, answer):
        """The comparable form of an answer. Ids that nobody named are numbered anew in each."""
        self._seen.pop("uuid", None)
        return self.answer(answer)

    def answer(self, value, field=""):
        """The comparable form of a part of an answer."""
        if isinstance(value, dict):
            return {key: self.answer(item, key) for key, item in value.items()}
        if isinstance(value, list):
            items = [self.answer(item, field) for item in value]
            return self._list(sorted(items, key=repr) if field in UNORDERED else items)
        if isinstance(value, str):
            return self._text(value, field)
        if isinstance(value, bool) or not isinstance(value, int):
            return value
        return self._number(value, field)

    def _text(self, value, field):
        if field in ONE_OF_TWO and value:
            return f"<{ONE_OF_TWO[field]}>"
        if self._texts is not None:
            value = self._texts.sub(lambda found: self._known[found[0]], value)
        for port in self._ports:
            value = re.sub(rf"\b{port}\b", "<port>", value)
        value = _LONG_NUMBER.sub(self._time, value)
        return _UUID.sub(lambda found: self._number_of("uuid", found[0]), value)

    def _time(self, found):
        """A time in a sentence: near now, or so far back that it is the limit of times."""
        when = int(found[0])
        near = abs(when - self._now) < 24 * _HOUR_MS or when < -1e18
        return "<time>" if near else found[0]

    def _number(self, value, field):
        if field in ONE_OF_TWO and value >= 0:
            return f"<{ONE_OF_TWO[field]}>"
        if field in PORTS and value in self._ports:
            return "<port>"
        if value in self._numbers:
            return self._numbers[value]
        if field in BYTES and value > 0:
            return "<bytes>"
        if field in COUNTED and value >= 0:
            return self._number_of(field, value)
        if abs(value - self._now) < _HOUR_MS:
            return "<now>"
        return value

    def _number_of(self, kind, value):
        numbers = self._seen.setdefault(kind, {})
        return f"<{kind} {numbers.setdefault(value, len(numbers) + 1)}>"

    def _list(self, items):
        """A mapping by name when every element has one, else the list."""
        if not items or not all(isinstance(item, dict) for item in items):
            return items
        for name in NAMES:
            if all(item.get(name) not in (None, "") for item in items):
                return self._by(name, items)
        return items

    def _by(self, name, items):
        found = {}
        for item in items:
            key, again = str(item[name]), 1
            while key in found:
                again += 1
                key = f"{item[name]}#{again}"
            found[key] = item
        return Named(sorted(found.items()))


class Named(dict):
    """A list of named things, by name."""
