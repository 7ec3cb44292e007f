"""Users, ACLs, the audit and certificates of a small shop."""

from appliance.authorization.standard import ALLOW, DENY, LITERAL, PREFIXED, AclRule
from appliance.history.audit_log import time_text
from appliance.observer.shown import ShownCertificate
from console.model.access.access import AccessSeen
from console.model.access.acls import Policy
from console.model.access.audit_memory import AuditSeen, LastLogin
from console.model.access.certificates import Secured, Shown
from console.model.access.users import User

TOPIC, GROUP, CLUSTER, TXN = 2, 3, 4, 5
READ, WRITE, ALTER, ALL = 3, 4, 7, 2
DAY = 86_400
QUESTION = "User:reports write topic payments"


def access():
    def rule(who, operation, name, kind=TOPIC, pattern=LITERAL, host="*", allows=ALLOW):
        return AclRule(kind, pattern, name, f"User:{who}", host, operation, allows)

    rules = (
        rule("loader", WRITE, "orders"), rule("shop", WRITE, "payments"),
        rule("reports", READ, "*"), rule("reports", READ, "reports", GROUP),
        rule("reports", WRITE, "payments", allows=DENY, host="10.0.0.9"),
        rule("monitoring", ALTER, "kafka-cluster", CLUSTER), rule("*", READ, "prices"),
        rule("copier", ALL, "copier-", TXN, PREFIXED),
    )  # fmt: skip
    users = (
        User("loader", {"SCRAM-SHA-512": 4096}),
        User("reports", {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 4096}),
        User("shop", {"SCRAM-SHA-512": 4096}), User("trial", {"SCRAM-SHA-512": 4096}),
    )  # fmt: skip
    nodes = ("User:OU=nodes",)
    return AccessSeen(users, Policy(rules, ("User:admin",), False, nodes, True))


def audit(now_s):
    def at(ago_s):
        return time_text(int((now_s - ago_s) * 1000))

    def entry(ago_s, event, process="netproc-0", **fields):
        return {"time": at(ago_s), "event": event, "process": process, **fields}

    loader = {"principal": "User:loader", "address": "10.0.0.7"}
    admin = {"principal": "User:admin", "address": "10.0.0.2", "listener": "SASL_SSL"}
    told = [
        entry(7000, "login", **loader, mechanism="SCRAM-SHA-512", listener="SASL_SSL"),
        entry(900, "changed", "control", **admin, request="CreateAcls",
              changes=[{"type": "acl", "name": "User:loader", "action": "create",
                        "permission": "ALLOW", "operation": "WRITE", "of": "orders"}]),
        entry(610, "login-failed", principal="User:trial", address="10.0.0.66",
              mechanism="SCRAM-SHA-512", listener="SASL_SSL",
              why="Authentication failed during authentication due to invalid credentials"),
        entry(609, "left-out", of="login-failed", count=312),
        entry(40, "access-denied", principal="User:reports", address="10.0.0.9",
              operation="WRITE", resource="TOPIC", name="payments"),
    ]  # fmt: skip
    logins = {
        "User:loader": LastLogin(at(7000), "10.0.0.7", "SCRAM-SHA-512"),
        "User:shop": LastLogin(at(3 * DAY), "10.0.0.8", "SCRAM-SHA-512"),
        "User:admin": LastLogin(at(1200), "10.0.0.2", "SCRAM-SHA-512"),
        "User:trial": LastLogin("", "10.0.0.66", "", 313),
        "User:CN=edge.example.org": LastLogin(at(50), "10.0.0.5", "SSL"),
    }
    return AuditSeen({str(n): one for n, one in enumerate(told)}, logins)


def certificates(now_s):
    def shown(name, port, days):
        names = ("edge.example.org", "localhost", "127.0.0.1")
        found = ShownCertificate(now_s - 30 * DAY, now_s + days * DAY, names, "CN=edge.example.org")
        return Shown(Secured(name, "edge.example.org", port), found)

    closed = Shown(Secured("CONTROLLER", "edge.example.org", 9095), None, "Connection refused")
    return (shown("SASL_SSL", 9093, 700), shown("NODES", 9094, 9), closed)
