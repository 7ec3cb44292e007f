"""Which feature levels this appliance serves, and changing the finalized ones (KIP-584, KIP-1022).

A feature is listed only when everything it promises works: clients act on a finalized level.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.controller.decision import OK, Record, Result, Situation
from appliance.controller.electorate import ELR_FEATURE
from appliance.controller.eligible import settings_to_begin
from appliance.metadata.image import METADATA_VERSION
from appliance.wire import kraft_records as kraft

KRAFT_VERSION: Final = "kraft.version"
LATEST_METADATA_VERSION: Final = 30  # 4.3-IV0
SUPPORTED: Final[dict[str, tuple[int, int]]] = {
    METADATA_VERSION: (17, LATEST_METADATA_VERSION),  # 3.7-IV2: partitions name their folders
    KRAFT_VERSION: (0, 1),  # 1: voters come and go (KIP-853)
    "group.version": (0, 1),  # 1: the consumer protocol (KIP-848)
    "transaction.version": (0, 2),  # 2: epochs rise with each one (KIP-890)
    ELR_FEATURE: (0, 1),  # 1: who left the ISR below min.insync.replicas may lead (KIP-966)
}
"""name → (lowest, highest) level that this appliance can read and write."""

FRESH: Final[dict[str, int]] = {
    METADATA_VERSION: LATEST_METADATA_VERSION,
    "group.version": 1,
    "transaction.version": 2,
}
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


def unsupported(finalized: Mapping[str, int]) -> str:
    """Those of a cluster's levels that this appliance does not serve, as NAME=LEVEL."""
    beyond = {
        name: level
        for name, level in sorted(finalized.items())
        if not SUPPORTED.get(name, (0, 0))[0] <= level <= SUPPORTED.get(name, (0, 0))[1]
    }
    return ",".join(f"{name}={level}" for name, level in beyond.items())


def update_features(
    situation: Situation, wanted: Sequence[FeatureUpdate]
) -> tuple[list[Record], list[tuple[str, Result]]]:
    """Records, and one result per update; when one fails there are no records, and what comes
    behind it is not looked at."""
    results: list[tuple[str, Result]] = []
    records: list[Record] = []
    for update in {one.name: one for one in wanted}.values():  # of several the last one counts
        result = _check(situation, update)
        results.append((update.name, result))
        if result is not OK:
            return [], results
        if update.name != KRAFT_VERSION and update.level != level_of(situation, update.name):
            record = kraft.FeatureLevelRecord(name=update.name, feature_level=update.level)
            records.append(record)
            if update.name == ELR_FEATURE and update.level:
                records += settings_to_begin(situation.image.configs, situation.config)
    return records, results


def level_of(situation: Situation, name: str) -> int:
    """The finalized level of a feature."""
    if name == KRAFT_VERSION:
        return situation.kraft_version
    return situation.image.features.get(name, 0)


def _check(situation: Situation, update: FeatureUpdate) -> Result:
    name, level = update.name, update.level
    current = level_of(situation, name)
    asked_for = update.upgrade_type in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE)
    if name == METADATA_VERSION and asked_for and SUPPORTED[name][0] <= level < current:
        return _no_older_metadata(current, update)
    wrong = _what_is_wrong(situation, update, current)
    if not wrong:
        return OK
    return Result(
        errors.INVALID_UPDATE_VERSION,
        f"Invalid update version {level} for feature {name[:100]}. {wrong}",
    )


def _no_older_metadata(current: int, update: FeatureUpdate) -> Result:
    why = (
        "Refusing to perform the requested downgrade because it might delete metadata information."
    )
    if update.upgrade_type == UNSAFE_DOWNGRADE:
        why = "Unsafe metadata downgrade is not supported in this version."
    return Result(
        errors.INVALID_UPDATE_VERSION,
        f"Unsupported metadata.version downgrade from {current} to {update.level}. {why}"
        " Restore a copy of the data folder.",
    )


def _what_is_wrong(situation: Situation, update: FeatureUpdate, current: int) -> str:
    name, level = update.name, update.level
    node = f"Local controller {situation.node_id}"
    if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    if name not in SUPPORTED:
        return f"{node} does not support this feature. It knows {', '.join(sorted(SUPPORTED))}."
    low, high = SUPPORTED[name]
    if level != 0 and not low <= level <= high:
        return f"{node} only supports versions {low}-{high}"
    if level < current and update.upgrade_type == UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either"
            " safe or unsafe downgrade."
        )
    if level > current and update.upgrade_type != UPGRADE:
        return "Can't downgrade to a newer version."
    if name == KRAFT_VERSION and level < current:
        return "The voters are those of the log, and stay so."
    if name == METADATA_VERSION and level == 0:
        return f"{node} only supports versions {low}-{high}"
    return _others_lack(situation, name, level)


def _others_lack(situation: Situation, name: str, level: int) -> str:
    """Which other node could not read what the level brings; the voters of kraft.version are asked
    where it is changed."""
    if level == 0 or name == KRAFT_VERSION:
        return ""
    image, me = situation.image, situation.node_id
    told = [(f"Broker {one.broker_id}", one.features) for one in image.brokers.values()]
    told += [
        (f"Controller {one.controller_id}", one.features)
        for one in image.controllers.values()
        if one.controller_id != me
    ]
    for node, features in told:
        ranges = {f.name: (f.min_supported_version, f.max_supported_version) for f in features}
        low, high = ranges.get(name, (0, 0))
        if high == 0:
            return f"{node} does not support this feature."
        if not low <= level <= high:
            return f"{node} only supports versions {low}-{high}"
    return ""
