"""An appliance is given listeners while it serves: who is connected stays, and it has them after
every start. The same decisions without processes."""

import os
import signal
import socket
from contextlib import ExitStack, closing

import pytest

from appliance.base.errors import ConfigError
from appliance.base.os_disk import OsDisk
from appliance.config import kept_listeners
from appliance.config.broker import BrokerConfig
from appliance.config.open_listeners import ALLOW, COMMANDS, SETTING
from appliance.observer.door import Observer
from appliance.ring.process_table import NETPROC, Peer
from benchmarks.kafka import free_port
from console.model.asking.failure import Failure
from console.model.cluster.opening import listeners
from tests.broker_process import Broker
from tests.cluster.test_one_becomes_three import WHICH, Invited
from tests.compat.waiting import until
from tests.config.loading import load
from tests.differential.link import CLOSED, Link

ALTER, DESCRIBE, BROKER = 44, 32, 4


def alter(node, text, kind=0, allow=False):
    changes = [{"name": "listeners", "config_operation": kind, "value": text}]
    changes += [{"name": SETTING, "config_operation": 0, "value": ALLOW}] if allow else []
    resource = {"resource_type": BROKER, "resource_name": "1", "configs": changes}
    (answer,) = node.ask(ALTER, 1, {"resources": [resource], "validate_only": False}, 1)[
        "responses"
    ]
    return answer["error_code"], answer["error_message"] or ""


def put(link, text):
    """The error of setting these listeners by this connection."""
    changes = [{"name": "listeners", "config_operation": 0, "value": text}]
    resource = {"resource_type": BROKER, "resource_name": "1", "configs": changes}
    answer = link.ask(ALTER, 1, {"resources": [resource], "validate_only": False})
    return answer["responses"][0]["error_code"]


def answers(*address):
    """Whether a broker does, at this address."""
    try:
        link = Link(address)
    except OSError:
        return False
    found = link.ask(18, 0, {})
    link.close()
    return found is not CLOSED and found["error_code"] in ("NONE", "none")


def test_listeners_are_opened_while_it_serves(tmp_path):
    with Invited(tmp_path) as nodes, closing(Link(("127.0.0.1", nodes[1].port))) as held:
        port = nodes[1].port
        base = f"PLAINTEXT://127.0.0.1:{port}"
        assert held.ask(*WHICH)["brokers"][0]["host"] == "127.0.0.1"
        with socket.create_server(("127.0.0.1", port + 2)):
            code, why = alter(nodes, f"{base},CONTROLLER://127.0.0.1:{port + 2}")
            assert code == "INVALID_REQUEST" and "in use by another process" in why
        supervisor = nodes[1].process.pid
        more = f"{base},CONTROLLER://127.0.0.1:{port + 1},PLAINTEXT_2://127.0.0.2:{port}"
        code, why = alter(nodes, more)
        assert code == "INVALID_REQUEST" and "stands for no protocol" in why
        wide = f"PLAINTEXT://:{port},CONTROLLER://:{port + 1}"
        code, why = alter(nodes, wide)
        assert code == "INVALID_REQUEST" and all(one in why for one in (*COMMANDS, SETTING))
        assert alter(nodes, wide, allow=True)[0] in ("NONE", "none")
        nodes.wait(lambda: answers("127.0.0.2", port + 1), "controllers are heard")
        assert answers("127.0.0.2", port), "the same port at every address"
        assert held.ask(*WHICH) is not CLOSED, "who was connected is"
        nodes.wait(lambda: told(nodes) == (socket.getfqdn(), port), "the other nodes are told")
        code, why = alter(nodes, base)
        assert code == "INVALID_REQUEST" and "must stay" in why
        assert alter(nodes, None, kind=1)[0] == "INVALID_REQUEST"
        observer = Observer(str(nodes[1].data))
        os.kill(observer.tables.processes.pid(Peer(NETPROC, 0)), signal.SIGKILL)
        nodes.wait(lambda: answers("127.0.0.2", port + 1), "a successor has them")
        nodes.wait(lambda: answers("127.0.0.2", port), "a successor has them")
        assert nodes[1].process.pid == supervisor and nodes[1].runs
        nodes.stop(1)
        nodes.start(1)
        assert answers("127.0.0.2", port) and answers("127.0.0.2", port + 1)


def told(nodes):
    nodes._forget(1)
    (one,) = nodes.ask(*WHICH, 1)["brokers"]
    return one["host"], one["port"]


def config(text):
    return load(None, {"listeners": text})[0]


CONTROLLER = "PLAINTEXT://localhost:1,CONTROLLER://localhost:2"


