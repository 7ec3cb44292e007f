"""`penstock storage …` on the folder of a real appliance, while it runs and behind its end."""

import json
import shutil
from dataclasses import replace

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from appliance.base.os_disk import OsDisk
from appliance.ioproc.durability import checkpoints
from appliance.supervisor.folder import CLEAN_NAME
from console.model.storage.reclaim import find_space, now
from console.model.storage.storage import Scrub
from console.model.storage.storage_repair import FETCH, carry_out, plan
from penstock.local import Appliance
from tests.console_process import typing

RECORDS = 30
SIZE = 100_000
"""Ten records fill the smallest segment that a topic may have."""


def penstock(*args, code=0):
    return typing("")("storage", *map(str, args), code=code)


def told(*args, code=0):
    return json.loads(penstock(*args, "-o", "json", code=code).stdout)


def produce(one, topic, first, count):
    """Each record a batch of its own."""
    producer = confluent_kafka.Producer({"bootstrap.servers": one.bootstrap, "linger.ms": 0})
    for number in range(first, first + count):
        producer.produce(topic, str(number).encode().ljust(SIZE, b"."), partition=0)
        producer.flush(30)


def consumed(one, topic, last):
    """The numbers of all records up to that one, as a consumer from the beginning gets them."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": one.bootstrap, "group.id": "g"})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found = []
    while not found or found[-1] != last:
        record = consumer.poll(30)
        assert record is not None and not record.error()
        found.append(int(record.value().rstrip(b".")))
    consumer.close()
    return found


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """The folder of an appliance that was verified while it ran, and ended in order."""
    with Appliance(tmp_path_factory.mktemp("storage") / "data") as one:
        admin = AdminClient({"bootstrap.servers": one.bootstrap})
        small = {"segment.bytes": str(1 << 20)}
        made = admin.create_topics(
            [NewTopic(name, 1, 1, config=small) for name in ("kept", "cut", "empty")]
        )
        for future in made.values():
            future.result(30)
        produce(one, "kept", 0, RECORDS)
        produce(one, "cut", 0, RECORDS)
        while_it_runs = penstock("verify", one.data_dir)
        assert "sound" in while_it_runs.stderr and "the appliance runs" in while_it_runs.stderr
    return one.data_dir


@pytest.fixture
def stopped(pristine, tmp_path):
    """An appliance over a copy of that folder, which the test may damage."""
    shutil.copytree(pristine, tmp_path / "stopped" / "data")
    return Appliance(tmp_path / "stopped" / "data")


def segments(one, topic):
    return sorted((one.data_dir / f"{topic}-0").glob("*.log"))


def test_a_sound_folder_is_said_to_be_sound(stopped):
    assert told("verify", stopped.data_dir) == []
    assert "is no data folder" in penstock("verify", stopped.data_dir.parent, code=2).stderr
    assert (
        "no partition of other"
        in penstock("verify", stopped.data_dir, "-t", "other", code=2).stderr
    )


def test_what_is_damaged_is_told_with_its_offsets_and_the_exit_code_says_so(stopped):
    second = segments(stopped, "kept")[1]
    raw = second.read_bytes()
    second.write_bytes(raw[:150] + b"\xff" + raw[151:])
    [row] = told("verify", stopped.data_dir, code=4)
    first = int(second.stem)
    assert row["file"] == str(second) and row["partition"] == "kept-0" and row["position"] == 0
    assert row["first_offset"] == row["last_offset"] == first
    assert f"offset {first} cannot be read" in row["means"] and "repair" in row["remedy"]
    assert "damage: " in penstock("verify", stopped.data_dir, "-t", "kept", code=4).stdout
    assert told("verify", stopped.data_dir, "-t", "cut") == []
    assert told("verify", second.parent, code=4) == [row]
    second.write_bytes(raw)


def test_a_repair_sets_aside_what_is_damaged_and_consumers_get_past_it(stopped):
    data = stopped.data_dir
    middle, last = segments(stopped, "kept")[1], segments(stopped, "cut")[-1]
    at = middle.stat().st_size // 2
    raw = bytearray(middle.read_bytes())
    raw[at : at + 10] = b"\xff" * 10
    middle.write_bytes(raw)
    end = last.stat().st_size
    with last.open("r+b") as file:
        file.truncate(end - 10)
    index = segments(stopped, "kept")[0].with_suffix(".index")
    index.write_bytes(b"\x7f" * 16)
    planned = {row["partition"]: row for row in told("repair", data, "--dry-run", code=4)}
    assert {row["action"] for row in planned.values()} == {"set aside"}
    [gap] = planned["kept-0"]["lost_offsets"]
    lost = int(gap.partition("-")[0])
    assert gap == f"{lost}-{lost}" and planned["kept-0"]["files"] == 2
    assert planned["cut-0"]["lost_offsets"] == [f"{RECORDS - 1}-{RECORDS - 1}"]
    assert "needs --yes" in penstock("repair", data, code=2).stderr
    done = {row["partition"]: row for row in told("repair", data, "--yes")}
    aside = data / done["kept-0"]["beside"] / middle.name
    assert aside.read_bytes() == raw
    assert [row["harmless"] for row in told("verify", data)] == [True, True]
    assert told("repair", data, "--dry-run") == []
    with stopped as one:
        assert "in use" in penstock("repair", data, code=1).stderr
        assert consumed(one, "kept", RECORDS - 1) == [n for n in range(RECORDS) if n != lost]
        produce(one, "cut", RECORDS, 1)
        assert consumed(one, "cut", RECORDS) == [n for n in range(RECORDS + 1) if n != RECORDS - 1]


def test_what_another_node_has_too_is_set_aside_whole_and_this_node_says_it_ended_in_no_order(
    stopped, tmp_path
):
    data = tmp_path / "data"
    shutil.copytree(stopped.data_dir, data)
    assert (data / CLEAN_NAME).exists()
    first = sorted((data / "kept-0").glob("*.log"))[0]
    first.write_bytes(b"\xff" * 100 + first.read_bytes()[100:])
    disk, what = OsDisk(), Scrub(OsDisk(), [str(data)], "kept")
    what.places = [replace(place, elsewhere=True) for place in what.places]
    [one], _ = plan(disk, what, lambda _: None)
    beside = carry_out(disk, one, 1)
    assert one.action == FETCH and not (data / "kept-0").exists()
    assert sorted(one.files) == disk.listdir(beside)
    assert ("kept", 0) not in checkpoints.read(disk, str(data), checkpoints.RECOVERY_POINT)
    assert not (data / CLEAN_NAME).exists(), "else it may be elected with nothing"


def test_what_takes_space_is_told_and_only_what_is_named_and_nobody_reads_is_deleted(stopped):
    data = stopped.data_dir
    for topic in ("kept", "cut"):
        last = segments(stopped, topic)[-1]
        last.write_bytes(last.read_bytes()[:-10])
    penstock("repair", data, "--yes")
    aside = sorted(path.name for path in data.glob("*-stray"))
    rows = {row["name"]: row for row in told("reclaim", data)}
    assert aside and set(aside) < set(rows)
    assert rows["kept"]["kind"] == "topic" and rows["kept"]["bytes"] > (RECORDS - 2) * SIZE
    assert rows["kept"]["due"] == 0 and not rows["kept"]["removable"]
    assert (
        "cannot be deleted here"
        in penstock("reclaim", data, "--delete", "kept", "--yes", code=2).stderr
    )
    assert "needs --yes" in penstock("reclaim", data, "--delete", aside[0], code=2).stderr
    [row] = told("reclaim", data, "--delete", aside[0], "--yes")
    assert row["kind"] == "set aside" and row["bytes"] > 0
    assert [path.name for path in data.glob("*-stray")] == aside[1:]
    week = find_space(OsDisk(), [str(data)], now() + 7 * 86_400_000)
    assert next(one for one in week if one.name == "kept").due > RECORDS * SIZE / 2


def test_without_the_metadata_nothing_is_repaired(stopped, tmp_path):
    (tmp_path / "meta.properties").write_bytes((stopped.data_dir / "meta.properties").read_bytes())
    shutil.copytree(stopped.data_dir / "kept-0", tmp_path / "kept-0")
    assert "name the first log folder" in penstock("repair", tmp_path, "--dry-run", code=2).stderr
    both = penstock("repair", stopped.data_dir, tmp_path, "--dry-run")
    assert "nothing to mend" in both.stderr
