"""Who says who leads: the oracle of a simulated cluster. A quorum of its own comes later."""

from sim.node import Node
from sim.replicated.talk import Alter, Altered, Beat, State

SESSION_MS = 80
LOOK_MS = 15


class Controller(Node):
    """Says who leads and who is in sync; its memory survives everything. Fewer than least_in_sync
    are in sync only when others lost what they had."""

    def __init__(self, world, name, *, least_in_sync):
        super().__init__(world, name)
        self.least_in_sync = least_in_sync
        self.told = State(0, 0, "", ())
        self.lives = {}  # broker → (life, when it was last heard of)

    def begin(self):
        self.after(LOOK_MS, self.look)

    def received(self, end, message):
        if isinstance(message, Beat):
            self.beat(message)
        elif isinstance(message, Alter):
            end.send(Altered(message.number, self.alter(message)))
        end.send(self.told)

    def beat(self, beat):
        known = self.lives.get(beat.broker, (-1, 0))[0]
        if beat.life < known:
            return
        self.lives[beat.broker] = (beat.life, self.world.clock.ms)
        told = self.told
        if beat.life != known and told.number:
            others = tuple(one for one in told.in_sync if one != beat.broker)
            if beat.unclean and beat.broker in told.in_sync:
                assert others, "the last one in sync lost what it had"
                self.set(others, told.leader)
            if told.leader == beat.broker:
                self.set(self.told.in_sync, "")
        broker = self.world.nodes[beat.broker]
        if broker.life == beat.life:
            broker.unclean = False
        self.look_once()

    def alter(self, wish):
        told = self.told
        if (wish.epoch, wish.number) != (told.epoch, told.number):
            return False
        if wish.joins and self.lives.get(wish.joins[0], (-1, 0))[0] != wish.joins[1]:
            return True
        if len(wish.in_sync) < min(self.least_in_sync, len(told.in_sync)):
            return True
        self.set(wish.in_sync, told.leader)
        return False

    def look(self):
        self.look_once()
        self.after(LOOK_MS, self.look)

    def knows(self, broker):
        """Whether it has heard of this life of it."""
        return self.lives.get(broker.name, (-1, 0))[0] == broker.life

    def look_once(self):
        """Who was not heard of for long leads no more and is not in sync; somebody in sync
        leads."""
        now, told = self.world.clock.ms, self.told
        alive = [name for name in self.lives if now - self.lives[name][1] <= SESSION_MS]
        if not told.number:
            if len(alive) == 3:
                self.told = State(1, 1, alive[0], tuple(sorted(alive)))
            return
        if told.leader in alive:
            return
        in_sync = told.in_sync
        if told.leader and len(in_sync) > self.least_in_sync:
            in_sync = tuple(one for one in in_sync if one != told.leader)
        able = [one for one in in_sync if one in alive]
        if able:
            self.set(in_sync, self.world.rng.choice(able))
        elif told.leader:
            self.set(told.in_sync, "")

    def set(self, in_sync, leader):
        told = self.told
        epoch = told.epoch + (leader != told.leader)
        self.told = State(told.number + 1, epoch, leader, in_sync)
        self.say(str(self.told))
