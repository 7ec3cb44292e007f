"""An appliance that is upgraded, and taken back, by `penstock restart`: its clients stay connected
and wait, nobody is refused, nothing is lost. Where the program on the disk cannot start, nothing
happens at all."""

import json
import os
import re
import signal
import socket

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from appliance.ring.tables import FORMAT
from tests.upgrade.clients import Load, Readers, hopeless, read
from tests.upgrade.installed import InPlace, Installed, checkout

pytestmark = pytest.mark.timeout(120)
OLDER, NEWER, BROKEN = "0.1.1", "0.1.2", "0.1.3"
SERVES_LESS = ("appliance/authorization/apis.py", '"Metadata", 0, 13', '"Metadata", 0, 12')
"""As the sources of OLDER have it."""
OTHER_TABLES = ("appliance/ring/tables.py", f"FORMAT: Final = {FORMAT}", "FORMAT: Final = 9")
"""In memory, as most versions have them that are not the present one."""
YET_OTHERS = (*OTHER_TABLES[:2], "FORMAT: Final = 8")
STARTS_NOT = (
    "console/commands/up.py",
    "    _warn_of_unknown_names(broker)",
    '    raise usage("no luck")',
)
"""As the sources of BROKEN have it: nothing that a check sees."""
LEFT = re.compile(r"connections-handed-over connections=(\d+)")


@pytest.fixture
def appliance(tmp_path):
    found = Installed(tmp_path / "data", "penstock.net.processes=2")
    yield found
    found.close()


def versions(appliance):
    """That were ready, one after the other."""
    return re.findall(r"Penstock (\S+) is ready", appliance.log.read_text())


def test_an_upgrade_and_back_under_clients(appliance, tmp_path):
    installation = InPlace(tmp_path / "env")
    installation.put(installation.version(OLDER, SERVES_LESS, OTHER_TABLES))
    appliance.start(installation.program)
    admin = AdminClient({"bootstrap.servers": appliance.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("kept", 3, 1)])["kept"].result(30)
    load, readers = Load(appliance.bootstrap), Readers(appliance.bootstrap, "kept")
    load.start()
    readers.start()
    installation.version(NEWER)
    try:
        load.go_on()
        readers.wait_for(len(load.acknowledged))
        for version in (NEWER, OLDER):
            installation.put(version)
            code, said = appliance.restart(installation.program)
            assert (code, json.loads(said)[0]["pid"]) == (0, appliance.pid), said
            load.go_on()
        load.end()
        readers.wait_for(load.sent)
    finally:
        load.end()
        readers.end()
    print(f"longest silence {load.longest_silence_s():.2f} s, {load.sent} records")
    assert versions(appliance) == [OLDER, NEWER, OLDER]
    told = load.told + readers.told
    assert load.failed == [] and hopeless(told) == []
    assert [str(one) for one in told if "refused" in str(one)] == []
    sent = [b"%d" % number for number in range(load.sent)]
    assert read(appliance.bootstrap, "kept") == sent, "all of one key, so of one partition"
    assert readers.found == sent
    _, older, newer, again = appliance.log.read_text().split("is ready")
    for said in (older, newer):
        assert "ended clean=yes" in said and sum(map(int, LEFT.findall(said))) > 0
    assert "connections-hung-up" in newer + again, "who had been told of Metadata 13"
    assert "connections-hung-up" not in older
    assert appliance.stop() == 0


@pytest.mark.parametrize("readable", [True, False], ids=["the-one-before-is-read", "nor-that-one"])
def test_a_successor_that_the_command_cannot_read_is_followed(appliance, tmp_path, readable):
    installation = InPlace(tmp_path / "env")
    installation.put(installation.version(NEWER, *([] if readable else [YET_OTHERS])))
    appliance.start(installation.program)
    admin = AdminClient({"bootstrap.servers": appliance.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(30)
    installation.put(installation.version(OLDER, SERVES_LESS, OTHER_TABLES))
    code, said = appliance.restart(checkout(tmp_path / "penstock"))
    assert code == 0, said
    (found,) = json.loads(said)
    assert found["pid"] == appliance.pid and 0 < found["away_ms"] <= found["took_ms"]
    assert versions(appliance) == [NEWER, OLDER], "it returns when that one serves"
    assert "kept" in admin.list_topics(timeout=10).topics
    assert appliance.stop() == 0


def test_a_version_that_would_not_start_is_not_started(appliance, tmp_path):
    installation = InPlace(tmp_path / "env")
    installation.put(installation.version(OLDER))
    appliance.start(installation.program)
    children = appliance.children()
    installation.put(installation.version(BROKEN, damaged="appliance/control/main.py"))
    code, said = appliance.restart(checkout(tmp_path / "penstock"))
    found = json.loads(said)["error"]
    assert (code, found["code"]) == (1, "RESTART_REFUSED")
    assert "would not start" in found["message"] and "SyntaxError" in found["message"]
    assert appliance.children() == children, "everything went on"
    assert appliance.stop() == 0


def test_nor_is_it_where_the_running_one_cannot_be_read(appliance, tmp_path):
    installation = InPlace(tmp_path / "env")
    installation.put(installation.version(OLDER, OTHER_TABLES))
    appliance.start(installation.program)
    children = appliance.children()
    installation.put(installation.version(BROKEN, damaged="appliance/control/main.py"))
    code, said = appliance.restart(checkout(tmp_path / "penstock"))
    assert (code, json.loads(said)["error"]["code"]) == (1, "RESTART_REFUSED")
    assert appliance.children() == children, "everything went on"
    assert "SyntaxError" in appliance.log.read_text()
    assert appliance.stop() == 0


def test_a_version_that_ends_in_its_start_leaves_a_whole_folder(appliance, tmp_path):
    installation = InPlace(tmp_path / "env")
    installation.put(installation.version(OLDER))
    appliance.start(installation.program)
    installation.put(installation.version(BROKEN, STARTS_NOT))
    code, said = appliance.restart(checkout(tmp_path / "penstock"))
    assert (code, json.loads(said)["error"]["code"]) == (1, "NOT_SUCCEEDED")
    assert appliance.wait() == 2
    assert appliance.log.read_text().rstrip().endswith("no luck")
    assert (appliance.data / ".kafka_cleanshutdown").exists()
    installation.put(OLDER)
    appliance.start(installation.program)
    assert appliance.stop() == 0


def test_who_wants_it_to_end_while_it_restarts_gets_that(appliance, tmp_path):
    program = checkout(tmp_path / "penstock")
    appliance.start(program)
    os.kill(appliance.pid, signal.SIGUSR2)
    assert appliance.stop() == 0
    said = appliance.log.read_text()
    assert said.count("is ready") == 1 and "ended clean=yes" in said
    assert "restarting" not in said


def test_settings_that_cannot_be_had_are_found_before_the_end_if_they_can(tmp_path):
    program, config = checkout(tmp_path / "penstock"), tmp_path / "server.properties"
    config.touch()
    appliance = Installed(tmp_path / "data", config=config)
    try:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            appliance.start(program)
            children = appliance.children()
            at = f"127.0.0.1:{taken.getsockname()[1]}"
            config.write_text(f"penstock.metrics.listener={at}\n")
            code, said = appliance.restart(program)
            assert code == 1 and f"{at} is in use by another process" in said
            assert appliance.children() == children
        code, said = appliance.restart(program)
        assert code == 0, "it is free by now"
        assert appliance.stop() == 0
    finally:
        appliance.close()
