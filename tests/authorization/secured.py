"""A whole appliance with ACLs: a netproc, an I/O process and control, each with an authorizer of
its own that follows the metadata log."""

import time

from appliance.authorization.operations import TOPIC
from appliance.authorization.standard import ALLOW, LITERAL
from appliance.base.caller import Principal
from appliance.config import acl_checks
from appliance.config.internal_topics import OFFSETS, TRANSACTIONS
from tests.authorization.refusing import LIMIT_S, LOOK_S, SETTINGS, tree
from tests.netproc.netproc_world import World

ROOT = "User:root"
SECURED = {acl_checks.CLASS_NAME: acl_checks.STANDARD, acl_checks.SUPER_USERS: ROOT}
EVERYTHING = 1


class Secured:
    """`asked` asks as somebody; every name has a connection of its own."""

    def __init__(self, path, topics=("orders", "other"), settings=SECURED):
        names = (*topics, OFFSETS.name, TRANSACTIONS.name)
        self.world = World(path, SETTINGS | settings, names)
        self.world.io_process()
        self._clients = {}

    def client(self, name):
        """The connection of this user."""
        if name not in self._clients:
            before = set(self.world.server.shared.open)
            self._clients[name] = self.world.client(name)
            [new] = set(self.world.server.shared.open) - before
            self.world.server.shared.open[new].principal = Principal("User", name)
        return self._clients[name]

    def send(self, name, key, version, /, **values):
        self.client(name).send(key, version, **values)

    def turn(self):
        self.world.turn()
        self.world.io_turn()

    def answer(self, name, limit_s=LIMIT_S):
        """The next one, as plain values."""
        give_up = time.monotonic() + limit_s
        while time.monotonic() < give_up:  # a sync runs on a thread
            self.turn()
            if (found := self.client(name).answer()) is not None:
                return tree(found[1])
            time.sleep(LOOK_S)
        raise AssertionError("it is not answered")

    def asked(self, name, key, version, /, **values):
        self.send(name, key, version, **values)
        return self.answer(name)

    def allow(self, name, operation, resource, kind=TOPIC, **more):
        """One rule more; returns what CreateAcls says of it."""
        rule = creation(name, operation, resource, kind, **more)
        told = self.asked("root", 30, 3, creations=[rule])
        [row] = told["results"]
        return row["error_code"], row["error_message"]

    def forbid(self, name):
        """All rules about this user are gone; returns how many there were."""
        one = every(principal_filter=f"User:{name}")
        [row] = self.asked("root", 31, 3, filters=[one])["filter_results"]
        assert row["error_code"] == 0
        return len(row["matching_acls"])

    def id_of(self, topic):
        return self.world.server.host.image.topics_by_name[topic].topic_id

    def close(self):
        self.world.close()


def creation(name, operation, resource, kind=TOPIC, **more):
    """One of CreateAcls."""
    return {
        "resource_type": kind, "resource_name": resource, "resource_pattern_type": LITERAL,
        "principal": f"User:{name}", "host": "*", "operation": operation,
        "permission_type": ALLOW, **more,
    }  # fmt: skip


def every(**less):
    """A filter for all rules."""
    return {
        "resource_type_filter": EVERYTHING, "resource_name_filter": None,
        "pattern_type_filter": EVERYTHING, "principal_filter": None, "host_filter": None,
        "operation": EVERYTHING, "permission_type": EVERYTHING, **less,
    }  # fmt: skip
