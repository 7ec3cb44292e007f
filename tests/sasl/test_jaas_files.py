"""Logins of a JAAS file that KAFKA_OPTS names: who gets in where, beside Apache Kafka with the same
file and settings."""

import pytest

from benchmarks import kafka
from tests.broker_process import KAFKA
from tests.sasl.conftest import put_users
from tests.sasl.logged import PLAIN_MODULE, SCRAM_MODULE, LoggedIn, jaas
from tests.sasl.talk import CLOSED, Talk

PASSWORDS = {"all": "of-all", "own": "of-one", "key": "of-a-key", "kept": "of-the-metadata"}
FILE = f"""
// read once
KafkaServer {{
    {SCRAM_MODULE} required;
    {PLAIN_MODULE} required user_all="of-all" user_twice="${{second}}";
    {PLAIN_MODULE} required user_twice="later" user_more="more";
}};
only.KafkaServer {{ {PLAIN_MODULE} required user_own="of-one"; {SCRAM_MODULE} required; }};
"""


class OfAFile(LoggedIn):
    """SASL_PLAINTEXT has its section KafkaServer, ONLY one of its own, STATIC a setting."""

    def own(self):
        return {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.static.plain.sasl.jaas.config": jaas({"key": "of-a-key"}),
            "group.initial.rebalance.delay.ms": "0",
        }

    def command(self):
        command = super().command()
        return [command[0], *self.options, *command[1:]] if self.of_kafka else command

    @property
    def options(self):
        file = self.data.parent / "jaas.conf"
        file.write_text(FILE)
        return [f"-Djava.security.auth.login.config={file}", "-Dsecond=2nd"]

    def restart_with(self, text):
        (self.data.parent / "jaas.conf").write_text(text)


def who_gets_in(broker):
    """(listener, user, password) → whether PLAIN and SCRAM let in."""
    found = {}
    for listener in broker.names:
        for user, password in [*PASSWORDS.items(), ("twice", "2nd"), ("twice", "later"),
                               ("more", "more")]:  # fmt: skip
            answers = []
            for login in ("plain", "scram"):
                talk = Talk(broker.wire(listener))
                if login == "plain":
                    answer = talk.plain(user, password)
                else:
                    talk.scram("SCRAM-SHA-512", user, password)
                    answer = talk.said[-1]
                answers.append(answer is not CLOSED and not answer[0])
                talk.wire.close()
            found[listener, user, password] = tuple(answers)
    return found


@pytest.mark.skipif(KAFKA, reason="it has both beside one another")
def test_the_same_get_in_as_with_apache_kafka(tmp_path, monkeypatch):
    if reason := kafka.unavailable():
        pytest.skip(reason)
    told = {}
    for name, of_kafka in (("ours", False), ("theirs", True)):
        (tmp_path / name).mkdir()
        broker = OfAFile(tmp_path / name / "data", of_kafka=of_kafka)
        if not of_kafka:
            monkeypatch.setenv("KAFKA_OPTS", " ".join(broker.options))
        with broker:
            put_users(broker.bootstrap, {"kept": PASSWORDS["kept"]})
            told[name] = who_gets_in(broker)
            assert "warning" not in broker.output() or of_kafka
        monkeypatch.delenv("KAFKA_OPTS", raising=False)
    assert told["ours"] == told["theirs"]
    assert {who for who, (plain, _) in told["ours"].items() if plain} == {
        ("STATIC", "key", "of-a-key"),
        ("SASL_PLAINTEXT", "all", "of-all"),
        ("SASL_PLAINTEXT", "twice", "2nd"),
        ("SASL_PLAINTEXT", "more", "more"),
        ("ONLY", "own", "of-one"),
    }


@pytest.mark.skipif(KAFKA, reason="Apache Kafka reads the file once")
def test_a_changed_file_holds_after_a_reload(tmp_path):
    broker = OfAFile(tmp_path / "data")
    _, file = broker.options[0].split("=")
    broker.settings = {}
    own = broker.own
    broker.own = lambda: own() | {"penstock.sasl.jaas.file": file}
    text = FILE.replace("${second}", "2nd")
    (tmp_path / "jaas.conf").write_text(text)
    with broker:
        assert in_by_plain(broker, "own", "of-one") and not in_by_plain(broker, "own", "newer")
        (tmp_path / "jaas.conf").write_text(text.replace('own="of-one"', 'own="newer"'))
        broker.process.send_signal(1)
        while not in_by_plain(broker, "own", "newer"):
            assert broker.process.poll() is None
        assert not in_by_plain(broker, "own", "of-one")
        (tmp_path / "jaas.conf").write_text("KafkaServer {")
        broker.process.send_signal(1)
        while "jaas.conf, line 1: expected" not in broker.output():
            assert in_by_plain(broker, "own", "newer")


def in_by_plain(broker, user, password, listener="ONLY"):
    talk = Talk(broker.wire(listener))
    answer = talk.plain(user, password)
    talk.wire.close()
    return answer is not CLOSED and not answer[0]
