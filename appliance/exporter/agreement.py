"""The metadata log as one of those sees it that agree on it: who leads it, how long a commit takes,
how often it said that a partition's replicas fell behind or came back, and that it has another
leader."""

from collections import deque
from typing import Final

from appliance.exporter.exposition import Page
from appliance.exporter.requests import WINDOW_NS
from appliance.metadata.changes import Change, PartitionChanged
from appliance.metadata.image import MetadataImage
from appliance.ring.process_table import ProcessTable

_MS: Final = 1e6
_NS: Final = 1e9


class Agreement:
    """Looks now and then (`remember`), so that the last minute is known."""

    def __init__(self, table: ProcessTable, node_id: int) -> None:
        self._table = table
        self._node_id = node_id
        self._past: deque[tuple[int, tuple[int, int]]] = deque()
        self._shrinks = self._expands = 0
        self._elections = self._unclean = 0

    def changed(self, image: MetadataImage, changes: list[Change]) -> None:
        """Counts the changes of a replay. In-sync replicas count for the leader afterwards,
        elections for the node that leads the metadata log."""
        controls = self._table.leader[0] == self._node_id
        for one in changes:
            if not isinstance(one, PartitionChanged):
                continue
            self._elections += one.elected and controls
            self._unclean += one.unclean and controls
            if one.grown:
                topic = image.topics_by_id.get(one.topic_id)
                if topic is not None and topic.partitions[one.index].leader == self._node_id:
                    self._shrinks += one.grown < 0
                    self._expands += one.grown > 0

    def remember(self, now_ns: int) -> None:
        """Every ten seconds. The oldest look that is kept is a minute old, or was the first."""
        past = self._past
        past.append((now_ns, self._table.commits))
        while len(past) > 1 and now_ns - past[1][0] >= WINDOW_NS:
            past.popleft()

    def write_page(self, page: Page) -> None:
        """All of it."""
        leader, epoch = self._table.leader
        count, took_ns = self._table.commits
        page.add("penstock_controller_active", int(leader == self._node_id))
        page.add("penstock_metadata_leader", leader)
        page.add("penstock_metadata_epoch", epoch)
        page.add("penstock_metadata_offset", self._table.metadata_offset)
        page.add("penstock_metadata_commits_total", count)
        page.add("penstock_metadata_commit_seconds_total", took_ns / _NS)
        page.add("penstock_isr_shrinks_total", self._shrinks)
        page.add("penstock_isr_expands_total", self._expands)
        page.add("penstock_leader_elections_total", self._elections)
        page.add("penstock_unclean_leader_elections_total", self._unclean)
        if self._past:
            before, before_ns = self._past[0][1]
            average = (took_ns - before_ns) / (count - before) / _MS if count > before else 0.0
            page.add("kafka_server_raftmetrics_commit_latency_avg", round(average, 3))
