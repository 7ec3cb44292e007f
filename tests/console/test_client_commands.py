"""`penstock client`: who is connected to an appliance of this host."""

import pytest
from confluent_kafka import Producer

from tests.console_process import rows


@pytest.fixture
def listed(run, appliance):
    def told(*words, **options):
        data = ("--data", str(appliance.data_dir), "--over", "0")
        return run("client", "list", *data, *words, **options)

    return told


def test_connections_are_listed_with_what_clients_say_of_themselves(appliance, listed):
    producer = Producer({"bootstrap.servers": appliance.bootstrap, "client.id": "a [/b] c"})
    producer.produce("clients.seen", b"one")
    assert not producer.flush(30)  # its connection to the broker stays, other than the first one
    one = next(each for each in rows(listed("-o", "json")) if each["client_id"] == "a [/b] c")
    assert (one["user"], one["address"]) == ("ANONYMOUS", "127.0.0.1")
    assert one["software"] == "confluent-kafka-python" and one["version"][0].isdigit()
    assert one["connected_s"] >= 0 and one["throttled_by"] == ""
    told = listed().stdout
    assert "a [/b] c" in told and "THROTTLED" in told
    done = listed("--throttled")
    assert (done.stdout, done.stderr) == ("", "no client is throttled\n")
    del producer


def test_who_runs_no_appliance_here_is_told(run, tmp_path):
    done = run("client", "list", "--data", str(tmp_path), code=3)
    assert "is no folder of an appliance" in done.stderr
