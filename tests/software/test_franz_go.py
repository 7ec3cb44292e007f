"""franz-go, the client of kminion and other monitors in Go, which guess a broker's version from the
APIs that it tells of."""

import json
import subprocess

import pytest
from installs import go_program
from records import LIMIT_S

from tests.broker_process import KAFKA

VERSION, ADMIN = "v1.20.7", "v1.17.1"
COUNT = 100
GUESS = "at least v4.1" if KAFKA else "at least v3.9"
"""Share groups and streams groups are what an appliance lacks for 4.1: it tells of no API that it
does not serve."""


@pytest.fixture
def said(broker, fresh_name):
    """What the program says, and the names of group, source and sink."""
    modules = [f"github.com/twmb/franz-go@{VERSION}", f"github.com/twmb/franz-go/pkg/kadm@{ADMIN}"]
    program = go_program("franz_trip", *modules)
    names = [fresh_name("franz"), fresh_name("numbers"), fresh_name("doubles")]
    done = subprocess.run(
        [program, broker.bootstrap, *names], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout), names


@pytest.mark.timeout(900)
def test_numbers_are_moved_in_transactions_of_a_group(said, records):
    answer, (group, topic, sink) = said
    assert (answer["seen"], answer["lag"]) == (COUNT, 0)
    assert answer["guess"] == GUESS
    assert sum(records.ends(topic).values()) == COUNT
    assert records.committed(group, topic) == records.ends(topic)
    found = sorted(int(value) for _, value in records.read(sink, COUNT))
    assert found == [2 * n for n in range(COUNT)], "and nothing of what was aborted"
