"""Metrics that clients push (KIP-714), read from the memory of an appliance of this host."""

import time
from dataclasses import dataclass
from typing import Final, TypeAlias

from appliance.observer.client_metrics import ClientMetrics, PushedSamples
from appliance.ring.push_table import PushTable
from appliance.wire.otlp import MetricPoint
from appliance.wire.uuids import format_uuid
from console.model.asking.failure import Failure
from console.model.local.observed import observed

_NS_MS: Final = 1_000_000
Number: TypeAlias = MetricPoint
"""One number of one metric, as it was pushed."""


@dataclass(slots=True, frozen=True)
class Instance:
    """One client that pushes. instance: its id, as text. pushed_s: how long ago it last did.
    interval_s: how often it is to. pushes: how often it did. wrong: why nothing of it could be
    read, "" when it could."""

    client_id: str
    instance: str
    software: str
    version: str
    user: str
    address: str
    pushed_s: float
    interval_s: float
    pushes: int
    metrics: int
    wrong: str


@dataclass(slots=True, frozen=True)
class Value:
    """One number. labels: name → value, as the client has them."""

    client_id: str
    instance: str
    metric: str
    labels: dict[str, str]
    value: int | float
    unit: str
    kind: str


@dataclass(slots=True, frozen=True)
class Pushing:
    """One client that pushes, and what it said last."""

    client: Instance
    samples: tuple[Number, ...]


class Pushes:
    """The pushing clients of one appliance, read repeatedly; keeps its tables open."""

    def __init__(self, table: PushTable) -> None:
        self._metrics = ClientMetrics(table)

    def read_pushes(self) -> tuple[Pushing, ...]:
        """By client id."""
        now_ms = time.monotonic_ns() // _NS_MS
        found = (
            Pushing(_instance(one, now_ms), one.samples)
            for one in self._metrics.read_pushes(now_ms)
        )
        return tuple(sorted(found, key=lambda one: (one.client.client_id, one.client.instance)))


def instances(data_dir: str) -> list[Instance]:
    """The clients that push to the appliance in a data folder, by client id. Raises Failure."""
    return [one.client for one in Pushes(observed(data_dir).tables.pushes).read_pushes()]


def _instance(one: PushedSamples, now_ms: int) -> Instance:
    return Instance(
        one.pushed.who.client_id,
        format_uuid(one.pushed.instance),
        one.pushed.who.software,
        one.pushed.who.version,
        one.pushed.who.principal,
        one.pushed.who.address,
        max(now_ms - one.pushed.pushed_ms, 0) / 1000,
        one.pushed.interval_ms / 1000,
        one.pushed.pushes,
        len(one.samples),
        one.wrong,
    )


def values(data_dir: str, who: str, prefix: str) -> list[Value]:
    """The last metrics of the clients with this client id or instance id, whose names begin with
    `prefix`. Raises Failure, also for an unknown client.
    """
    every = Pushes(observed(data_dir).tables.pushes).read_pushes()
    clients = [one for one in every if who in (one.client.client_id, one.client.instance)]
    if not clients:
        raise Failure(
            f"no client {who} has pushed metrics recently",
            "penstock client metrics lists those that have",
            name="NOT_FOUND",
        )
    found = [
        Value(
            one.client.client_id,
            one.client.instance,
            sample.name,
            dict(sample.labels),
            sample.value,
            sample.unit,
            sample.kind,
        )
        for one in clients
        for sample in one.samples
        if sample.name.startswith(prefix)
    ]
    return sorted(found, key=lambda one: (one.client_id, one.instance, one.metric))
