"""Which decoder reads the values of a topic: the next one with each press, kept for the topic."""

from dataclasses import replace
from typing import Final

from console.model.decoding.decoded import AUTO, HEX, JSON, MSGPACK, TEXT, VALUE
from console.model.decoding.memory import Choices

_ORDER: Final = (AUTO, TEXT, JSON, MSGPACK, HEX)


def change(choices: Choices, topic: str) -> str:
    """Choose the next one; what is told of it."""
    before = choices.of(topic, VALUE)
    now = before.decoder
    chosen = _ORDER[(_ORDER.index(now) + 1) % len(_ORDER)] if now in _ORDER else AUTO
    choices.choose(topic, VALUE, replace(before, decoder=chosen))
    how = "as what fits them" if chosen == AUTO else f"as {chosen}"
    return f"values of {topic} are read {how} from now on"
