"""Partitions over several log folders: where they are opened, and what a folder that is away does
not do to them."""

import errno
import os
import shutil
from pathlib import Path

import pytest
from core_world import batch
from test_home import Cluster, produce

from appliance.base import errors
from appliance.base.errors import StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.metadata.identity import META_PROPERTIES, Identity, encode
from appliance.metadata.log_dirs import UNASSIGNED, LogDirs, read_log_dirs
from appliance.ring import partition_table as columns

A, B = b"a" * 16, b"b" * 16


class Folders(Cluster):
    """A cluster whose node has two log folders."""

    def __init__(self, folder):
        super().__init__(folder)
        self.paths = [str(folder / "a"), str(folder / "b")]
        for path in self.paths:
            os.mkdir(path)

    def topic(self, name, where, **rest):
        found = super().topic(name, partitions=len(where), **rest)
        for index, directory in enumerate(where):
            self.move(found, index, directory)
        return found

    def move(self, topic, index, *directories):
        """What the metadata says of where a partition is."""
        topic.partitions[index] = topic.partitions[index]._replace(directories=directories)

    def live(self, *, away=(), **rest):
        ids = tuple(None if n in away else one for n, one in enumerate((A, B)))
        return super().live(dirs=LogDirs(tuple(self.paths), ids), **rest)


@pytest.fixture
def cluster(tmp_path):
    cluster = Folders(tmp_path)
    yield cluster
    for life in cluster.lives:
        life.end()


def where(cluster):
    return [
        sorted(n for n in os.listdir(path) if "-" in n and "c" not in n) for path in cluster.paths
    ]


def test_a_partition_is_made_where_the_metadata_says_and_found_where_it_is(cluster):
    cluster.topic("t", [A, B, UNASSIGNED])
    life = cluster.live()
    assert where(cluster) == [["t-0", "t-2"], ["t-1"]]
    rows = [life.world.table.read_column(handle, columns.DIRECTORY) for handle in range(3)]
    assert rows == [0, 1, 0]
    os.rename(f"{cluster.paths[0]}/t-2", f"{cluster.paths[1]}/t-2")
    again = cluster.live()
    assert again.world.core.partitions[2].directory == 1


def test_a_folder_that_is_away_takes_only_its_partitions_offline(cluster):
    cluster.topic("t", [A, B])
    first = cluster.live()
    for handle in (0, 1):
        produce(first, handle, 3)
    second = cluster.live(away=(1,))
    assert list(second.world.core.partitions) == [0]
    assert second.world.core.partitions[0].log.end_offset == 3
    assert "partition=t-1" in second.said()
    assert second.world.table.read_column(1, columns.STATUS) == columns.OFFLINE
    second.world.append(1, batch(b"v"), acks=1)
    assert [m.flags for m in second.world.turn()] == [errors.KAFKA_STORAGE_ERROR]
    third = cluster.live()
    assert third.world.core.partitions[1].log.end_offset == 3


def test_a_folder_that_cannot_be_listed_is_away(cluster, monkeypatch):
    for path, one in zip(cluster.paths, (A, B), strict=True):
        Path(path, META_PROPERTIES).write_bytes(encode(Identity("c" * 22, 1, one)))
    assert read_log_dirs(OsDisk(), cluster.paths).ids == (A, B)

    def refused(disk, path):
        raise StorageFailed(path, errno.EIO, "broken")

    monkeypatch.setattr(OsDisk, "listdir", refused)
    assert read_log_dirs(OsDisk(), cluster.paths).ids == (A, None)


def test_what_may_be_in_a_folder_that_is_away_is_never_made_anew(cluster):
    cluster.topic("t", [UNASSIGNED, b"?" * 16])
    life = cluster.live(away=(1,))
    assert not life.world.core.partitions
    assert where(cluster) == [[], []]


def test_one_partition_in_two_folders_is_served_where_the_metadata_says(cluster):
    topic = cluster.topic("t", [B])
    produce(cluster.live(), 0, 2)
    shutil.copytree(f"{cluster.paths[1]}/t-0", f"{cluster.paths[0]}/t-0")
    life = cluster.live()
    assert life.world.core.partitions[0].directory == 1
    assert not os.path.exists(f"{cluster.paths[0]}/t-0"), "what a move left behind is removed"
    shutil.copytree(f"{cluster.paths[1]}/t-0", f"{cluster.paths[0]}/t-0")
    cluster.move(topic, 0)
    assert not cluster.live().world.core.partitions, "which of them is meant nobody knows"


def test_checkpoints_and_room_are_those_of_the_folder(cluster):
    cluster.topic("t", [A, B])
    life = cluster.live()
    produce(life, 1, 2)
    life.world.core.settle_all(0)
    for partition in life.world.core.partitions.values():
        partition.log.close()
    life.keeping.close()
    texts = [Path(p, "replication-offset-checkpoint").read_text() for p in cluster.paths]
    assert texts == ["0\n1\nt 0 0\n", "0\n1\nt 1 2\n"]
    guards = [type(life.world.space)(0, 0) for _ in range(2)]
    other = cluster.live()
    other.world.core.partitions[1].space = guards[1]
    guards[1].low = True
    for handle in (0, 1):
        other.world.append(handle, batch(b"v"), acks=1, token=handle)
    assert [(m.token, m.flags) for m in other.world.turn()] == [
        (1, errors.KAFKA_STORAGE_ERROR),
        (0, 0),
    ]
