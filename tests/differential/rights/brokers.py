"""An appliance and Apache Kafka with the same users and rules, on which only rules allow."""

import contextlib

from tests.differential.registry import Script
from tests.differential.rights.plays import PASSWORD, ROOT, passwords, rules, settled
from tests.differential.run import SETTINGS
from tests.differential.scene import Scene, Target
from tests.sasl.logged import HOST, LoggedIn, jaas

_OWN = {
    "super.users": "User:root;User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "false",
    # what a cleaner or a timer would do meanwhile is no answer's matter
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


@contextlib.contextmanager
def secured(folder, users=None, rules_=None):
    """(the appliance, Apache Kafka) as Targets that `root` asks. users: name → password; rules_: as
    CreateAcls takes them; else those of `plays`."""
    settings = SETTINGS | _OWN
    settings["listener.name.static.plain.sasl.jaas.config"] = jaas(users or passwords())
    kafka = LoggedIn(folder / "kafka", settings, of_kafka=True)
    ours = LoggedIn(folder / "ours", settings)
    with kafka, ours:
        targets = [_target("penstock", ours), _target("kafka", kafka)]
        for one in targets:
            _prepare(one, rules_ or rules())
        yield targets


def _target(name, broker):
    folder = broker.data if name == "penstock" else broker.data / "logs"
    user = (ROOT.name, PASSWORD)
    target = Target(name, (HOST, broker.ports["STATIC"]), str(folder), user=user)
    target.ports = list(broker.ports.values())
    return target


def _prepare(target, rules_):
    """There are coordinators, and rules. They are in force before the first topic of a script is
    there, because the log of metadata has them before it."""
    scene = Scene(target, Script("rights", "CreateAcls", None, None), 3, "")
    answer = scene.call("CreateAcls", creations=rules_)
    assert {row["error_code"] for row in answer["results"]} == {"NONE"}, answer
    for kind in (0, 1):
        scene.until(settled, "FindCoordinator", 4, key_type=kind, coordinator_keys=["any"])
    scene.close()
