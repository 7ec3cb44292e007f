"""Records of the metadata log: Kafka's bytes decode and encode again, nothing else is taken."""

import dataclasses
from typing import Any

import pytest
from golden_lines import golden
from hypothesis import given
from hypothesis import strategies as st

from appliance.base.errors import CORRUPT_MESSAGE, PeerError
from appliance.wire import control_records
from appliance.wire import kraft_records as kraft
from appliance.wire.batch import NewRecord, build_batch, checksum_holds, iter_records, read_header
from appliance.wire.uuids import format_uuid, parse_uuid

KAFKA = [
    (name, int(version), bytes.fromhex(text)) for name, version, text in golden("kraft_records.hex")
]
ID = bytes(range(1, 17))


@pytest.mark.parametrize(("name", "version", "encoded"), KAFKA)
def test_kafkas_record_decodes_and_encodes_to_the_same_bytes(
    name: str, version: int, encoded: bytes
) -> None:
    record, written = kraft.decode_versioned(encoded)
    assert (type(record).__name__, written) == (name, version)
    assert kraft.encode(record, version) == encoded


@pytest.mark.parametrize(("name", "version", "encoded"), KAFKA)
def test_cut_or_with_a_tail_it_is_corrupt(name: str, version: int, encoded: bytes) -> None:
    for broken in [*(encoded[:size] for size in range(len(encoded))), encoded + b"\0"]:
        with pytest.raises(PeerError) as caught:
            kraft.decode(broken)
        assert caught.value.code == CORRUPT_MESSAGE


def test_every_record_type_has_a_golden_of_every_version() -> None:
    seen = {(name, version) for name, version, _ in KAFKA}
    for cls in kraft.RECORD_TYPES.values():
        versions: range = cls.VERSIONS  # type: ignore[attr-defined]
        assert {(cls.__name__, version) for version in versions} <= seen


def test_fields_say_what_kafka_wrote() -> None:
    found = {(name, version): kraft.decode(encoded) for name, version, encoded in KAFKA}
    assert found["TopicRecord", 0] == kraft.TopicRecord(name="orders", topic_id=ID)
    assert found["ConfigRecord", 0] == kraft.ConfigRecord(
        resource_type=4, resource_name="", name="x", value=None
    )
    broker = found["RegisterBrokerRecord", 4]
    assert isinstance(broker, kraft.RegisterBrokerRecord)
    assert broker.end_points == (
        kraft.BrokerEndpoint(name="PLAINTEXT", host="h", port=59092, security_protocol=0),
    )
    assert (broker.rack, broker.log_dirs[0], broker.cordoned_log_dirs) == ("r1", ID, ())
    unchanged = found["PartitionChangeRecord", 2]
    assert unchanged == kraft.PartitionChangeRecord(partition_id=3, topic_id=ID)


def test_unknown_tagged_fields_are_skipped() -> None:
    assert kraft.decode(bytes.fromhex("01140001050201ff")) == kraft.NoOpRecord()


@pytest.mark.parametrize("text", ["", "02140000", "011d0000", "01140100", "ff" * 9, "0114"])
def test_unknown_frames_types_and_versions_are_corrupt(text: str) -> None:
    with pytest.raises(PeerError) as caught:
        kraft.decode(bytes.fromhex(text))
    assert caught.value.code == CORRUPT_MESSAGE


@given(st.binary(max_size=100))
def test_any_bytes_are_a_record_or_corrupt(data: bytes) -> None:
    try:
        record, version = kraft.decode_versioned(data)
    except PeerError as error:
        if error.code != CORRUPT_MESSAGE:
            raise
        return
    assert kraft.decode_versioned(kraft.encode(record, version))[1] == version


@pytest.mark.parametrize(("name", "key", "value"), golden("control_records.hex"))
def test_kafkas_control_records(name: str, key: str, value: str) -> None:
    message = control_records.decode(bytes.fromhex(key), bytes.fromhex(value))
    assert type(message).__name__ == name
    assert control_records.encode(message) == (bytes.fromhex(key), bytes.fromhex(value))
    for size in range(len(value) // 2):
        with pytest.raises(PeerError):
            control_records.decode(bytes.fromhex(key), bytes.fromhex(value)[:size])


def test_leader_change_version_1_names_directories() -> None:
    voter = control_records.VoterRecord(voter_id=1, voter_directory_id=ID)
    message = control_records.LeaderChangeMessage(
        version=1, leader_id=1, voters=(voter,), granting_voters=(voter,)
    )
    assert control_records.decode(*control_records.encode(message)) == message
    old = dataclasses.replace(message, version=0)
    (without,) = control_records.decode(*control_records.encode(old)).voters  # type: ignore[union-attr]
    assert without == control_records.VoterRecord(voter_id=1)


@pytest.mark.parametrize(("name", "text"), golden("snapshots.hex"))
def test_kafkas_snapshot_file_is_rebuilt_byte_by_byte(name: str, text: str) -> None:
    whole = bytes.fromhex(text)
    rebuilt, types = b"", []
    while len(rebuilt) < len(whole):
        header = read_header(whole, len(rebuilt))
        batch = memoryview(whole)[len(rebuilt) : len(rebuilt) + header.size]
        assert checksum_holds(batch)
        records = []
        for offset, timestamp, key, value, _ in iter_records(batch):
            assert offset == header.base_offset + len(records)
            message: Any
            if header.is_control:
                message = control_records.decode(key, value)
                records.append(NewRecord(timestamp, *control_records.encode(message)))
            else:
                assert value is not None
                message = kraft.decode(value)
                records.append(NewRecord(timestamp, None, kraft.encode(message)))
            types.append(type(message).__name__)
        rebuilt += build_batch(
            records,
            base_offset=header.base_offset,
            leader_epoch=header.leader_epoch,
            control=header.is_control,
        )
    assert rebuilt == whole
    if name != "bootstrap.checkpoint":
        assert types[0] == "SnapshotHeaderRecord"
        assert types[-1] == "SnapshotFooterRecord"


@given(st.binary(min_size=16, max_size=16))
def test_ids_as_text(value: bytes) -> None:
    text = format_uuid(value)
    assert len(text) == 22
    assert parse_uuid(text) == value


def test_kafkas_text_of_an_id() -> None:
    assert format_uuid(bytes(16)) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert parse_uuid("MkU3OEVBNTcwNTJENDM2Qg") == b"2E78EA57052D436B"


@pytest.mark.parametrize(
    "text", ["", "short", "A" * 21, "A" * 23, "A" * 21 + "B", "A" * 21 + "+", "é" * 22]
)
def test_what_is_not_an_id(text: str) -> None:
    with pytest.raises(ValueError, match="22 characters"):
        parse_uuid(text)