@pytest.mark.parametrize(
    ("own", "before", "new", "wrong"),
    [
        ("PLAINTEXT://localhost:1", None, CONTROLLER, ""),
        ("PLAINTEXT://localhost:1", CONTROLLER, "PLAINTEXT://:1,CONTROLLER://:2", ""),
        ("PLAINTEXT://localhost:1", CONTROLLER, "PLAINTEXT://:1", "must stay"),
        ("PLAINTEXT://localhost:1", CONTROLLER, None, "must stay"),
        ("PLAINTEXT://localhost:1", None, "CONTROLLER://:2", "only controller listeners"),
        ("PLAINTEXT://localhost:1", None, "PLAINTEXT://:1,CONTROLLER://:0", "not 0"),
        ("PLAINTEXT://localhost:1", None, "PLAINTEXT://:1,CONTROLLER://:1", "port of its own"),
        ("PLAINTEXT://localhost:1", None, "nowhere", "takes NAME://HOST:PORT"),
        (CONTROLLER, None, "PLAINTEXT://:1", "must stay"),
        ("PLAINTEXT://:1,SSL://:3", None, "SSL://:3", ""),
        (f"{CONTROLLER},SSL://:3", None, CONTROLLER, ""),
        (f"{CONTROLLER},SSL://:3", None, "SSL://:3,CONTROLLER://:2", "must stay, because the othe"),
    ],
)
def test_what_may_be_opened(own, before, new, wrong):
    texts = [{} if one is None else {"listeners": one} for one in (before, new)]
    if not wrong:
        kept_listeners.check(config(own), *texts)
        return
    with pytest.raises(ConfigError, match=wrong):
        kept_listeners.check(config(own), *texts)


def test_what_is_advertised_is_not_closed():
    """advertised.listeners is read-only, as in Apache Kafka, and a subset of listeners."""
    told = {"advertised.listeners": "PLAINTEXT://h:1,SSL://h:2"}
    own = load(None, {"listeners": "PLAINTEXT://localhost:1,SSL://localhost:2"} | told)[0]
    kept_listeners.check(own, {}, {"listeners": "PLAINTEXT://localhost:1,SSL://localhost:3"})
    with pytest.raises(ConfigError, match=r"SSL must stay, because advertised\.listeners names it"):
        kept_listeners.check(own, {}, {"listeners": "PLAINTEXT://localhost:1"})


def test_a_listener_is_closed_while_it_serves(tmp_path):
    """The request that closes it comes by it, and is answered; who waits there is hung up on."""
    other = free_port()
    settings = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"}
    settings |= {"penstock.metrics.listener": "127.0.0.1:0"}
    with Broker(tmp_path / "data", settings) as node, ExitStack() as stack:
        base, second = f"PLAINTEXT://127.0.0.1:{node.port}", ("127.0.0.1", other)
        stays = stack.enter_context(closing(Link(("127.0.0.1", node.port))))
        assert put(stays, f"{base},OTHER://127.0.0.1:{other}") == "NONE"
        until(lambda: answers(*second))
        idle, asks = (stack.enter_context(closing(Link(second))) for _ in range(2))
        assert idle.ask(18, 0, {})["error_code"] == "NONE"
        assert put(asks, base) == "NONE", "it is answered by the connection that it ends"
        for link in (idle, asks):
            assert link._frame() is None, "the other side hangs up"
        until(lambda: not answers(*second))
        assert stays.ask(18, 0, {})["error_code"] == "NONE"
        os.kill(Observer(str(node.data)).tables.processes.pid(Peer(NETPROC, 0)), signal.SIGKILL)
        until(lambda: answers("127.0.0.1", node.port))
        assert not answers(*second), "and has it no more"
        again = stack.enter_context(closing(Link(("127.0.0.1", node.port))))
        assert put(again, f"{base},OTHER://127.0.0.1:{other}") == "NONE"
        until(lambda: answers(*second))


def test_what_is_kept_wins_and_the_rest_is_said(tmp_path):
    own = config(CONTROLLER)
    assert kept_listeners.read(OsDisk(), str(tmp_path)) == {}
    assert kept_listeners.over(own, {}, lambda: "here") is own
    texts = {"listeners": "PLAINTEXT://:1,CONTROLLER://localhost:5"}
    kept_listeners.write_listeners(OsDisk(), str(tmp_path), texts)
    assert kept_listeners.read(OsDisk(), str(tmp_path)) == texts
    found = kept_listeners.over(own.telling(lambda: "old"), texts, lambda: "here")
    assert found.advertised("PLAINTEXT") == ("here", 1), "not what was told of the listener before"
    assert kept_listeners.left_out(own, found) == ["CONTROLLER://localhost:2"]
    assert kept_listeners.left_out(BrokerConfig(), found) == []
    assert found.static().list("listeners") == own.list("listeners"), "as before"


@pytest.mark.parametrize(
    ("before", "listen", "after"),
    [
        ("P://localhost:1", None, "P://localhost:1,C://localhost:2"),
        ("P://localhost:1,P_2://[::1]:1", None, "P://localhost:1,P_2://[::1]:1,C://localhost:2"),
        ("P://localhost:1,P_2://[::1]:1", ":1", "P://:1,C://:2"),
        ("P://localhost:1,C://localhost:5", "0.0.0.0:1", "P://0.0.0.0:1,C://0.0.0.0:5"),
        ("P://localhost:1,P_2://[::1]:1", "a:7", "P://a:7,P_2://[::1]:1,C://a:8"),
        ("P://:1,C://:5", None, "P://:1,C://:5"),
    ],
)
def test_what_an_invitation_opens(before, listen, after):
    assert listeners(before, "C", listen) == after


@pytest.mark.parametrize("listen", ["nowhere", ":0", ":65535"])
def test_what_others_could_not_find(listen):
    with pytest.raises(Failure):
        listeners("P://localhost:1", "C", listen)
