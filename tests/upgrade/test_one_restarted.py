"""What stock clients see while one appliance alone ends and the next version of it starts: waits,
and nothing else. The version is the same here; test_installed_wheels.py has others."""

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.upgrade.clients import Load, Readers, hopeless, read
from tests.upgrade.installed import Installed, checkout


@pytest.fixture
def appliance(tmp_path):
    found = Installed(tmp_path / "data")
    yield found
    found.close()


def test_a_producer_and_a_group_go_on_over_a_restart(appliance, tmp_path):
    program = checkout(tmp_path / "penstock")
    appliance.start(program)
    admin = AdminClient({"bootstrap.servers": appliance.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("kept", 3, 1)])["kept"].result(30)
    load, readers = Load(appliance.bootstrap), Readers(appliance.bootstrap, "kept")
    load.start()
    readers.start()
    try:
        load.go_on()
        readers.wait_for(len(load.acknowledged))
        assert appliance.stop() == 0
        appliance.start(program)
        load.go_on()
        load.end()
        readers.wait_for(load.sent)
    finally:
        load.end()
        readers.end()
    print(f"longest silence {load.longest_silence_s():.2f} s, {load.sent} records")
    assert load.failed == [] and hopeless(load.told + readers.told) == []
    sent = [b"%d" % number for number in range(load.sent)]
    assert read(appliance.bootstrap, "kept") == sent, "all of one key, so of one partition"
    assert readers.found == sent
    assert appliance.stop() == 0
