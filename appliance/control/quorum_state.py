"""`quorum-state`: the newest epoch this voter knows, in KRaft's own JSON.

Written before a node acts as leader of an epoch, so that no epoch has two leaders whatever dies
when. Version 0 names the voters (static quorum), version 1 does not (KIP-853).
"""

import json
from typing import Final

from appliance.base.disk import Disk, read_file, write_file
from appliance.base.errors import ConfigError
from appliance.wire.uuids import format_uuid

NAME: Final = "quorum-state"
_NOBODY: Final = -1


def read_epoch(disk: Disk, folder: str) -> int:
    """The newest epoch, 0 when there was none. Raises ConfigError when the file is not readable."""
    path = f"{folder}/{NAME}"
    if not disk.exists(path):
        return 0
    try:
        state = json.loads(read_file(disk, path))
        return max(int(state["leaderEpoch"]), 0)
    except (ValueError, KeyError, TypeError) as cause:
        raise ConfigError(f"{path} is damaged ({cause}); restore it from a copy") from cause


def write(disk: Disk, folder: str, *, leader_id: int, epoch: int, dynamic: bool) -> None:
    """This node leads `epoch`; durable at return."""
    state: dict[str, object]
    if dynamic:
        state = {
            "leaderId": leader_id,
            "leaderEpoch": epoch,
            "votedId": _NOBODY,
            "votedDirectoryId": format_uuid(bytes(16)),
            "data_version": 1,
        }
    else:
        state = {
            "clusterId": "",
            "leaderId": leader_id,
            "leaderEpoch": epoch,
            "votedId": _NOBODY,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": leader_id}],
            "data_version": 0,
        }
    text = json.dumps(state, separators=(",", ":"))
    write_file(disk, f"{folder}/{NAME}", text.encode())
