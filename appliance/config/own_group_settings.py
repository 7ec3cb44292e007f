"""The settings that one group may override (resource type GROUP, KIP-848), as Apache Kafka 4.3 has them,
each with the broker setting that is its default and those that bound it."""

from typing import Final, NamedTuple

from appliance.config.setting import BOOLEAN, INT, STRING, Setting

_NO_SHARE: Final = "share groups are not served yet"
_NO_STREAMS: Final = "streams groups are not served yet"


class Override(NamedTuple):
    """behind: the broker's setting that holds for all groups; lowest, highest: those that bound
    it. Empty: there is none."""

    setting: Setting
    behind: str
    lowest: str
    highest: str


def _number(name: str, default: int, doc: str, low: int = 0, inert: str = "") -> Override:
    """A number whose broker settings are called as Kafka calls them."""
    kind, _, rest = name.partition(".")
    behind = f"group.{name}"
    setting = Setting(name, INT, default, doc, low=low, inert=inert)
    return Override(setting, behind, f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}")


_ROWS: Final = (
    _number("consumer.session.timeout.ms", 45_000, "Session timeout of the group's members, in ms.", 1),
    _number("consumer.heartbeat.interval.ms", 5000, "Heartbeat interval of the group's members, in ms.", 1),
    _number("consumer.assignment.interval.ms", 1000, "Least time between two assignments of the group, in ms.", inert="targets are computed at once"),
    _number("share.session.timeout.ms", 45_000, "Session timeout of the group's members, in ms.", 1, _NO_SHARE),
    _number("share.heartbeat.interval.ms", 5000, "Heartbeat interval of members of a share group, in ms.", 1, _NO_SHARE),
    _number("share.assignment.interval.ms", 1000, "Least time between two assignments, in ms.", inert=_NO_SHARE),
    _number("share.delivery.count.limit", 5, "Maximum number of deliveries of a record.", 2, _NO_SHARE),
    _number("share.record.lock.duration.ms", 30_000, "How long a delivered record is locked, in ms.", 1000, _NO_SHARE),
    _number("share.partition.max.record.locks", 2000, "Records of a partition that may be locked at once.", 100, _NO_SHARE),
    Override(Setting("share.auto.offset.reset", STRING, "latest", "Where a new share group begins: earliest, latest, by_duration:PnDTnHnMn.nS.", inert=_NO_SHARE), "", "", ""),
    Override(Setting("share.isolation.level", STRING, "read_uncommitted", "Whether a share group sees records of open transactions.", choices=("read_committed", "read_uncommitted"), inert=_NO_SHARE), "", "", ""),
    Override(Setting("share.renew.acknowledge.enable", BOOLEAN, True, "Whether a lock may be renewed.", inert=_NO_SHARE), "", "", ""),
    _number("streams.session.timeout.ms", 45_000, "Session timeout of the group's members, in ms.", 1, _NO_STREAMS),
    _number("streams.heartbeat.interval.ms", 5000, "Heartbeat interval of members of a streams group, in ms.", 1, _NO_STREAMS),
    _number("streams.assignment.interval.ms", 1000, "Least time between two assignments, in ms.", inert=_NO_STREAMS),
    Override(Setting("streams.num.standby.replicas", INT, 0, "Standby replicas of the group's state.", low=0, inert=_NO_STREAMS), "group.streams.num.standby.replicas", "", "group.streams.max.standby.replicas"),
    Override(Setting("streams.initial.rebalance.delay.ms", INT, 3000, "Wait for more members of a new group, in ms.", low=0, inert=_NO_STREAMS), "group.streams.initial.rebalance.delay.ms", "", ""),
)  # fmt: skip

GROUP: Final[dict[str, Override]] = {row.setting.name: row for row in _ROWS}
"""By name."""
