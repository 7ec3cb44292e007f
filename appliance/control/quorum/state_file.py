"""`quorum-state`: the newest epoch this voter knows, who leads it and who got this voter's vote, in
KRaft's own JSON.

Written before a node acts on it, so that no epoch has two leaders whatever dies when. Version 0
names the voters (static quorum), version 1 does not (KIP-853).
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from appliance.base.disk import Disk, read_file, write_file
from appliance.base.errors import ConfigError
from appliance.quorum.epochs import LAST, MOST_AHEAD
from appliance.quorum.messages import NOBODY, QuorumState
from appliance.quorum.voters import ANY
from appliance.wire.uuids import format_uuid, parse_uuid

NAME: Final = "quorum-state"
_NUMBERS: Final = ("leaderEpoch", "leaderId", "votedId")
_LAST_ID: Final = (1 << 31) - 1


def read(disk: Disk, folder: str) -> QuorumState:
    """Reads the last written state, epoch 0 when there is none. Raises ConfigError when the file is
    not readable.
    """
    with _whole(f"{folder}/{NAME}"):
        state = _state(disk, folder)
        if not state:
            return QuorumState()
        epoch, leader, voted = (int(state[name]) for name in _NUMBERS)
        directory = parse_uuid(state.get("votedDirectoryId", format_uuid(ANY)))
        return QuorumState(max(epoch, 0), leader, voted, directory)


def mend(known: QuorumState, log_epoch: int) -> tuple[QuorumState, str]:
    """Replaces what no election can have made: an epoch behind the last one, an id that is none.
    Returns what to go on with, and in words which value became which, "" for none.

    log_epoch: the newest epoch of the log. The new epoch lies far enough behind it that this
    replica has not voted there: elections that leave no record in a log are few."""
    told = []
    epoch, leader, voted, directory = known
    if epoch > LAST:
        epoch, leader, voted, directory = log_epoch + MOST_AHEAD, NOBODY, NOBODY, ANY
        told.append(f"leaderEpoch {known.epoch} to {epoch}, leaderId and votedId to {NOBODY}")
    if not NOBODY <= leader <= _LAST_ID:
        told.append(f"leaderId {leader} to {NOBODY}")
        leader = NOBODY
    if not NOBODY <= voted <= _LAST_ID:
        told.append(f"votedId {voted} to {_LAST_ID}")
        voted = _LAST_ID  # the vote of this epoch is given, to a node that is not known
    return QuorumState(epoch, leader, voted, directory), ", ".join(told)


def voters(disk: Disk, folder: str) -> frozenset[int]:
    """The voters when it was written; empty: there is no file, or the log names them. Raises
    ConfigError when the file is not readable.
    """
    with _whole(f"{folder}/{NAME}"):
        named = _state(disk, folder).get("currentVoters") or ()
        return frozenset(int(one["voterId"]) for one in named)


def dynamic(disk: Disk, folder: str) -> bool:
    """True if the log named the voters when it was written. Raises ConfigError when the file is not
    readable.
    """
    with _whole(f"{folder}/{NAME}"):
        return int(_state(disk, folder).get("data_version", 0)) > 0


def _state(disk: Disk, folder: str) -> dict[str, Any]:
    path = f"{folder}/{NAME}"
    if not disk.exists(path):
        return {}
    found = json.loads(read_file(disk, path))
    if not isinstance(found, dict):
        raise TypeError("it is no object")
    return found


@contextmanager
def _whole(path: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError) as cause:
        raise ConfigError(f"{path} is damaged ({cause}); restore it from a copy") from cause


def write_state(
    disk: Disk, folder: str, known: QuorumState, *, dynamic: bool, voters: Iterable[int]
) -> None:
    """Durable at return. voters: named in the file unless they are `dynamic`."""
    state: dict[str, object]
    epoch, leader, voted, directory = known
    assert 0 <= epoch <= LAST and max(leader, voted) <= _LAST_ID, f"{known} is read by nobody"
    if dynamic:
        state = {
            "leaderId": leader,
            "leaderEpoch": epoch,
            "votedId": voted,
            "votedDirectoryId": format_uuid(directory),
            "data_version": 1,
        }
    else:
        state = {
            "clusterId": "",
            "leaderId": leader,
            "leaderEpoch": epoch,
            "votedId": voted,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in voters],
            "data_version": 0,
        }
    text = json.dumps(state, separators=(",", ":"))
    write_file(disk, f"{folder}/{NAME}", text.encode())
