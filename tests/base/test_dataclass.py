"""The appliance's own `dataclass` beside the standard library's: the same classes, made by both."""

import copy
import dataclasses
import pickle
import subprocess
import sys

import pytest

from appliance.base.dataclass import dataclass as ours

KINDS = [
    {"slots": True},
    {"slots": True, "eq": False},
    {"slots": True, "frozen": True},
    {"slots": True, "frozen": True, "kw_only": True},
    {"slots": True, "kw_only": True},
]


def point(decorator, kind):
    @decorator(**kind)
    class Point:
        """A place."""

        x: int
        y: int = 2
        names: list[str] = dataclasses.field(default_factory=list)
        secret: str = dataclasses.field(default="s", repr=False)
        cache: int = dataclasses.field(default=0, compare=False)

        def total(self):
            return self.x + self.y

    return Point


def both(kind):
    return point(ours, kind), point(dataclasses.dataclass, kind)


@pytest.fixture(params=KINDS, ids=lambda kind: " ".join(kind))
def kind(request):
    return request.param


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


def test_instances_are_made_and_shown_alike(kind):
    for cls in both(kind):
        assert repr(cls(x=1)).endswith("Point(x=1, y=2, names=[], cache=0)")
        assert dataclasses.asdict(cls(x=1, y=3)) == {
            "x": 1, "y": 3, "names": [], "secret": "s", "cache": 0,
        }  # fmt: skip
        assert dataclasses.replace(cls(x=1), y=5).total() == 6
        assert cls(x=1).names is not cls(x=1).names
        assert not hasattr(cls(x=1), "__dict__")
    mine, standard = both(kind)
    assert mine.__match_args__ == standard.__match_args__
    assert [f.name for f in dataclasses.fields(mine)] == list(standard.__slots__)


@pytest.mark.parametrize("values", [(1,), (1, 2, [], "s", 0), (1, 2, [], "s", 0, 9), ()])
def test_what_can_be_given_by_place_is_the_same(kind, values):
    mine, standard = both(kind)
    told = [outcome(lambda cls=cls: repr(cls(*values))) for cls in (mine, standard)]
    assert told[0] == told[1]


def test_a_wrong_name_is_refused_in_the_same_words(kind):
    mine, standard = both(kind)
    assert outcome(lambda: mine(1, z=2)) == outcome(lambda: standard(1, z=2))


def test_equality_and_hashes_follow_the_compared_fields(kind):
    def facts(cls):
        one, same, other = cls(x=1), cls(x=1, cache=7), cls(x=2)
        return (
            one == same, one != other, one == 1, one == one, cls.__hash__ is None,
            outcome(lambda: hash(cls(x=1, names=())) == hash(cls(x=1, names=(), cache=3))),
        )  # fmt: skip

    mine, standard = both(kind)
    assert facts(mine) == facts(standard)


def test_frozen_instances_refuse_changes_and_are_copied(kind):
    mine, standard = both(kind)
    for change in (
        lambda one: setattr(one, "x", 3),
        lambda one: delattr(one, "y"),
        lambda one: copy.deepcopy(one).total(),
        lambda one: copy.copy(one).names is one.names,
    ):
        told = [
            outcome(lambda cls=cls, change=change: change(cls(x=1))) for cls in (mine, standard)
        ]
        assert told[0] == told[1]


@ours(slots=True, frozen=True)
class Kept:
    one: int
    two: tuple[int, ...] = ()


@ours(slots=True)
class Parent:
    first: int

    def __post_init__(self):
        self.first += 1


@ours(slots=True)
class Child(Parent):
    second: int = 3

    def __eq__(self, other):
        return self.second == other.second

    def __repr__(self):
        return "child"


def test_frozen_instances_are_pickled():
    assert pickle.loads(pickle.dumps(Kept(1, (2,)))) == Kept(1, (2,))


def test_fields_and_the_last_step_of_init_are_inherited():
    one = Child(1)
    assert (one.first, one.second) == (2, 3)
    assert Parent(5).first == 6


def test_methods_of_the_class_stay_its_own():
    assert Child(1) == Child(2) and repr(Child(1)) == "child"


def test_one_field_and_none_are_compared():
    @ours(slots=True)
    class One:
        value: float

    @ours(slots=True, frozen=True)
    class Empty:
        pass

    nan = float("nan")
    assert One(nan) == One(nan), "the same object is equal, as in a tuple"
    assert Empty() == Empty() and hash(Empty()) == hash(())


def test_instances_match_patterns():
    match Kept(1, (2,)):
        case Kept(one, two):
            assert (one, two) == (1, (2,))


def test_a_start_compiles_few_methods_of_dataclasses():
    """The standard decorator would compile some 900, a quarter of the processor time of imports."""
    told = subprocess.run(
        [sys.executable, "-c", COUNT], capture_output=True, text=True, check=True
    )  # fmt: skip
    assert int(told.stdout) < 100


COUNT = """
import builtins, sys
sys.modules["hypothesis"] = None
from console.commands import up
import dataclasses
count, plain = 0, builtins.exec
def counted(text, *rest):
    global count
    count += isinstance(text, str) and rest and text.startswith("def __create_fn__")
    return plain(text, *rest)
dataclasses.__dict__["exec"] = counted
up.preload()
print(count)
"""
