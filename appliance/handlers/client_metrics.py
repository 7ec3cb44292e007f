"""Client metrics subscriptions and their intervals (KIP-714): a value machine of one network
process.

Subscriptions are settings of the resource CLIENT_METRICS, and so in the image. What is remembered
of a client is when it asked and pushed last; what it pushed is kept as it came, for others to open
(`ring/push_table.py`). A client that reaches another network process begins there anew: its
subscription is the same, as it follows from the image.

Invariant: a client instance that is not remembered is as one that never asked.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple
from zlib import crc32

from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.config.bounds import CLIENT_METRICS as INSTANCES
from appliance.config.bounds import setting_of
from appliance.config.metrics_settings import CLIENT_METRICS as SETTINGS
from appliance.metadata.identity import new_uuid
from appliance.metadata.image import CLIENT_METRICS, MetadataImage
from appliance.ring.push_table import PAYLOAD, PushingClient, PushRows
from appliance.wire import compression
from appliance.wire.uuids import format_uuid

ALL: Final = "*"
CODECS: Final = (compression.ZSTD, compression.LZ4, compression.GZIP, compression.SNAPPY)
"""What clients are told to compress with, the best first; nothing at all is accepted, too."""
NOBODY: Final = bytes(16)
_RESERVED: Final = (NOBODY, bytes(15) + b"\1")
"""No client has one of these."""
_REMEMBERED: Final = 4096
_LONGEST_MS: Final = 300_000
"""Who matches nothing asks again after this; longer intervals than that are not told."""
_ASKS_AT_ONCE: Final = (errors.UNKNOWN_SUBSCRIPTION_ID, errors.UNSUPPORTED_COMPRESSION_TYPE)
"""Who was told one of these may ask for its subscription before its time."""
_NEVER: Final = -(1 << 62)


class Rule(NamedTuple):
    """One subscription. match: what a client must be by each selector."""

    interval_ms: int
    match: tuple[tuple[str, str], ...]
    metrics: frozenset[str]


class MetricsSubscription(NamedTuple):
    """The subscription of one client instance. metrics: prefixes of names, ALL for every one, none
    for none. id: different for every other subscription.
    """

    id: int
    interval_ms: int
    metrics: tuple[str, ...]


@dataclass(slots=True)
class _Instance:
    """rules: those that its subscription follows from. error: of its last request."""

    rules: tuple[Rule, ...]
    subscription: MetricsSubscription
    asked_ms: int = _NEVER
    pushed_ms: int = _NEVER
    ended: bool = False
    error: int = errors.NONE

    def asks(self, now_ms: int) -> bool:
        """True if it may ask now."""
        due_ms = max(self.asked_ms, self.pushed_ms) + self.subscription.interval_ms
        if now_ms >= due_ms:
            self.asked_ms = now_ms
        return now_ms >= due_ms or self.error in _ASKS_AT_ONCE

    def pushes(self, now_ms: int) -> bool:
        """True if it may push now: the first push after a subscription at any time, as clients
        spread their pushes over half an interval to one and a half.
        """
        due_ms = self.pushed_ms + self.subscription.interval_ms
        may = self.asked_ms > self.pushed_ms or now_ms >= due_ms
        if may:
            self.pushed_ms = now_ms
        return may


class ClientMetricsPushes:
    """rows: where pushes are kept. max_bytes: of one push. random: so many random bytes. reach:
    told of a bound that was reached, and why."""

    __slots__ = ("_applied", "_instances", "_random", "_reach", "_rows", "_rules", "max_bytes")

    def __init__(
        self,
        rows: PushRows,
        max_bytes: int,
        random: Callable[[int], bytes],
        reach: Callable[[str, str], None],
    ) -> None:
        self._rows = rows
        self._reach = reach
        self._random = random
        self._instances: dict[bytes, _Instance] = {}
        self._rules: tuple[Rule, ...] = ()
        self._applied = -1
        self.max_bytes = min(max_bytes, PAYLOAD)

    def subscribe_instance(
        self, image: MetadataImage, instance: bytes, who: Mapping[str, str], now_ms: int
    ) -> tuple[int, bytes, MetricsSubscription]:
        """(error code, instance id, what it is to push) for a client that asks. instance: its id,
        NOBODY when it has none yet. who: what the client is by each selector. now_ms:
        monotonic."""
        if instance == NOBODY:
            instance = new_uuid(self._random)
        known = self._instance(image, instance, who)
        code = errors.NONE if known.asks(now_ms) else errors.THROTTLING_QUOTA_EXCEEDED
        if code == errors.NONE:
            known.error = code
        return code, instance, known.subscription

    def push(
        self,
        image: MetadataImage,
        instance: bytes,
        who: Mapping[str, str],
        principal: str,
        subscription_id: int,
        ending: bool,
        codec: int,
        payload: bytes,
        now_ms: int,
    ) -> int:
        """The error code for what a client pushed, which is kept when there is none. who, now_ms:
        as for `ask`. ending: it will not push again."""
        if instance in _RESERVED:
            return errors.INVALID_REQUEST
        known = self._instance(image, instance, who)
        code = self._refusal(known, subscription_id, ending, codec, payload, now_ms)
        known.error, known.ended = code, ending
        if code == errors.NONE and (payload or ending):
            named = PushingClient(
                principal,
                *(who.get(f"client_{key}", "") for key in ("id", "source_address")),
                *(who.get(f"client_software_{key}", "") for key in ("name", "version")),
            )
            interval_ms = known.subscription.interval_ms
            if self._rows.write_push(instance, named, now_ms, interval_ms, codec, ending, payload):
                why = f"more client instances push: {setting_of(INSTANCES)}"
                self._reach(INSTANCES, why)
        return code

    def _refusal(
        self,
        known: _Instance,
        subscription_id: int,
        ending: bool,
        codec: int,
        payload: bytes,
        now_ms: int,
    ) -> int:
        if known.ended:
            return errors.INVALID_REQUEST
        if not known.pushes(now_ms) and not ending:
            return errors.THROTTLING_QUOTA_EXCEEDED
        if subscription_id != known.subscription.id:
            return errors.UNKNOWN_SUBSCRIPTION_ID
        if codec != compression.NONE and codec not in CODECS:
            return errors.UNSUPPORTED_COMPRESSION_TYPE
        if len(payload) > self.max_bytes:
            return errors.TELEMETRY_TOO_LARGE
        return errors.NONE

    def _instance(self, image: MetadataImage, instance: bytes, who: Mapping[str, str]) -> _Instance:
        """As it is remembered under the subscriptions of now."""
        self._follow(image)
        known = self._instances.pop(instance, None)
        if known is None or known.rules is not self._rules:
            named = {**who, "client_instance_id": format_uuid(instance)}
            known = _Instance(self._rules, _subscription(self._rules, instance, named))
        self._instances[instance] = known
        if len(self._instances) > _REMEMBERED:
            del self._instances[next(iter(self._instances))]
        return known

    def _follow(self, image: MetadataImage) -> None:
        if image.applied_offset == self._applied:
            return
        self._applied = image.applied_offset
        own = sorted(one for one in image.configs.items() if one[0][0] == CLIENT_METRICS)
        rules = tuple(_rule(settings) for _, settings in own)
        if rules != self._rules:
            self._rules = rules


def offered(image: MetadataImage) -> bool:
    """True if ApiVersions offers the push APIs: Apache Kafka does so where a plugin takes the
    metrics, and some clients then log it on every start.
    """
    return any(kind == CLIENT_METRICS for kind, _ in image.configs)


def _rule(own: Mapping[str, str]) -> Rule:
    """As its settings say, which were checked when they were set."""
    interval_ms, patterns, metrics = (
        setting.parse(own[name]) if name in own else setting.default
        for name, setting in SETTINGS.items()
    )
    assert isinstance(interval_ms, int)
    assert isinstance(patterns, tuple) and isinstance(metrics, tuple)
    pairs = (one.strip().partition("=") for one in patterns)
    match = tuple((name, pattern) for name, _, pattern in pairs if name)
    return Rule(interval_ms, match, frozenset(metrics))


def _subscription(
    rules: tuple[Rule, ...], instance: bytes, who: Mapping[str, str]
) -> MetricsSubscription:
    mine = [one for one in rules if all(_is(who, *pair) for pair in one.match)]
    names = sorted({name for one in mine for name in one.metrics})
    metrics = (ALL,) if ALL in names else tuple(names)
    interval_ms = min((one.interval_ms for one in mine), default=_LONGEST_MS)
    interval_ms = min(interval_ms, _LONGEST_MS)
    number = crc32(repr((metrics, interval_ms, instance)).encode())
    return MetricsSubscription(number - (1 << 31), interval_ms, metrics)


def _is(who: Mapping[str, str], selector: str, pattern: str) -> bool:
    value = who.get(selector)
    return value is not None and _compiled(pattern).fullmatch(value) is not None


@lru_cache(256)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error:  # it was set by another kind of node: nobody is that
        return re.compile(r"(?!)")
