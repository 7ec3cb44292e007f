"""Tells when no broker answers a consumer that waits for one, and when one does again."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import KafkaError


class Absence:
    """bootstrap: where the broker is. tell: takes each of the two sentences."""

    def __init__(self, bootstrap: str, tell: Callable[[str], object]) -> None:
        self._bootstrap = bootstrap
        self._tell = tell
        self._is_away = False

    def on_error(self, error: "KafkaError") -> None:
        """For librdkafka's `error_cb`."""
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._ALL_BROKERS_DOWN and not self._is_away:
            self._is_away = True
            self._tell(f"{self._bootstrap} does not answer; waiting for it")

    def on_message(self) -> None:
        """Something has come from a broker."""
        if self._is_away:
            self._is_away = False
            self._tell(f"{self._bootstrap} answers again")
