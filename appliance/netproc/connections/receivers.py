"""Targets of a connection's requests, and of the connection itself when this process ends. They are
base classes because compiled code calls their methods directly. C is the connection, which imports
this.
"""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from appliance.base.compiled import mypyc_attr
from appliance.handlers.exchange import Exchange

C = TypeVar("C")


@mypyc_attr(allow_interpreted_subclasses=True)
class RequestReceiver(ABC, Generic[C]):
    """Serves what a connection receives."""

    @abstractmethod
    def request(self, connection: C, position: int, end: int) -> None:
        """One whole frame lies at memory[position:end], without its length."""
        ...

    @abstractmethod
    def level(self, connection: C) -> bool:
        """Its next request may be taken although `applied` is behind `committed`."""
        ...

    def holds(self, connection: C) -> bool:
        """Its next request must not be taken before those under way are answered."""
        return False

    def end_polls(self, connection: C) -> None:
        """Its client sends nothing more: fetches that wait for records wait no longer."""

    @abstractmethod
    def abandoned(self, x: Exchange) -> None:
        """The answer to this is awaited no more: its connection is closed."""
        ...


@mypyc_attr(allow_interpreted_subclasses=True)
class HandoverTarget(ABC, Generic[C]):
    """Takes the connections over when this process ends and another one goes on."""

    @abstractmethod
    def takes(self, connection: C) -> bool:
        """Everything it asked is answered and sent: whether it is done with here."""
        ...
