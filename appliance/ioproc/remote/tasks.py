"""The state of one tiered partition, and its task under way."""

from dataclasses import field
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.ioproc.partitions.partition import Partition
from appliance.remotelog.journal import RemoteJournal
from appliance.remotelog.manifests import NO_TERM, Term
from appliance.remotelog.records import RemoteLogSegmentMetadataRecord

COPY: Final = 0
DELETE: Final = 1
CLAIM: Final = 2
"""A new leader takes over what earlier ones said."""
FOLLOW: Final = 3
"""A follower reads what its leader says."""
SWEEP: Final = 4
"""A leader removes what earlier ones left behind while they did not know of it."""


@dataclass(slots=True, eq=False)
class TierTask:
    """A task of one partition. epoch: the leader epoch in which it began; it ends with that. one:
    of a copy or a deletion, the segment as it was then. over: everything is deleted because tiering
    was switched off, and what lies here too stays readable. paths, data: of a copy, by kind.
    entries: of a manifest that came."""

    kind: int
    epoch: int
    one: RemoteLogSegmentMetadataRecord | None = None
    over: bool = False
    paths: dict[str, str] = field(default_factory=dict)
    data: dict[str, bytes] = field(default_factory=dict)
    entries: bytes | None = None

    @property
    def segment(self) -> RemoteLogSegmentMetadataRecord:
        """That of a copy or a deletion."""
        assert self.one is not None
        return self.one


@dataclass(slots=True, eq=False)
class TieredPartition:
    """failures: in a row. again_ns: not before. said: of the failure told last. writes: records
    that the thread has not written yet. claimed: the leader epoch in which this node has claimed
    the partition, -1 before. term: of the manifest that was read or written last. look_ns: when a
    follower reads the manifest, and a leader sweeps, though nothing asks for it."""

    partition: Partition
    journal: RemoteJournal
    task: TierTask | None = None
    failures: int = 0
    again_ns: int = 0
    said: str = ""
    writes: int = 0
    claimed: int = -1
    term: Term = NO_TERM
    look_ns: int = 0

    @property
    def key(self) -> tuple[bytes, int]:
        """Topic id, partition."""
        return self.partition.topic_id, self.partition.index
