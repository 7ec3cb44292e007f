"""`listener.security.protocol.map` and `listeners` while a broker serves: what is taken and what is
refused is Apache Kafka's choice, and a new listener with logins serves them after a restart."""

import socket

import pytest

from benchmarks import kafka
from tests.broker_process import KAFKA
from tests.compat.waiting import until
from tests.differential.link import CLOSED, Link
from tests.sasl.logged import HOST, LoggedIn, jaas
from tests.sasl.talk import Talk

pytestmark = pytest.mark.skipif(KAFKA, reason="it has both beside one another")
MAP, LISTENERS = "listener.security.protocol.map", "listeners"
SET, DELETE, APPEND, SUBTRACT = range(4)


class Changed:
    """A broker whose settings are changed. new, third: ports for more listeners."""

    def __init__(self, broker, new, third):
        self.broker, self.new, self.third = broker, new, third

    def put(self, *changes):
        """The error's name. What a change of listeners cuts off is asked again."""
        configs = [{"name": k, "config_operation": op, "value": v} for k, op, v in changes]
        one = {"resource_type": 4, "resource_name": "1", "configs": configs}
        found = []
        until(lambda: self._ask(44, 1, {"resources": [one], "validate_only": False}, found))
        return found[0]["responses"][0]["error_code"]

    def value(self, key):
        found = []
        one = {"resource_type": 4, "resource_name": "1", "configuration_keys": [key]}
        until(lambda: self._ask(32, 4, {"resources": [one], "include_synonyms": False,
                                        "include_documentation": False}, found))  # fmt: skip
        return found[0]["results"][0]["configs"][0]["value"]

    def _ask(self, key, version, message, found):
        try:
            link = Link((HOST, self.broker.port))
        except OSError:
            return False
        answer = link.ask(key, version, message)
        link.close()
        if answer is not CLOSED:
            found.append(answer)
        return bool(found)

    def protocols(self, **more):
        said = {"PLAINTEXT": "PLAINTEXT", **dict.fromkeys(self.broker.names, "SASL_PLAINTEXT")}
        if self.broker.of_kafka:
            said["CONTROLLER"] = "PLAINTEXT"
        return ",".join(f"{name}:{protocol}" for name, protocol in (said | more).items())

    def listeners(self, **more):
        ports = dict(self.broker.ports)
        if self.broker.of_kafka:
            ports["CONTROLLER"] = self.broker.controllers
        return ",".join(f"{name}://{HOST}:{port}" for name, port in (ports | more).items())

    def reaches(self, port):
        with socket.socket() as probe:
            return probe.connect_ex((HOST, port)) == 0


def steps(at):
    """(what, error) of each."""
    told = []

    def step(what, *changes):
        told.append((what, at.put(*changes)))
        if told[-1][1] == "NONE":
            wanted = {key: value for key, kind, value in changes if kind == SET}
            until(lambda: {key: at.value(key) for key in wanted} == wanted)

    step("append", (MAP, APPEND, "NEW:PLAINTEXT"))
    step("subtract", (MAP, SUBTRACT, "ONLY:SASL_PLAINTEXT"))
    step("no protocol yet", (LISTENERS, SET, at.listeners(NEW=at.new)))
    step("a name", (MAP, SET, at.protocols(NEW="PLAINTEXT")))
    step("another protocol, not open", (MAP, SET, at.protocols(NEW="SASL_PLAINTEXT")))
    step("an open one's protocol", (MAP, SET, at.protocols(ONLY="PLAINTEXT")))
    step("an unknown protocol", (MAP, SET, at.protocols(NEW="QUIC")))
    step("no colon", (MAP, SET, at.protocols() + ",X"))
    step("none of the open ones", (MAP, SET, ""))
    step("advertised", ("advertised.listeners", SET, f"PLAINTEXT://{HOST}:{at.broker.port}"))
    step("both at once", (MAP, SET, at.protocols(NEW="SASL_PLAINTEXT", THIRD="PLAINTEXT")),
         (LISTENERS, SET, at.listeners(NEW=at.new, THIRD=at.third)))  # fmt: skip
    until(lambda: at.reaches(at.new) and at.reaches(at.third))
    step("a new one's protocol", (MAP, SET, at.protocols(NEW="PLAINTEXT", THIRD="PLAINTEXT")))
    step("without a new one", (MAP, SET, at.protocols(THIRD="PLAINTEXT")))
    step("no map any more", (MAP, DELETE, None))
    step("closed", (LISTENERS, SET, at.listeners(NEW=at.new)))
    until(lambda: not at.reaches(at.third))
    step("a closed one's protocol", (MAP, SET, at.protocols(NEW="SASL_PLAINTEXT", THIRD="SSL")))
    step("a closed one's name", (MAP, SET, at.protocols(NEW="SASL_PLAINTEXT")))
    return told


def in_by_plain(broker, port):
    broker.ports["NEW"] = port
    talk = Talk(broker.wire("NEW"))
    answer = talk.plain("late", "comer")
    talk.wire.close()
    del broker.ports["NEW"]
    return answer is not CLOSED and not answer[0]


def test_the_same_is_taken_and_refused_as_by_apache_kafka(tmp_path):
    if reason := kafka.unavailable():
        pytest.skip(reason)
    told = {}
    for name, of_kafka in (("ours", False), ("theirs", True)):
        (tmp_path / name).mkdir()
        more = {"listener.name.new.plain.sasl.jaas.config": jaas({"late": "comer"})}
        more["listener.name.new.sasl.enabled.mechanisms"] = "PLAIN"
        broker = LoggedIn(tmp_path / name / "data", more, of_kafka=of_kafka)
        with broker:
            at = Changed(broker, kafka.free_port(), kafka.free_port())
            told[name] = steps(at)
            assert in_by_plain(broker, at.new)
            broker.stop()
            broker.start()
            until(lambda at=at: at.reaches(at.new))  # a listener of the metadata opens later
            assert in_by_plain(broker, at.new) and not at.reaches(at.third)
    assert told["ours"] == told["theirs"]
    assert dict(told["ours"])["a name"] == "NONE"
