"""`quorum-state`: the newest epoch this voter knows, who leads it and who got this voter's vote, in
KRaft's own JSON.

Written before a node acts on it, so that no epoch has two leaders whatever dies when. Version 0
names the voters (static quorum), version 1 does not (KIP-853).
"""

import json
from collections.abc import Iterable
from typing import Final

from appliance.base.disk import Disk, read_file, write_file
from appliance.base.errors import ConfigError
from appliance.quorum.messages import Known
from appliance.wire.uuids import format_uuid

NAME: Final = "quorum-state"
_NUMBERS: Final = ("leaderEpoch", "leaderId", "votedId")


def read(disk: Disk, folder: str) -> Known:
    """What was written last, epoch 0 when nothing was. Raises ConfigError when the file is not
    readable."""
    path = f"{folder}/{NAME}"
    if not disk.exists(path):
        return Known()
    try:
        state = json.loads(read_file(disk, path))
        epoch, leader, voted = (int(state[name]) for name in _NUMBERS)
    except (ValueError, KeyError, TypeError) as cause:
        raise ConfigError(f"{path} is damaged ({cause}); restore it from a copy") from cause
    return Known(max(epoch, 0), leader, voted)


def write(disk: Disk, folder: str, known: Known, *, dynamic: bool, voters: Iterable[int]) -> None:
    """Durable at return. voters: named in the file unless they are `dynamic`."""
    state: dict[str, object]
    epoch, leader, voted = known
    if dynamic:
        state = {
            "leaderId": leader,
            "leaderEpoch": epoch,
            "votedId": voted,
            "votedDirectoryId": format_uuid(bytes(16)),
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
