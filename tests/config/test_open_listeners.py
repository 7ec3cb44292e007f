"""Listeners that other hosts reach without authentication: which they are, who refuses them."""

import socket

import pytest

from appliance.base.errors import ConfigError
from appliance.config import kept_listeners, open_listeners
from appliance.config.broker import BrokerConfig
from appliance.config.load import examine, load
from appliance.config.open_listeners import ALLOWED, COMMANDS, SETTING, is_loopback
from appliance.supervisor.activation import Passed
from appliance.supervisor.layout import Layout
from appliance.supervisor.listeners import Listeners

SCRAM = {"sasl.enabled.mechanisms": "SCRAM-SHA-512"}


@pytest.mark.parametrize(
    ("host", "alone"),
    [
        ("localhost", True), ("LOCALHOST.", True), ("a.localhost", True), ("127.0.0.1", True),
        ("127.8.9.10", True), ("::1", True), ("::ffff:127.0.0.1", True), ("", False),
        ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("::ffff:10.0.0.1", False),
        ("fe80::1", False), ("edge.example.org", False), ("localhost.example.org", False),
    ],
)  # fmt: skip
def test_loopback_is_this_host_alone(host, alone):
    assert is_loopback(host) is alone


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"listeners": "PLAINTEXT://localhost:1,SSL://127.0.0.1:2"}, ""),
        ({"listeners": "PLAINTEXT://:1"}, "PLAINTEXT://:1"),
        ({"listeners": "PLAINTEXT://[::]:1"}, "PLAINTEXT://[::]:1"),
        ({"listeners": "SSL://:1"}, "SSL://:1"),
        ({"listeners": "SSL://:1", "ssl.client.auth": "requested"}, "SSL://:1"),
        ({"listeners": "SSL://:1", "ssl.client.auth": "required"}, ""),
        ({"listeners": "SSL://:1", "listener.name.ssl.ssl.client.auth": "required"}, ""),
        (
            {
                "listeners": "SSL://:1",
                "ssl.client.auth": "required",
                "listener.name.ssl.ssl.client.auth": "none",
            },
            "SSL://:1",
        ),
        (SCRAM | {"listeners": "SASL_SSL://:1,SASL_PLAINTEXT://:2"}, ""),
        (
            {
                "listeners": "IN://localhost:1,OUT://edge.example.org:2",
                "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT",
            },
            "OUT://edge.example.org:2",
        ),
        (
            {
                "listeners": "PLAINTEXT://localhost:1,CONTROLLER://10.0.0.1:2",
                "controller.listener.names": "CONTROLLER",
            },
            "CONTROLLER://10.0.0.1:2",
        ),
    ],
)
def test_a_listener_without_authentication_is_refused_with_the_remedy(settings, told):
    _, remarks = examine(None, settings)
    wrong = [one.text for one in remarks if one.wrong and SETTING in one.text]
    assert len(wrong) == bool(told)
    if told:
        assert f"other hosts can reach {told} without authentication" in wrong[0]
        assert all(one in wrong[0] for one in (*COMMANDS, ALLOWED))
        assert ("ssl.client.auth=required serves" in wrong[0]) is told.startswith("SSL")
        assert not [one for one in examine(None, settings | {SETTING: "allow"})[1] if one.wrong]


def test_the_line_of_the_file_is_named():
    with pytest.raises(ConfigError, match="srv, line 2: listeners: other hosts can reach"):
        load("node.id=1\nlisteners=PLAINTEXT://:9092\n", {}, file_name="srv")


def test_kept_listeners_are_checked_as_far_as_a_start_knows_them():
    own, _ = load(None, {"listeners": "PLAINTEXT://localhost:1"})

    def check(**texts):
        kept = kept_listeners.over(own, {k.replace("_", "."): v for k, v in texts.items()}, str)
        kept_listeners.check_open(own, kept)

    check(listeners="PLAINTEXT://localhost:1,SSL://:2")  # its ssl.client.auth is in the metadata
    check(listeners="PLAINTEXT://:1", penstock_listeners_without_authentication="allow")
    check()
    with pytest.raises(ConfigError, match=r"listeners.properties .* PLAINTEXT://:1 without"):
        check(listeners="PLAINTEXT://:1")


def test_a_passed_socket_is_not_wider_than_its_listener():
    """A service manager may listen elsewhere than the settings say."""
    with socket.create_server(("0.0.0.0", 0)) as door:
        port = door.getsockname()[1]
        for allow in ("refuse", "allow"):
            config = BrokerConfig.of({"listeners": f"PLAINTEXT://localhost:{port}", SETTING: allow})
            layout = Layout.of(config)
            given = [Passed("plaintext", door.dup())]
            if allow == "allow":
                Listeners.checked(config, layout, given).close()
                continue
            with pytest.raises(ConfigError, match=r"reach PLAINTEXT://0\.0\.0\.0:"):
                Listeners.checked(config, layout, given)
    assert open_listeners.find_open(config) == []
