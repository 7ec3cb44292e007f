"""The changes of some records, as the values that they left: one image takes them over from another
that has replayed the records.

Invariant: an image that said what the other one said before the records says after `apply_to` what
that one said behind them. Costs as many steps as things have changed, not records; the parts are
shared. Control brings its committed image up with it (`control/quorum/images.py`).
"""

from collections.abc import Iterable
from typing import Final

from appliance.metadata.changes import (
    BrokerChanged,
    Change,
    ConfigChanged,
    ControllerChanged,
    FeatureChanged,
    KeptChanged,
    PartitionAdded,
    PartitionChanged,
    ProducerIdsTaken,
    QuotaChanged,
    TopicAdded,
    TopicRemoved,
)
from appliance.metadata.image_state import TOPIC, ImageState

_TABLES: Final = (
    "topics_by_name",
    "topics_by_id",
    "configs",
    "brokers",
    "controllers",
    "features",
    "quotas",
    "kept",
)


class Delta:
    """tables: what a table of the image has now under each key that changed, None for nothing."""

    __slots__ = ("_applied_offset", "_epoch", "_next_producer_id", "_pending", "_skipped",
                 "_tables")  # fmt: skip

    def __init__(self, image: ImageState, changes: Iterable[Change]) -> None:
        """image: which has just made these changes; it goes on without touching what is here."""
        self._tables: dict[str, dict[object, object]] = {name: {} for name in _TABLES}
        for change in changes:
            self._note(image, change)
        self._next_producer_id = image.next_producer_id
        self._applied_offset, self._epoch = image.applied_offset, image.epoch
        self._skipped = image.skipped
        self._pending = None if image.pending is None else list(image.pending)
        if self._tables["topics_by_id"]:
            image.disown()

    def _note(self, image: ImageState, change: Change) -> None:
        tables = self._tables
        match change:
            case PartitionAdded() | PartitionChanged() | TopicAdded() | TopicRemoved():
                tables["topics_by_id"][change.topic_id] = image.topics_by_id.get(change.topic_id)
                tables["topics_by_name"][change.name] = image.topics_by_name.get(change.name)
                if isinstance(change, TopicRemoved):  # and its settings with it
                    key = (TOPIC, change.name)
                    tables["configs"][key] = image.configs.get(key)
            case ConfigChanged():
                key = (change.resource_type, change.resource_name)
                tables["configs"][key] = image.configs.get(key)
            case BrokerChanged():
                tables["brokers"][change.broker_id] = image.brokers.get(change.broker_id)
            case ControllerChanged():
                found = image.controllers.get(change.controller_id)
                tables["controllers"][change.controller_id] = found
            case FeatureChanged():
                tables["features"][change.name] = image.features.get(change.name)
            case QuotaChanged():
                tables["quotas"][change.entity] = image.quotas.get(change.entity)
            case KeptChanged():
                tables["kept"][change.identity] = image.kept.get(change.identity)
            case ProducerIdsTaken():
                pass  # one number, taken with the others

    def apply_to(self, image: ImageState) -> None:
        """Let `image` say it, too."""
        for name, changed in self._tables.items():
            table = getattr(image, name)
            for key, value in changed.items():
                if value is None:
                    table.pop(key, None)
                else:
                    table[key] = value
        image.next_producer_id = self._next_producer_id
        image.applied_offset, image.epoch = self._applied_offset, self._epoch
        image.skipped, image.pending = self._skipped, self._pending
        image.disown()
