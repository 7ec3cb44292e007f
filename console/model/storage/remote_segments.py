"""Which segments of a data folder are in a remote store, out of the file beside each log.

Read while the appliance runs or not: what is told is on the disk. Segments that are on their way,
or on their way out, are told as unfinished.
"""

import re
from dataclasses import dataclass
from typing import Final

from appliance.base.disk import Disk
from appliance.base.errors import StorageFailed
from appliance.logstore import files
from appliance.logstore.partition_metadata import read_topic_id
from appliance.remotelog.expiry import select_chain
from appliance.remotelog.journal import NAME, read_journal

_FOLDER: Final = re.compile(
    rf"(?P<topic>.+)-(?P<partition>\d{{1,10}})(?P<deleted>\.[0-9a-f]{{32}}{files.DELETED_FOLDER})?\Z"
)
SERVED: Final = "served"
DELETED: Final = "deleted"


@dataclass
class RemotePartition:
    """first, end: offsets that the store has, from `first` on and below `end`. waiting: closed
    segments that lie here alone. problem: why the file cannot be read, "" when it can."""

    topic: str
    partition: int
    state: str
    remote_segments: int = 0
    remote_bytes: int = 0
    first: int = 0
    end: int = 0
    unfinished: int = 0
    local_segments: int = 0
    local_bytes: int = 0
    waiting: int = 0
    waiting_bytes: int = 0
    problem: str = ""


def find_partitions(disk: Disk, folder: str) -> list[RemotePartition]:
    """Every partition of a log folder that has segments in a remote store, or had. Raises
    StorageFailed for a folder that cannot be read."""
    found = []
    for name in disk.listdir(folder):
        parsed = _FOLDER.match(name)
        path = f"{folder}/{name}"
        if parsed is None or not disk.exists(f"{path}/{NAME}"):
            continue
        state = DELETED if parsed["deleted"] else SERVED
        one = RemotePartition(parsed["topic"], int(parsed["partition"]), state)
        try:
            _look_at(disk, path, one)
        except StorageFailed as failure:  # its folder may go while it is looked at
            one.problem = str(failure)
        found.append(one)
    return found


def _look_at(disk: Disk, path: str, one: RemotePartition) -> None:
    topic_id = read_topic_id(disk, path)
    if topic_id is None:
        one.problem = "partition.metadata says no topic id"
        return
    known, _ = read_journal(disk, path, topic_id, one.partition)
    finished = known.finished()
    one.remote_segments = len(finished)
    one.remote_bytes = sum(each.segment_size_in_bytes for each in finished)
    one.unfinished = len(known.unfinished())
    one.first, one.end = select_chain(finished, 0)
    bases = [base for name in disk.listdir(path) if (base := files.offset_of(name, files.LOG)) >= 0]
    sizes = [disk.size(f"{files.stem(path, base)}{files.LOG}") for base in bases]
    one.local_segments, one.local_bytes = len(bases), sum(sizes)
    closed = zip(bases[:-1], bases[1:], sizes[:-1], strict=True)
    waiting = [size for _, behind, size in closed if behind > one.end]
    one.waiting, one.waiting_bytes = len(waiting), sum(waiting)
