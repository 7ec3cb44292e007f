"""The rules that are made before anything is measured."""

from benchmarks import rules
from benchmarks.logins import USER


def test_two_halves_are_the_whole():
    whole = rules.rules(0, 100)
    assert rules.rules(0, 10) + rules.rules(10, 100) == whole
    assert len(set(whole)) == 100


def test_half_of_them_name_the_user_and_one_what_it_needs():
    whole = rules.rules(0, 100)
    mine = [one for one in whole if one[1] == USER]
    assert len(mine) == 51
    assert [one[0] for one in mine if not one[0].startswith("topic-")] == ["bench-"]
