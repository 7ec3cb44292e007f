"""The comparison itself: what it finds, what it forgives, what the table may and may not hide."""

import re
from pathlib import Path
from uuid import UUID

import pytest

from tests.differential import table
from tests.differential.compare import ABSENT, Difference, compare, differing
from tests.differential.normal import Normaliser
from tests.differential.plain import decode, encode
from tests.differential.registry import Script
from tests.differential.run import Report, judge

ROOT = Path(__file__).parents[2]


def normal(value, known=(), **rest):
    return Normaliser(dict(known), **rest).note(value)


def found(ours, kafka):
    return list(differing(normal(ours), normal(kafka)))


def entry(**changes):
    return table.Entry("Metadata", 0, 13, "one/step", "topics[t].error_code", 1, 2, "why")._replace(
        **changes
    )


DIFFERENT = Difference("Metadata", 3, "one/step", "topics[t].error_code", 1, 2)
PLAYED = [("Metadata", 3, "one/step")]


def judged(entries, differences=(DIFFERENT,), whole=True):
    report = Report()
    judge(report, list(differences), PLAYED, entries, whole)
    return report


def test_order_of_named_things_does_not_count():
    one, two = {"name": "a", "x": 1}, {"name": "b", "x": 2}
    assert found({"topics": [one, two]}, {"topics": [two, one]}) == []
    assert found({"list": [1, 2]}, {"list": [2, 1]}) == [("list[0]", 1, 2), ("list[1]", 2, 1)]
    rows = [{"principal": "User:a", "host": "*"}, {"principal": "User:b", "host": "*"}]
    assert found({"acls": rows}, {"acls": rows[::-1]}) == []
    assert found({"acls": rows}, {"acls": rows[:1]}) != []


def test_a_path_names_the_element():
    ours = {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "isr": [1]}]}]}
    kafka = {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "isr": [2]}]}]}
    assert found(ours, kafka) == [("topics[t].partitions[0].isr[0]", 1, 2)]
    assert found({"topics": [{"name": "t"}]}, {"topics": []}) == [
        ("topics[t]", {"name": "t"}, ABSENT)
    ]


def test_false_is_not_zero_and_null_is_not_empty():
    assert found({"x": False}, {"x": 0})
    assert found({"x": None}, {"x": ""})
    assert found({"x": None}, {"x": []})


def test_names_ids_ports_and_times_are_replaced():
    known = {"group-1-2": "group", "group-1": "other"}
    answer = {
        "message": "Group group-1-2 on port 29092", "port": 29092, "cluster_id": "abc",
        "coordinator": "12345678-1234-1234-1234-123456789abc", "expiry": Normaliser({})._now + 5,
    }  # fmt: skip
    answer["expiry"] = int(answer["expiry"])
    assert normal(answer, known, ports=[29092]) == {
        "message": "Group group on port <port>", "port": "<port>", "cluster_id": "<cluster>",
        "coordinator": "<uuid 1>", "expiry": "<now>",
    }  # fmt: skip
    assert normal({"cluster_id": None, "port": -1}) == {"cluster_id": None, "port": -1}


def test_steps_that_only_one_broker_reached_differ():
    step = ("a", "Metadata", 1, {})
    assert compare([step], [step], "one", "Metadata") == []
    (missing,) = compare([step], [step, ("b", "Metadata", 1, {})], "one", "Metadata")
    assert missing.path == "steps"
    assert compare([step], [("b", "Metadata", 1, {})], "one", "Metadata")[0].path == "step"


def test_a_difference_that_no_entry_covers_is_unexpected():
    assert judged([]).unexpected == [DIFFERENT]
    assert judged([entry()]).good
    for wrong in ({"ours": 3}, {"kafka": 3}, {"low": 4}, {"path": "topics[u].error_code"},
                  {"script": "one/other"}, {"api": "Fetch"}, {"ours": True}):  # fmt: skip
        assert judged([entry(**wrong)]).unexpected == [DIFFERENT], wrong


def test_an_entry_that_covers_nothing_is_stale():
    assert judged([entry()], []).stale
    assert judged([entry(script="gone/step")], []).stale
    assert judged([entry(script="gone/step")], [], whole=False).good
    assert not judged([entry()], []).good
    assert judged([entry(ours="*", kafka="*")], []).good, "the same by chance"


def test_a_star_stands_for_anything():
    for likely in ({"path": "topics[*].error_code"}, {"ours": "*"}, {"script": "*/step"}):
        assert judged([entry(**likely)]).good, likely
    assert not judged([entry(kafka="1*")]).good


def test_a_table_row_must_be_whole(tmp_path):
    path = tmp_path / "differences.toml"
    path.write_text('[[difference]]\napi = "Metadata"\n')
    with pytest.raises(ValueError, match="reason"):
        table.read(path)
    assert all(len(one.reason) > 10 for one in table.read())


def test_requests_are_filled_for_every_version():
    for version in range(14):
        body = encode(3, version, {"topics": [{"name": "t"}]})
        assert (b"t" in body) is True
    with pytest.raises(KeyError, match="topcis"):
        encode(3, 12, {"topcis": []})
    assert decode(18, 0, b"\0\43\0\0\0\0") == {"error_code": "UNSUPPORTED_VERSION", "api_keys": []}
    assert encode(3, 12, {"topics": [{"topic_id": UUID(int=7), "name": None}]})


def test_the_documentation_prints_the_table():
    text = (ROOT / "docs" / "differences.md").read_text()
    assert table.markdown(table.read()) in text, "python -m tests.differential --table"
    assert re.search(r"differences\.md", (ROOT / "README.md").read_text())


def test_versions_are_those_that_both_serve():
    from tests.differential.run import versions_of

    class Broker:
        def __init__(self, low, high):
            self.ranges = {3: (low, high)}

    script = Script("one", "Metadata", None, None)
    assert versions_of(script, [Broker(0, 5), Broker(4, 13)]) == [4, 5]
    assert versions_of(script._replace(versions=range(5, 9)), [Broker(0, 5), Broker(4, 13)]) == [5]
