"""Groups on a disk that another program fills: an offset that was acknowledged stays, whoever is
refused may try again, and nothing has to be started again."""

from random import Random

from sim.disk import PAGE, SimDisk
from test_coordinating import COMMIT, HEARTBEAT, Groups, code_of

from appliance.base import errors, reserve
from appliance.base.reserve import ReservedDisk
from tests.seeds import each_seed

MIB = 1 << 20
REFUSED = errors.COORDINATOR_NOT_AVAILABLE


class FullGroups(Groups):
    def __init__(self, **rest):
        self.sim = SimDisk()
        self.sim.capacity = 64 * MIB
        self.sim.mkdir("/d")
        super().__init__("/d", disk=ReservedDisk(self.sim, ["/d"]), **rest)

    def fill(self, leave=0):
        self.sim.foreign = 0
        self.sim.foreign = self.sim.free() - leave

    def look(self):
        """What housekeeping does about room."""
        self.now_ns += 10**9
        total, free = self.sim.space("/d")
        spare = reserve.spare(self.sim, "/d", total)
        if self.space.read_space(self.now_ns, total, free, spare) and not self.space.low:
            self.core.has_room(0)

    def make_room(self):
        self.sim.foreign = 0
        for _ in range(100):
            self.look()
        self.turn()
        self.synced()

    def told(self, offset, group="g"):
        """The error code of a commit, once it is answered; None while it is not."""
        self.commit(offset, token=offset, group=group)
        answers = self.turn()[0]
        for _ in range(3):
            answers += self.synced()[0]
        for token, code, body in answers:
            if token == offset:
                return code or code_of(COMMIT, body)
        return None


def test_offsets_use_the_reserve_and_half_of_it_is_left_for_what_frees_room():
    world = FullGroups()
    for _ in range(2):
        reserve.fill(world.sim, "/d", 64 * MIB)
    whole = reserve.left(world.sim, "/d")
    world.space._keep_bytes = 4 * MIB
    accepted = 0
    for offset in range(1, 4000):
        world.fill()  # whatever is given back is taken by another program
        world.look()
        code = world.told(offset, group=f"group-{offset}" * 100)
        if code == REFUSED:
            break
        assert code == 0
        accepted += 1
    assert code == REFUSED and accepted > 10
    assert whole // 2 - 2 * reserve.SLICE <= reserve.left(world.sim, "/d") <= whole // 2
    assert world.space.low and world.space.tight
    world.send(HEARTBEAT, 2, group_id="g", generation_id=1, member_id="m", group_instance_id=None)
    ((answer,), _) = world.turn()
    assert code_of(HEARTBEAT, answer[2]) == errors.UNKNOWN_MEMBER_ID
    world.make_room()
    assert world.told(5000) == 0
    assert world.committed() == [5000]


def test_without_any_room_a_commit_is_refused_at_once_and_reads_come_back_with_room():
    world = FullGroups()
    assert world.told(1) == 0
    world.fill()
    big = "g" * 3 * PAGE
    world.commit(2, token=2, group=big)
    ((answer,), _) = world.turn()
    assert code_of(COMMIT, answer[2]) == REFUSED
    assert world.partition.broken is None and world.failures == []
    world.make_room()
    assert world.committed() == [1]
    assert world.told(3, group=big) == 0
    assert world.committed(big) == [3]


@each_seed(30)
def test_no_acknowledged_offset_is_lost_whenever_there_is_no_room(seed):
    rng = Random(seed)
    world = FullGroups()
    if rng.random() < 0.5:
        reserve.fill(world.sim, "/d", 64 * MIB)
    world.space._keep_bytes = MIB
    acknowledged: dict[str, int] = {}
    last: dict[str, int] = {}
    for offset in range(1, 80):
        if rng.random() < 0.4:
            world.fill(leave=rng.randint(0, 3) * PAGE)
        elif rng.random() < 0.3:
            world.sim.foreign = 0
        if rng.random() < 0.7:
            world.look()
        group = rng.choice("abc") * rng.choice((1, PAGE))
        code = world.told(offset, group=group)
        last[group] = offset
        if code == 0:
            acknowledged[group] = offset
        else:
            assert code == REFUSED
        assert world.partition.broken is None and not world.events.said
    world.make_room()
    for group, offset in acknowledged.items():
        (found,) = world.committed(group)
        assert offset <= found <= last[group]
    assert world.told(1000) == 0
