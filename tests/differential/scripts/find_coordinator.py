"""FindCoordinator."""

from tests.differential.groups import group_of
from tests.differential.registry import script


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
