"""This node's own requests while it is the active controller: decided and answered as any peer's
request, without a socket.

Called by `shell.py` as one more network process, whose answers go to who asked.
"""

from itertools import count
from typing import Final

from appliance.base.errors import NONE, PeerError
from appliance.peers.conversation import Done
from appliance.wire.messages import decode_response

OWN: Final = -1
"""The index of the network process that this stands for."""


class OwnAnswers:
    """The waiting callbacks, by token."""

    __slots__ = ("_numbers", "_waiting")

    def __init__(self) -> None:
        self._numbers = count(1)
        self._waiting: dict[int, tuple[int, int, Done]] = {}

    def token(self, api_key: int, version: int, done: Done) -> int:
        """For a question in this version; `done` gets kio's answer or a PeerError, once."""
        number = next(self._numbers)
        self._waiting[number] = api_key, version, done
        return number

    def put_answer(self, token: int, code: int, body: bytes) -> None:
        """The answer to what was asked with this token."""
        api_key, version, done = self._waiting.pop(token)
        if code != NONE:
            done(PeerError(code, "refused by ourselves"))
        else:
            done(decode_response(api_key, version, body))
