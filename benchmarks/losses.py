"""Decides whether a build is slower than the one before, by the noise that the same run measured.

Called by `benchmarks.guard`. Nothing here touches a clock or a broker.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

FLOOR: Final = 0.03
"""A smaller change is no loss, however quiet the machine is."""
_SIGMA: Final = 1.4826
"""Standard deviation of normal values over their median absolute deviation."""
_MEDIAN: Final = 1.2533
"""Standard error of a median over that of a mean."""
_ERRORS: Final = 3.0
"""A change counts from so many standard errors on: one figure in 700 does by chance."""


@dataclass(frozen=True)
class Round:
    """One figure of one round: of the new build, and of the old one, measured twice."""

    new: float
    old: float
    again: float

    @property
    def change(self) -> float:
        """Logarithm of the new build over the old one."""
        return math.log(self.new) - (math.log(self.old) + math.log(self.again)) / 2

    @property
    def noise(self) -> float:
        """Logarithm of the old build over itself."""
        return math.log(self.old) - math.log(self.again)


@dataclass(frozen=True)
class Verdict:
    """ratio: median of new over old. limit: the share by which they may differ by chance. word:
    "loss", "gain" or "same"."""

    ratio: float
    limit: float
    word: str


def judge(rounds: Sequence[Round], *, more_is_better: bool) -> Verdict:
    """Compares the builds over all rounds. Figures must be above zero; at least one round."""
    assert rounds, "nothing was measured"
    changes = [one.change for one in rounds]
    middle = statistics.median(changes)
    # The old build is the mean of two measurements: 1.5 variances against the 2 of `noise`.
    own = statistics.median(abs(one.noise) for one in rounds) * math.sqrt(0.75)
    spread = statistics.median(abs(change - middle) for change in changes)
    error = _MEDIAN * _SIGMA * max(own, spread) / math.sqrt(len(rounds))
    limit = max(FLOOR, _ERRORS * error)
    better = middle if more_is_better else -middle
    word = "loss" if better < -limit else "gain" if better > limit else "same"
    return Verdict(math.exp(middle), limit, word)
