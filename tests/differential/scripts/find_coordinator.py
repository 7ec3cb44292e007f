"""FindCoordinator."""

from tests.differential.groups import group_of
from tests.differential.registry import script
from tests.differential.transactions import id_of


@script("FindCoordinator")
def find_coordinator(s):
    group = group_of(s)
    s.ask("a group", key_type=0, key=group, coordinator_keys=[group])
    s.ask("no name", key_type=0, key="", coordinator_keys=[""])
    if s.version >= 4:
        s.ask("several", key_type=0, coordinator_keys=[group, s.name("other"), group])
        s.ask("none", key_type=0, coordinator_keys=[])
    if s.version >= 1:
        for kind in (2, 3, -1):
            s.ask(f"type {kind}", key_type=kind, key=group, coordinator_keys=[group])


@script("FindCoordinator", versions=(1, 6))
def find_coordinator_of_a_transaction(s):
    name = id_of(s)
    s.ask("an id", key_type=1, key=name, coordinator_keys=[name])
    s.ask("no name", key_type=1, key="", coordinator_keys=[""])
    if s.version >= 4:
        s.ask("several", key_type=1, coordinator_keys=[name, s.name("other"), name])
