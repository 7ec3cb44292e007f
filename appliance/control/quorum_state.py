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
from appliance.quorum.messages import Known
from appliance.quorum.voters import ANY
from appliance.wire.uuids import format_uuid, parse_uuid

NAME: Final = "quorum-state"
_NUMBERS: Final = ("leaderEpoch", "leaderId", "votedId")


def read(disk: Disk, folder: str) -> Known:
    """What was written last, epoch 0 when nothing was. Raises ConfigError when the file is not
    readable."""
    with _whole(f"{folder}/{NAME}"):
        state = _state(disk, folder)
        if not state:
            return Known()
        epoch, leader, voted = (int(state[name]) for name in _NUMBERS)
        directory = parse_uuid(state.get("votedDirectoryId", format_uuid(ANY)))
        return Known(max(epoch, 0), leader, voted, directory)


def voters(disk: Disk, folder: str) -> frozenset[int]:
    """Whose votes counted when it was written; nobody: there is no file, or the log names them.
    Raises ConfigError when the file is not readable."""
    with _whole(f"{folder}/{NAME}"):
        named = _state(disk, folder).get("currentVoters") or ()
        return frozenset(int(one["voterId"]) for one in named)


def dynamic(disk: Disk, folder: str) -> bool:
    """Whether the log named the voters when it was written. Raises ConfigError when the file is not
    readable."""
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


def write(disk: Disk, folder: str, known: Known, *, dynamic: bool, voters: Iterable[int]) -> None:
    """Durable at return. voters: named in the file unless they are `dynamic`."""
    state: dict[str, object]
    epoch, leader, voted, directory = known
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
