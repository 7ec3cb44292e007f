"""How long the supervisor waits for its children, and how long these wait for others: seconds that
hold only together.

Invariant: whatever a child gives itself, the supervisor gives it more. The supervisor's layout has
these as its defaults; each child takes its own from here.
"""

from typing import Final

CONFIRM_S: Final = 2.0
"""A process that has not let go of a dead peer's rings until then is killed."""
WEDGED_S: Final = 10.0
"""A ready process whose heartbeat stands still for so long is killed."""
LONGEST_SLEEP_S: Final = 0.2
"""A loop looks again after that, whatever it waits for; also the slowest heartbeat."""
TURN_NS: Final = 20_000_000
"""What chores may add to a turn of any loop, together (docs/decisions/0017)."""
STILL_S: Final = 60.0
"""Where a service manager watches the appliance, a process that has not turned for so long and that
nobody has replaced ends it."""
LOOK_S: Final = 1.0
"""So often the supervisor looks at the heartbeats."""
PAUSED_S: Final = 3.0
"""When it has not looked for so long, the machine stood still: nobody is blamed."""

LEAVE_S: Final = 3.0
"""In the orderly end control waits so long to be told that its broker may leave the cluster."""
LEFT_S: Final = 4.0
"""And the supervisor so long for control."""
NETPROC_DRAIN_S: Final = 3.0
IOPROC_DRAIN_S: Final = 30.0
CONTROL_DRAIN_S: Final = 3.0
NETPROC_ANSWERS_S: Final = 2.5
NETPROC_ANSWERS_NS: Final = int(NETPROC_ANSWERS_S * 1e9)
"""In the orderly end a netproc waits so long for answers that are still to come, then it goes."""

assert TURN_NS * 5 <= LONGEST_SLEEP_S * 1e9, "who waits for a turn waits no longer than a sleep"
assert LONGEST_SLEEP_S * 10 <= CONFIRM_S, "a loop that sleeps must have time to confirm"
assert CONFIRM_S < WEDGED_S, "who stands still is first late to confirm"
assert WEDGED_S * 2 < STILL_S, "who can be replaced is replaced first"
assert LONGEST_SLEEP_S < LOOK_S, "who only sleeps has beaten at every look"
assert LOOK_S < PAUSED_S < WEDGED_S, "a late look is no pause, and a pause makes nobody wedged"
assert LEAVE_S + 4 * LONGEST_SLEEP_S < LEFT_S, "control goes before nobody waits for it"
assert NETPROC_ANSWERS_S + LONGEST_SLEEP_S < NETPROC_DRAIN_S, "a netproc goes before it is killed"
