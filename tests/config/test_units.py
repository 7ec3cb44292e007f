"""Times and sizes with units: in files and behind -o, and what is kept of them."""

import pytest

from appliance.base.errors import ConfigError
from appliance.config.broker_settings import BROKER
from appliance.config.load import examine, load
from appliance.config.topic_settings import TOPIC
from appliance.config.units import in_unit, unit_of


@pytest.mark.parametrize(
    ("key", "typed", "kept"),
    [
        ("log.retention.ms", "7d", "604800000"),
        ("log.retention.ms", "1h30m", "5400000"),
        ("log.retention.ms", " 500ms ", "500"),
        ("log.retention.ms", "2w", "1209600000"),
        ("log.retention.ms", "-1", "-1"),
        ("log.retention.hours", "7d", "168"),
        ("log.retention.minutes", "1h", "60"),
        ("penstock.spin.us", "1ms", "1000"),
        ("penstock.spin.us", "20us", "20"),
        ("log.retention.bytes", "10GB", "10000000000"),
        ("log.retention.bytes", "1.5GB", "1500000000"),
        ("log.segment.bytes", "64MiB", "67108864"),
        ("log.segment.bytes", "64 mib", "67108864"),
        ("log.segment.bytes", "20000000B", "20000000"),
        ("log.cleaner.dedupe.buffer.size", "128MiB", "134217728"),
        ("log.cleaner.io.max.bytes.per.second", "10MB/s", "10000000"),
    ],
)
def test_what_a_file_and_the_command_line_take_is_kept_as_a_number(key, typed, kept):
    of_file, _ = load(f"{key}={typed}\n", {})
    of_line, _ = load(None, {key: typed})
    for config in (of_file, of_line):
        entry = config.entry(key)
        assert entry.text == kept, "as clients are told it"
        assert float(entry.value) == float(kept)


@pytest.mark.parametrize(
    ("key", "typed", "told"),
    [
        ("log.segment.bytes", "64M", "say 64MB for 64000000, or 64MiB for 67108864 bytes"),
        ("log.segment.bytes", "20k", "say 20kB for 20000, or 20KiB for 20480 bytes"),
        ("log.segment.bytes", "1.00000000001MB", "Not a number"),
        ("log.segment.bytes", "1.0000001MB", "not a whole number of bytes"),
        ("log.segment.bytes", "7d", "Not a number of type INT; it takes a whole number from"),
        ("log.retention.ms", "5M", "say 5m for minutes, 5ms, or days: 30d"),
        ("log.retention.minutes", "90s", "not a whole number of min"),
        ("log.retention.ms", "10MB", "Not a number of type LONG"),
        ("log.retention.ms", "7y", "Not a number of type LONG"),
        ("log.retention.ms", "7 days", "Not a number of type LONG"),
        ("num.partitions", "3m", "Not a number of type INT"),
    ],
)
def test_what_may_be_meant_in_two_ways_is_refused_with_what_is_meant(key, typed, told):
    with pytest.raises(ConfigError, match=f"^line|Invalid value {typed} for configuration {key}"):
        load(f"{key}={typed}\n", {})
    (remark,) = examine(f"{key}={typed}\n", {})[1]
    assert remark.wrong
    assert told in remark.text


@pytest.mark.parametrize("table", [BROKER, TOPIC])
def test_every_number_stays_what_it_is_and_so_does_every_text(table):
    """Whatever Apache Kafka's files have in them means the same."""
    for setting in table.values():
        for text in ("0", "-1", "7", "9223372036854775807", "1e3", "true", "a,b", ""):
            assert in_unit(setting.name, unit_of(setting), text) == text
