"""Latency at a fixed rate by the open-loop client, at a rate given or at a share of the most."""

import json
import sys
from dataclasses import dataclass

from benchmarks.compare import check, tools
from benchmarks.compare.measure import Effort, size_text
from benchmarks.compare.systems import System
from benchmarks.peer import WrongAnswer

TAIL = 20_000
"""Records that a p99.9 takes: five rounds of so many have a hundred beyond it. A run that stays
below names none."""


def seconds_of(rate: float, effort_s: float) -> float:
    """How long to run: twice the effort, up to ten times where that brings enough for a p99.9, and
    four times where nothing would."""
    tail = TAIL / rate
    return max(2 * effort_s, tail) if tail <= 10 * effort_s else 4 * effort_s


@dataclass(frozen=True)
class OpenLoop:
    """rate: records/s; 0 means `share` of what the same client reaches flat out just before."""

    rate: int
    share: float = 0.8
    size: int = 1000
    partitions: int = 16
    acks: str = "all"
    linger_ms: float = 0

    @property
    def title(self) -> str:
        rate = f"{self.rate:,} records/s" if self.rate else f"{self.share:.0%} of its most"
        linger = f", linger {self.linger_ms:g} ms" if self.linger_ms else ""
        return f"open loop {size_text(self.size)}, acks={self.acks}{linger}, {rate}"

    def prepare(self, system: System, effort: Effort) -> None:
        """A first short run: the broker has seen this load before it counts."""
        self._client(system, self.rate or 1000, min(1.0, effort.seconds), 0)

    def run(self, system: System, effort: Effort) -> dict[str, float]:
        rate = float(self.rate)
        if not rate:
            most = self._client(system, 0, min(3.0, effort.seconds), 0)
            rate = float(str(most["records_s"])) * self.share
        seconds = seconds_of(rate, effort.seconds)
        found = self._client(system, rate, seconds, int(rate * min(0.5, seconds / 10)))
        through, acks, late = found["e2e"], found["ack"], found["late"]
        assert isinstance(through, dict) and isinstance(acks, dict) and isinstance(late, dict)
        tail = {"p999_ms": through["p999"] / 1e3} if int(str(found["sent"])) >= TAIL else {}
        return tail | {
            "p50_ms": through["p50"] / 1e3,
            "p99_ms": through["p99"] / 1e3,
            "max_ms": through["max"] / 1e3,
            "ack_p50_ms": acks["p50"] / 1e3,
            "ack_p99_ms": acks["p99"] / 1e3,
            "late_p99_ms": late["p99"] / 1e3,
            "rate": rate,
            "bytes": float(str(found["sent"])) * self.size,
        }

    def _client(self, system: System, rate: float, seconds: float, skip: int) -> dict[str, object]:
        topic = system.peer.create(self.partitions)
        options = {
            "broker": system.bootstrap, "topic": topic, "partitions": self.partitions,
            "rate": rate, "seconds": seconds, "skip": skip, "size": self.size,
            "acks": self.acks, "linger": self.linger_ms,
        }  # fmt: skip
        command = [sys.executable, "-m", "benchmarks.compare.openloop"]
        command += [part for key, value in options.items() for part in (f"--{key}", str(value))]
        try:
            said = tools.finish(tools.begin(command))
            found = json.loads(said.splitlines()[-1])
            if not isinstance(found, dict):
                raise WrongAnswer(f"no figures in: {said[-300:]}")
            check.whole(system.peer, topic, self.partitions, int(found["sent"]))
        finally:
            system.peer.delete(topic)
        return found
