"""Options of accepted sockets: what the settings say, and what is chosen when they say nothing."""

import socket

import pytest

from appliance.config.broker import BrokerConfig
from appliance.netproc.transport.socket_options import SAME_HOST_SEND_BYTES, tune


@pytest.fixture
def accepted():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()),
        server.accept()[0] as sock,
    ):
        yield sock


def option(sock, name):
    return sock.getsockopt(socket.SOL_SOCKET, name)


def test_what_the_settings_say_holds(accepted):
    settings = {"socket.send.buffer.bytes": "70000", "socket.receive.buffer.bytes": "50000"}
    tune(accepted, "127.0.0.1", BrokerConfig.of(settings))
    assert option(accepted, socket.SO_SNDBUF) == 2 * 70000  # Linux doubles it for its bookkeeping
    assert option(accepted, socket.SO_RCVBUF) == 2 * 50000
    assert not accepted.getblocking()


def test_a_peer_that_went_without_a_word_is_missed_within_minutes(accepted):
    tune(accepted, "192.0.2.7", BrokerConfig())
    assert option(accepted, socket.SO_KEEPALIVE) == 1
    names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
    idle_s, every_s, times = (accepted.getsockopt(socket.IPPROTO_TCP, name) for name in names)
    assert idle_s + every_s * times == 120


def test_little_is_under_way_to_a_client_of_the_same_host(accepted):
    tune(accepted, "127.0.0.1", BrokerConfig())
    assert option(accepted, socket.SO_SNDBUF) == 2 * SAME_HOST_SEND_BYTES


def test_to_another_host_the_kernel_decides(accepted):
    before = option(accepted, socket.SO_SNDBUF), option(accepted, socket.SO_RCVBUF)
    tune(accepted, "192.0.2.7", BrokerConfig())
    assert (option(accepted, socket.SO_SNDBUF), option(accepted, socket.SO_RCVBUF)) == before
