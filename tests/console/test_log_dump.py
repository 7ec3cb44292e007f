"""`penstock log dump` on the files of a real appliance, sound and damaged."""

import json

import confluent_kafka
import pytest

from tests.console_process import typing


def dump(*args, code=0):
    return typing("")("log", "dump", *map(str, args), code=code)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The data folder of an appliance that ended in order."""
    from penstock.local import Appliance

    with Appliance(tmp_path_factory.mktemp("dump") / "data") as one:
        config = {"bootstrap.servers": one.bootstrap, "enable.idempotence": True, "linger.ms": 0}
        producer = confluent_kafka.Producer(config | {"compression.type": "zstd"})
        for number in range(300):
            producer.produce("dumped", b"%d" % number * 100, b"key", headers={"h": b"\xff"})
            producer.flush(30)
    return one.data_dir


def test_a_segment_batch_by_batch_and_record_by_record(files):
    found = json.loads(dump(files / "dumped-0" / f"{0:020d}.log", "-r", "-o", "json").stdout)[0]
    assert found["problem"] == ""
    records = [record for batch in found["batches"] for record in batch["records"]]
    assert [r["offset"] for r in records] == list(range(300))
    assert records[7]["value"] == "7" * 100
    assert records[7]["key"] == "key"
    assert records[7]["headers"] == [{"key": "h", "value_base64": "/w=="}]
    positions = [b["position"] for b in found["batches"]]
    sizes = [b["size"] for b in found["batches"]]
    assert positions == [sum(sizes[:n]) for n in range(len(sizes))]


def test_indexes_point_at_batches(files):
    folder = files / "dumped-0"
    log, index, times = json.loads(
        dump(*(folder / f"{0:020d}{end}" for end in (".log", ".index", ".timeindex")),
             "-o", "json").stdout
    )  # fmt: skip
    places = {batch["position"]: batch["last_offset"] for batch in log["batches"]}
    assert index["entries"]
    assert all(places[e["position"]] == e["offset"] for e in index["entries"])
    assert times["entries"][-1]["timestamp"] <= log["batches"][-1]["max_timestamp"]


def test_a_producer_snapshot(files):
    file = next((files / "dumped-0").glob("*.snapshot"))
    producer = json.loads(dump(file, "-o", "json").stdout)[0]["producers"][0]
    assert producer["last_offset"] == 299
    assert producer["last_sequence"] == 299
    assert producer["transaction_start"] == -1


def test_the_metadata_log_and_its_snapshot(files):
    log = files / "__cluster_metadata-0" / f"{0:020d}.log"
    rows = [json.loads(line) for line in dump(log, "-o", "jsonl").stdout.splitlines()]
    records = [record for row in rows for record in row["records"]]
    topic = next(r for r in records if r["type"] == "TopicRecord")
    assert topic["name"] == "dumped"
    checkpoint = json.loads(dump(files / "bootstrap.checkpoint", "-o", "json").stdout)[0]
    types = [r["type"] for batch in checkpoint["batches"] for r in batch["records"]]
    assert types[0] == "SnapshotHeaderRecord"
    assert types[-1] == "SnapshotFooterRecord"


@pytest.mark.parametrize(
    ("name", "harm", "words"),
    [
        ("flipped.log", lambda data: data[:70] + bytes([data[70] ^ 1]) + data[71:], "CRC32C"),
        ("back.log", lambda data: data + data, "goes back to offset 0"),
        ("cut.log", lambda data: data[:-3], "cut off"),
        ("tail.log", lambda data: data + b"\0\0\0", "3 bytes"),
        ("random.log", lambda _: bytes(range(256)), "format 2"),
    ],
)
def test_damage_is_told_with_code_4_and_what_is_before_it_is_shown(
    files, tmp_path, name, harm, words
):
    data = (files / "dumped-0" / f"{0:020d}.log").read_bytes()
    (tmp_path / name).write_bytes(harm(data))
    done = dump(tmp_path / name, "-o", "json", code=4)
    assert words in done.stderr
    assert words in json.loads(done.stdout)[0]["problem"]


def test_a_file_that_is_not_there(tmp_path):
    assert "nothing.log" in dump(tmp_path / "nothing.log", code=1).stderr


def test_people_get_a_table(files):
    out = dump(files / "dumped-0" / f"{0:020d}.log", files / "meta.properties").stdout
    assert "BASE OFFSET" in out
    assert "cluster.id=" in out


def test_offsets_that_no_segment_has_are_named(files, tmp_path):
    whole = files / "dumped-0" / f"{0:020d}.log"
    (log,) = json.loads(dump(whole, "-o", "json").stdout)
    at = {batch["base_offset"]: batch["position"] for batch in log["batches"]}
    data = whole.read_bytes()
    folder = tmp_path / "orders-0"
    folder.mkdir()
    for base, end in ((0, 100), (100, 200), (200, None)):
        part = data[at[base] : at.get(end)]
        (folder / f"{base:020d}.log").write_bytes(part)
    assert dump(tmp_path).stderr == ""
    (folder / f"{100:020d}.log").unlink()
    assert f"{folder}: no segment has the offsets 100 to 199: " in dump(tmp_path).stderr
