"""`secured_appliance`, the fixture: logins and rights as in production, for librdkafka's clients
and for Java's."""

import stat

import pytest
from confluent_kafka import KafkaException

from benchmarks import kafka
from penstock.local import ApplianceError
from penstock.secured import SecuredAppliance
from tests import java_tools


def test_a_user_may_do_what_was_said_and_nobody_else_gets_in(secured_appliance):
    admin = secured_appliance.connect()
    admin.create_topic("orders", 1)
    admin.create_topic("others", 1)
    loader = secured_appliance.add_user("loader", "write:orders", "read:orders")
    link = secured_appliance.connect(loader)
    with link.producer() as producer:
        producer.produce("orders", b"one")
    assert [message.value() for message in link.read("orders")] == [b"one"]
    with pytest.raises(KafkaException), link.producer() as producer:
        producer.produce("others", b"one")
    for wrong in ({"sasl_password": "wrong"}, {"security_protocol": "plaintext"}):
        with pytest.raises(KafkaException):
            secured_appliance.connect(loader, **wrong).admin()
    with pytest.raises(ApplianceError, match="user already"):
        secured_appliance.add_user("loader")
    for one in (loader.file, loader.java_file):
        assert stat.S_IMODE(one.stat().st_mode) == 0o600


def test_apache_kafkas_tools_take_the_java_file(secured_appliance):
    if reason := kafka.unavailable():
        pytest.skip(reason)
    told = java_tools.tool(
        "org.apache.kafka.tools.TopicCommand",
        "--bootstrap-server", secured_appliance.bootstrap,
        "--command-config", str(secured_appliance.admin.java_file),
        "--create", "--topic", "by-java",
    )  # fmt: skip
    assert "Created topic by-java" in told.stdout, told.stderr


def test_it_comes_back_with_its_users_at_its_port(tmp_path):
    with SecuredAppliance(tmp_path / "one", {"num.partitions": 3}) as one:
        user, address = one.add_user("loader", "write:orders"), one.bootstrap
        one.kill()
        one.start()
        assert one.bootstrap == address
        assert one.connect(user).admin().list_topics(timeout=30).topics == {}
        password = user.properties["sasl.password"].encode()
        for pid in one.pids():
            with open(f"/proc/{pid}/cmdline", "rb") as words:
                assert password not in words.read()
