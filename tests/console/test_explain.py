"""`penstock explain`, and the names of failures that it explains."""

import pytest

from console.model.asking.explaining import everything
from tests.console_process import rows, typing


def test_a_failure_is_told_with_its_name_which_can_be_looked_up(run):
    told = run("topic", "describe", "nobody.has.it", code=1).stderr.splitlines()
    assert told[0].startswith("penstock: ") and told[0].endswith(" [UNKNOWN_TOPIC_OR_PARTITION]")
    away = typing("127.0.0.1:1")("topic", "list", code=3).stderr.splitlines()[0]
    assert away.endswith(" [UNREACHABLE]")
    for one in (told[0], away):
        name = one.rpartition("[")[2].rstrip("]")
        assert "What to do: " in run("explain", name).stdout


def test_what_is_typed_wrong_has_no_name_to_look_up(run):
    assert "[" not in run("explain", "nothing-like-it", code=2).stderr


@pytest.mark.parametrize(
    "written", ["NOT_ENOUGH_REPLICAS", "not-enough-replicas", "NotEnoughReplicasException", "19"]
)
def test_a_name_may_be_written_as_others_write_it(run, written):
    told = run("explain", written).stdout
    assert told.startswith("NOT_ENOUGH_REPLICAS (error of Kafka, code 19; clients try again")
    assert "min.insync.replicas" in told
    assert "More: docs/reference/errors.md#not_enough_replicas" in told


def test_numbers_below_zero_and_events_are_known(run):
    told = run("explain", "-1", "disk-nearly-full").stdout
    assert "UNKNOWN_SERVER_ERROR" in told and "disk-nearly-full (event of the log)" in told


def test_who_mistypes_is_told_what_is_like_it(run):
    assert "like it are NOT_ENOUGH_REPLICAS" in run("explain", "NOT_ENOUGH", code=2).stderr


def test_programs_get_all_of_it(run):
    found = rows(run("explain", "-o", "json"))
    assert len(found) == len(everything()) > 200
    assert len({one["page"] for one in found}) == len(found), "anchors differ"
    assert all(one["remedy"] for one in found if one["kind"] != "event of the log")
