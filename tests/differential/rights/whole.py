"""All scripts once more, on brokers where rules alone allow anything: as somebody whom rules allow
everything, and as somebody without a rule.

What prepares a script and looks at what became of it is `root`'s where the one who asks has no
rule. A script may then end early, as its next step needs what was refused: on both brokers at the
same step.
"""

import contextlib

from tests.differential.registry import APIS, Script
from tests.differential.rights.brokers import secured
from tests.differential.rights.needs import CLUSTER, GROUP, TOPIC, TRANSACTION, USER
from tests.differential.rights.plays import ALLOW, KAFKAS_OBJECT, LITERAL, NOBODY, PASSWORD, ROOT
from tests.differential.scene import CLOSED, Scene
from tests.differential.table import NOBODYS

ALLOWED = "allowed"
TOKEN, ALL = 6, 2
USERS = {ROOT.name: PASSWORD, NOBODY.name: PASSWORD, ALLOWED: PASSWORD}
RULES = [
    {
        "resource_type": kind, "operation": ALL, "permission_type": ALLOW,
        "resource_name": "kafka-cluster" if kind == CLUSTER else "*",
        "resource_pattern_type": LITERAL, "principal": f"User:{ALLOWED}", "host": "*",
    }
    for kind in (TOPIC, GROUP, CLUSTER, TRANSACTION, TOKEN, USER)
]  # fmt: skip
ELSEWHERE = (
    "sasl_", "api_versions", "describe_broker_configs", "describe_acls",
    "describe_user_scram_credentials",
)  # fmt: skip
"""How the names of scripts begin that say themselves who logs in, or are about what is here: its
settings, rules and users."""


class AsNobody(Scene):
    """Asks as somebody without a rule; prepares, and looks, as root."""

    limit_s = 2

    def __init__(self, *given):
        super().__init__(*given)
        self._asking = None

    def note(self, step, answer, api=None, version=None):
        super().note(step, _own(answer), api, version)

    def ask(self, step, api=None, link=None, version=None, **values):
        if self._asking is None:
            self._asking = self.connect()
        answer = super().ask(step, api, link or self._asking, version, **values)
        if answer is CLOSED and link is None:
            self._asking = None
        return answer

    def ask_until(self, step, wanted, api=None, version=None, **values):
        return self.ask(step, api, None, version, **values)

    def connect(self, client_id="differential", user=None):
        return super().connect(client_id, user or (NOBODY.name, PASSWORD))

    @property
    def main(self):
        if self._main is None:
            self._main = self.connect(user=(ROOT.name, PASSWORD))
        return self._main


def _own(value):
    """Without texts in which Kafka prints its own objects."""
    if isinstance(value, str) and value.startswith(KAFKAS_OBJECT):
        return None
    if isinstance(value, dict):
        return {key: _own(item) for key, item in value.items()}
    return [_own(item) for item in value] if isinstance(value, list) else value


class AsAllowed(Scene):
    """Asks as somebody whom rules allow everything, which a script before may have removed."""

    def __init__(self, *given):
        super().__init__(*given)
        self.connect(user=(ROOT.name, PASSWORD)).ask(APIS["CreateAcls"], 3, {"creations": RULES})

    def connect(self, client_id="differential", user=None):
        return super().connect(client_id, user or (ALLOWED, PASSWORD))


def scripts(all_, who):
    """Those that say nothing themselves of who logs in. who: ALLOWED or NOBODY's name."""
    found = [
        one
        for one in all_
        if not one.name.startswith(ELSEWHERE) and "delegation_token" not in one.name
    ]
    return found if who == ALLOWED else [_ending_early(one) for one in found]


def _ending_early(script):
    """The script, which may fail where it goes on with what was refused."""

    def play(scene):
        with contextlib.suppress(Exception):
            script.play(scene)

    return Script(f"{NOBODYS}{script.name}", script.api, play, script.versions)


@contextlib.contextmanager
def ruled(folder, who):
    """(the appliance, Apache Kafka) as Targets that this user asks."""
    with secured(folder, USERS, RULES) as targets:
        for one in targets:
            one.scene = AsNobody if who == NOBODY.name else AsAllowed
        yield targets
