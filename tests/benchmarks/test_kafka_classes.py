"""Where the archive of Kafka's classes lies, and which JVMs use it."""

import pytest

from benchmarks import kafka, kafka_classes


@pytest.fixture
def jars(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PENSTOCK_KAFKA_LIBS", str(tmp_path / "libs"))
    folder = tmp_path / "libs"
    folder.mkdir()
    (folder / f"{kafka.TOOLS}-4.3.1.jar").write_bytes(b"PK")
    kafka_classes.archive.cache_clear()
    yield folder
    kafka_classes.archive.cache_clear()


def test_a_small_jvm_uses_the_archive_that_is_there(jars):
    assert not [word for word in kafka.java("Tool") if "SharedArchiveFile" in word]
    place = kafka_classes.archive(jars)
    place.parent.mkdir(parents=True)
    place.write_bytes(b"")
    assert f"-XX:SharedArchiveFile={place}" in kafka.java("Tool", heap="512m")


def test_what_is_measured_starts_as_it_is_shipped(jars):
    place = kafka_classes.archive(jars)
    place.parent.mkdir(parents=True)
    place.write_bytes(b"")
    assert kafka.java("kafka.Kafka", heap="1g")[2] == "-XX:+UseG1GC"


def test_other_jars_have_another_archive(jars):
    before = kafka_classes.archive(jars)
    (jars / "more.jar").write_bytes(b"PK")
    kafka_classes.archive.cache_clear()
    assert kafka_classes.archive(jars) != before


def test_archives_of_long_ago_are_removed(jars):
    folder = kafka_classes.archive(jars).parent
    folder.mkdir(parents=True)
    for number in range(kafka_classes.KEPT + 1):
        (folder / f"kafka-{number}.jsa").write_bytes(b"")
    kafka_classes._remove_old(folder)
    assert len(list(folder.iterdir())) == kafka_classes.KEPT
