"""The state of one tiered partition, and its task under way."""

from dataclasses import field
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.ioproc.partitions.partition import Partition
from appliance.remotelog.journal import RemoteJournal
from appliance.remotelog.records import RemoteLogSegmentMetadataRecord

COPY: Final = 0
DELETE: Final = 1


@dataclass(slots=True, eq=False)
class TierTask:
    """The copy or deletion of one segment. one: as it was when the task began. over: everything is
    deleted because tiering was switched off, and what lies here too stays readable. paths, data: of
    a copy, by kind."""

    kind: int
    one: RemoteLogSegmentMetadataRecord
    over: bool = False
    paths: dict[str, str] = field(default_factory=dict)
    data: dict[str, bytes] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class TieredPartition:
    """failures: in a row. again_ns: not before. said: of the failure told last. writes: records
    that the thread has not written yet."""

    partition: Partition
    journal: RemoteJournal
    task: TierTask | None = None
    failures: int = 0
    again_ns: int = 0
    said: str = ""
    writes: int = 0
