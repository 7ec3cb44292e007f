"""kafkajs, the client of most programs in Node.js: groups and transactions of the old protocol."""

import json
import subprocess

import pytest
from installs import PROGRAMS, need, node_packages
from records import LIMIT_S

COUNT = 100


@pytest.mark.timeout(400)
@pytest.mark.parametrize("version", ["1.16.0", "2.2.4"])
def test_numbers_are_moved_in_transactions(broker, records, fresh_name, version):
    node, packages = need("node"), node_packages(kafkajs=version)
    group, topic, sink = fresh_name("kafkajs"), fresh_name("numbers"), fresh_name("doubles")
    program = packages / "trip.js"
    program.write_text((PROGRAMS / "kafkajs_trip.js").read_text())
    done = subprocess.run(
        [node, program, broker.bootstrap, group, topic, sink], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    expected = sorted([str(n), f"h{n}"] for n in range(COUNT))
    assert sorted(said["seen"]) == expected and said["state"] == "Stable"
    ends = records.ends(topic)
    assert {one["partition"]: int(one["offset"]) for one in said["offsets"]} == ends
    assert records.committed(group, topic) == ends and sum(ends.values()) == COUNT
    found = sorted(int(value) for _, value in records.read(sink, COUNT))
    assert found == [2 * n for n in range(COUNT)], "and nothing of what was aborted"
