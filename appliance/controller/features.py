"""Which feature levels this appliance serves, and changing the finalized ones (KIP-584, KIP-1022).

A feature is listed only when everything it promises works: clients act on a finalized level.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from appliance.base import errors
from appliance.controller.decision import OK, Record, Result, Situation
from appliance.metadata.image import METADATA_VERSION
from appliance.wire import kraft_records as kraft

LATEST_METADATA_VERSION: Final = 30  # 4.3-IV0
SUPPORTED: Final[dict[str, tuple[int, int]]] = {
    METADATA_VERSION: (17, LATEST_METADATA_VERSION),  # 3.7-IV2: partitions name their folders
    "kraft.version": (0, 1),
    "group.version": (0, 1),  # 1: the consumer protocol (KIP-848)
}
"""name → (lowest, highest) level that this appliance can read and write."""

FRESH: Final[dict[str, int]] = {METADATA_VERSION: LATEST_METADATA_VERSION, "group.version": 1}
"""What a new cluster finalizes."""

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3


@dataclass(slots=True, frozen=True)
class FeatureUpdate:
    """One feature and the level it shall have; level 0 deletes it."""

    name: str
    level: int
    upgrade_type: int = UPGRADE


def update_features(
    situation: Situation, wanted: Sequence[FeatureUpdate]
) -> tuple[list[Record], list[tuple[str, Result]]]:
    """Records, and one result per update; when one fails there are no records at all."""
    results: list[tuple[str, Result]] = []
    records: list[Record] = []
    seen: dict[str, None] = {}
    for update in wanted:
        result = _check(situation, update)
        if update.name in seen:
            result = Result(errors.INVALID_REQUEST, f"Feature {update.name} is named twice.")
        seen[update.name] = None
        results.append((update.name, result))
        if update.level != situation.image.features.get(update.name, 0):
            record = kraft.FeatureLevelRecord(name=update.name, feature_level=update.level)
            records.append(record)
    if any(result is not OK for _, result in results):
        return [], results
    return records, results


def _check(situation: Situation, update: FeatureUpdate) -> Result:
    name, level = update.name, update.level
    current = situation.image.features.get(name, 0)
    span = SUPPORTED.get(name)
    wrong = ""
    if name not in SUPPORTED:
        known = ", ".join(sorted(SUPPORTED))
        wrong = f"this appliance does not know this feature; it knows {known}"
    elif level < 0:
        wrong = "a level is 0 or more"
    elif span is not None and level != 0 and not span[0] <= level <= span[1]:
        wrong = f"this appliance supports levels {span[0]} to {span[1]}"
    elif name == "kraft.version" and level != current:
        wrong = "changing kraft.version needs a quorum with dynamic voters, which is not served yet"
    elif name == METADATA_VERSION and level == 0:
        wrong = "metadata.version cannot be deleted"
    elif level < current and update.upgrade_type not in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        wrong = (
            f"{level} is lower than the current {current}, and the upgrade type does not allow that"
        )
    elif level > current and update.upgrade_type != UPGRADE:
        wrong = f"{level} is higher than the current {current}, and the type is a downgrade"
    elif name == METADATA_VERSION and level < current:
        wrong = "downgrading metadata.version is not supported; restore a copy of the data folder"
    if not wrong:
        return OK
    return Result(
        errors.INVALID_UPDATE_VERSION,
        f"Invalid update version {level} for feature {name[:100]}: {wrong}.",
    )
