"""All stories, by name: what plays a seed of each, and what is to come about in them."""

from importlib import import_module
from typing import NamedTuple

from sim.world import Broken


class Story(NamedTuple):
    """module, play: the function that plays a seed. share: of a hundred seeds, where nobody says
    which stories are wanted: cheap ones have more, and so have those that have most to find."""

    module: str
    play: str
    share: float

    def loaded(self):
        return import_module(self.module)

    @property
    def rare(self):
        """What is to come about, name → in so many seeds."""
        return self.loaded().RARE


STORIES = {
    "replicas": Story("sim.replicas.story", "play", 42),
    "replicated": Story("sim.replicated.cluster", "play", 14),
    "served": Story("sim.served.story", "play", 12),
    "transactional": Story("sim.transactional.story", "play", 10),
    "metadata": Story("sim.metadata.story", "play", 6),
    "isolated": Story("sim.test_isolated_leaders", "play", 6),
    "silent": Story("sim.test_silent_brokers", "play", 6),
    "agreed": Story("sim.agreed.story", "play", 2),
    "voters": Story("sim.agreed.elections", "play", 1),
    "watching": Story("sim.agreed.elections", "play_watching", 0.5),
    "replacing": Story("sim.agreed.elections", "play_replacing", 0.5),
    "crossing": Story("sim.agreed.elections", "play_crossing", 0.5),
}


class Played(NamedTuple):
    """Some seeds of a story. rare: name → in how many of them it came about. broken: what broke in
    `seed`, behind which nothing was played; else nothing."""

    story: str
    seeds: int
    events: int
    rare: dict
    broken: str = ""
    seed: int = -1


def play(name, seeds):
    """These seeds of a story, up to the first that breaks."""
    story = STORIES[name]
    tell = getattr(story.loaded(), story.play)
    count = events = 0
    rare = {}
    for seed in seeds:
        try:
            world = tell(seed)
        except Broken as broken:
            return Played(name, count, events, rare, str(broken), seed)
        count += 1
        events += world.events
        for one in world.rare:
            assert one in story.rare, f"{name} does not declare {one!r} as rare"
            rare[one] = rare.get(one, 0) + 1
    return Played(name, count, events, rare)
