"""Answers about the broker's own settings, kept as long as the settings stay as they are.

Explaining and encoding all of them takes milliseconds of control's only thread, and each client may
ask again and again. Caller: DescribeConfigs.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final

from appliance.config.broker import BrokerConfig
from appliance.metadata.effective import Explained, explain_broker
from appliance.metadata.image import BROKER, MetadataImage

Told = tuple[dict[str, Any], bytes]
"""An answer's fields, and the same encoded."""
_MOST: Final = 16
"""Answers; clients of one kind ask alike."""


class AnswerCache:
    """The settings and answers since the last change of a setting."""

    __slots__ = ("_answers", "_explained", "_stamp")

    def __init__(self) -> None:
        self._stamp: Hashable = None
        self._explained: list[Explained] = []
        self._answers: dict[Hashable, Told] = {}

    def explained(
        self, image: MetadataImage, config: BrokerConfig, node_id: int
    ) -> list[Explained]:
        """Returns every setting of this broker, by name."""
        dynamic = image.config(BROKER, str(node_id)), image.config(BROKER, "")
        stamp = (config.generation, *(frozenset(texts.items()) for texts in dynamic))
        if stamp != self._stamp:
            self._stamp = stamp
            self._explained = explain_broker(image, config, node_id)
            self._answers.clear()
        return self._explained

    def answer(self, asked: Hashable, make: Callable[[], Told]) -> Told:
        """Returns the answer to what was asked of the settings that `explained` gave last."""
        found = self._answers.pop(asked, None) or make()
        if len(self._answers) == _MOST:
            del self._answers[next(iter(self._answers))]
        self._answers[asked] = found  # the last one is the newest
        return found
