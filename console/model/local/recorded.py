"""Bytes that each client sent and read in the last ten minutes, second by second, from the history
of an appliance of this host.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from appliance.history.samples import ClientIdentity, ClientSample
from appliance.quotas.limits import FETCH, PRODUCE
from console.model.asking.link import Link
from console.model.local import history
from console.model.local.history import Past
from console.model.local.local import data_folder
from console.model.quotas.what_if import Traffic

_MOST_S: Final = 600


@dataclass(slots=True, frozen=True)
class Recorded:
    """seconds: how far back it goes. left_out: so many clients had no room at a time."""

    traffic: tuple[Traffic, ...]
    seconds: int
    left_out: int = 0


def recorded(link: Link) -> Recorded:
    """The recorded traffic of the appliance behind the link. Raises Failure, with the reason why it
    is not known.
    """
    past = history.read(data_folder(link))
    try:
        found = past.clients()
        times = past.whole(history.SECONDS).times
    finally:
        past.close()
    if not times:
        return Recorded((), 0)
    seconds = min(_MOST_S, round(times[-1] - times[0]) + 1)
    return Recorded(by_second(found.of, seconds, times[-1]), seconds, found.left_out)


def by_second(
    clients: Mapping[ClientIdentity, Past[ClientSample]], seconds: int, last_s: float
) -> tuple[Traffic, ...]:
    """So many seconds until last_s, wall clock. Time in which the appliance did not run, or the
    client did nothing, is there with 0; kinds of addresses count together."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for who, past in clients.items():
        amounts = found.setdefault(
            (who.user, who.client_id), {PRODUCE: [0.0] * seconds, FETCH: [0.0] * seconds}
        )
        for at_s, use in zip(past.times, past.told, strict=True):
            second = seconds - 1 - round(last_s - at_s)
            if 0 <= second < seconds:
                amounts[PRODUCE][second] += use.produced
                amounts[FETCH][second] += use.fetched
    return tuple(Traffic(*who, amounts) for who, amounts in found.items())
