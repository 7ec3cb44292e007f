"""Whether all nodes hold the same: of topics, those of groups and transactions, too, and of the
metadata."""

import shutil

from appliance.observer.door import Observer
from appliance.wire.batch_header import HEADER_SIZE, read_header
from tests.cluster.nodes import whole_batches

METADATA = "__cluster_metadata-0"


def compare(nodes, topics):
    """topics: name → number of partitions. Nobody writes to them any more; waits until what was
    written is everywhere."""
    for topic, count in topics.items():
        nodes.wait(lambda: nodes.level(topic, count), f"{topic} is level")  # noqa: B023
        nodes.compare_replicas(topic, count)


def compare_metadata(nodes):
    """Each node has what is committed, and of what two of them hold (one may begin with a snapshot
    where another still has records) both hold the same."""
    committed = max(_committed(nodes, number) for number in nodes.living)
    assert committed > 0
    nodes.wait(
        lambda: all(_committed(nodes, number) >= committed for number in nodes.living),
        f"all know the metadata up to {committed}",
    )
    logs = {number: _batches(nodes[number].data, committed) for number in nodes.living}
    for number, log in logs.items():
        assert log, f"node {number} has no batch of the metadata log below {committed}"
        ends = max(end for end, _ in log.values())
        assert ends >= committed, f"node {number} has metadata up to {ends} of {committed}"
    hold_the_same(logs)


def hold_the_same(logs):
    """logs: node → its batches by base offset, which begin where they like."""
    for one, mine in logs.items():
        for other, its in logs.items():
            first = max(min(mine), min(its))
            pairs = [{at: got for at, got in log.items() if at >= first} for log in (mine, its)]
            assert pairs[0] == pairs[1], f"the metadata of {one} and {other} part: {_part(pairs)}"


def keep_metadata(nodes, place):
    """Copies of what each living node's metadata log holds, for who wants to know what was decided:
    the disks of the nodes go with them."""
    for number in nodes.living:
        (folder,) = nodes[number].data.rglob(METADATA)
        shutil.copytree(folder, place / f"node-{number}", dirs_exist_ok=True)


def _committed(nodes, number):
    return Observer(str(nodes[number].data)).tables.processes.metadata_offset


def _batches(data, end):
    """Base offset → (offset behind it, bytes) of all batches that begin before `end`."""
    (folder,) = data.rglob(METADATA)
    found = {}
    for path in sorted(folder.glob("*.log")):
        log, at = whole_batches(path.read_bytes()), 0
        while at < len(log):
            head = read_header(log, at)
            if head.base_offset < end:
                behind = head.base_offset + head.last_offset_delta + 1
                found[head.base_offset] = (behind, log[at : at + head.size])
            at += head.size
            assert head.size >= HEADER_SIZE
    return found


def _part(pairs):
    one, other = pairs
    return sorted(at for at in one.keys() | other.keys() if one.get(at) != other.get(at))[:3]
