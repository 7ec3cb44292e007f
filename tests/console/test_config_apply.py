"""`penstock config apply` and `export`: what a file says, what would be done, and that it is done
once."""

import itertools
import json
import tomllib
from importlib.util import find_spec

import pytest

from console.model.asking.failure import Failure
from console.model.cluster.desired import parse
from tests.console_process import rows, typing

_numbers = itertools.count(1)
DESIRED = """
[topics.orders]
partitions = 3
config.retention.ms = "7d"
config.cleanup.policy = ["compact", "delete"]

[topics.payments]

[cluster]
log.retention.ms = "3d"

[groups.billing]
consumer.session.timeout.ms = "60s"

[[quotas]]
client-id = "loader"
produce = "10MB/s"

[[quotas]]
default = ["client-id"]
request = "50%"
"""


@pytest.fixture(scope="module")
def ask(alone):
    return typing(alone.bootstrap)


@pytest.fixture
def file(tmp_path):
    def write(text, suffix="toml"):
        path = tmp_path / f"{next(_numbers)}.{suffix}"
        path.write_text(text)
        return str(path)

    return write


def actions(done):
    return [(row["action"], row["name"], row["what"]) for row in rows(done)]


def test_a_file_is_applied_once_and_taken_back_from_what_is_exported(ask, file, tmp_path):
    desired = file(DESIRED)
    before = actions(ask("config", "apply", desired, "--dry-run", "-o", "json"))
    assert ("create", "orders", "partitions") in before
    assert ("create", "payments", "") in before
    assert ("change", "", "log.retention.ms") in before
    ask("config", "apply", desired, "--check", code=4)
    assert "needs --yes" in ask("config", "apply", desired, code=2).stderr
    assert ask("topic", "list", "-o", "name").stdout == "", "nothing was done yet"

    assert actions(ask("config", "apply", desired, "--yes", "-o", "json")) == before
    again = ask("config", "apply", desired, "--check", "-o", "json")
    assert {row["action"] for row in rows(again)} == {"nothing"}
    assert "the state matches the file" in again.stderr
    assert rows(ask("config", "get", "-t", "orders", "retention.ms", "-o", "json"))[0][
        "value"
    ] == str(7 * 86_400_000), "as Kafka's tools read it"

    told = ask("config", "export").stdout
    found = tomllib.loads(told)
    assert found == json.loads(ask("config", "export", "-o", "json").stdout)
    assert found["topics"]["orders"]["config"]["cleanup.policy"] == "compact,delete"
    assert found["quotas"] == [
        {"client-id": "loader", "produce": "10MB/s"},
        {"default": ["client-id"], "request": "50%"},
    ]
    typed = ask("config", "apply", "-", "--check", "--prune", "-o", "json", stdin=told)
    assert {row["action"] for row in rows(typed)} == {"nothing"}
    if find_spec("yaml") is not None:
        yaml = file(ask("config", "export", "-o", "yaml").stdout, "yaml")
        ask("config", "apply", yaml, "--check", "--prune")


def test_what_differs_is_changed_and_the_rest_is_let_be(ask, file):
    name = f"change.{next(_numbers)}"
    ask("topic", "create", name, "-p", "1", "-c", "retention.ms=1h", "-c", "segment.bytes=1MiB")
    table = f'[topics."{name}"]\n'
    changed = file(f'{table}partitions = 2\nconfig.retention.ms = "2h"\n')
    done = ask("config", "apply", changed, "--yes", "-o", "json")
    assert actions(done) == [("change", name, "partitions"), ("change", name, "retention.ms")]
    assert "go to another partition" in done.stderr, "what more partitions mean is said"
    own = rows(ask("topic", "config", "get", name, "--changed", "-o", "json"))
    assert {row["key"]: row["value"] for row in own} == {
        "retention.ms": "7200000",
        "segment.bytes": "1048576",
    }
    fewer = ask("config", "apply", file(f"{table}partitions = 1\n"), "--yes", code=1)
    assert "partitions cannot be removed" in fewer.stderr
    more = ask("config", "apply", file(f"{table}replicas = 2\n"), "--yes", code=1)
    assert "topic replicas set" in more.stderr


def test_prune_takes_away_what_is_not_named_in_the_sections_that_are_there(ask, file):
    kept, gone = f"kept.{next(_numbers)}", f"gone.{next(_numbers)}"
    ask("topic", "create", kept, gone, "-c", "retention.ms=1h")
    ask("config", "set", "log.retention.ms=4d")
    others = json.loads(ask("config", "export", "-o", "json").stdout)["topics"]
    named = {name: one for name, one in others.items() if name not in (kept, gone)}
    desired = file(json.dumps({"topics": {**named, kept: {}}}), "json")
    ask("config", "apply", desired, "--check")  # without --prune nothing differs
    found = actions(ask("config", "apply", desired, "--prune", "--yes", "-o", "json"))
    changes = [one for one in found if one[0] != "nothing"]
    assert changes == [("delete", kept, "retention.ms"), ("delete", gone, "")]
    there = ask("topic", "list", "-o", "name").stdout.split()
    assert kept in there
    assert gone not in there
    assert rows(ask("config", "get", "log.retention.ms", "-o", "json"))[0]["value"] == "345600000"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[topic.orders]\n", "topic is no section; there are topics, cluster, groups, quotas"),
        ("[topics.orders]\npartition = 3\n", "topics.orders.partition is not one of"),
        ("[topics.orders]\npartitions = 0\n", "is not a number from 1 to"),
        ("[topics]\norders = 3\n", "topics.orders is not a table"),
        ('[cluster]\nlog.segment.bytes = "64M"\n', "say 64MB for 64000000"),
        ('[[quotas]]\nproduce = "1MB/s"\n', "says not whose"),
        ('[[quotas]]\nclient-id = "a"\nproduse = "1MB/s"\n', "'produse' is not a quota"),
        ("[topics.orders\n", "Expected ']'"),
    ],
)
def test_what_is_wrong_in_a_file_is_told(text, told):
    with pytest.raises(Failure) as failure:
        parse(text, "desired.toml")
    assert told in failure.value.message
    assert failure.value.message.startswith("desired.toml: ")


def test_every_mistake_is_told_at_once():
    with pytest.raises(Failure) as failure:
        parse('[a]\n[topics.b]\nc = 1\n[[quotas]]\nproduce = "x"\n', "-")
    assert len(failure.value.message.splitlines()) == 4
