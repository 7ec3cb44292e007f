"""Which limit holds: all eight levels, each taken away in turn."""

from appliance.quotas.limits import FETCH, PRODUCE, Limits, entity_of

U, C = "user", "client-id"
LEVELS = [
    (((C, "c"), (U, "u")), ("u", "c")),
    (((C, None), (U, "u")), ("u", "c")),
    (((U, "u"),), ("u", "")),
    (((C, "c"), (U, None)), ("u", "c")),
    (((C, None), (U, None)), ("u", "c")),
    (((U, None),), ("u", "")),
    (((C, "c"),), ("", "c")),
    (((C, None),), ("", "c")),
]


def test_the_most_specific_entity_that_has_the_kind_wins():
    quotas = {entity: {PRODUCE: float(10 + n)} for n, (entity, _) in enumerate(LEVELS)}
    for n, (entity, meter) in enumerate(LEVELS):
        found = Limits(PRODUCE, quotas).of("u", "c")
        assert (found.bound, found.meter) == (10.0 + n, meter)
        assert entity_of(found.level, *meter) == entity
        del quotas[entity]
        quotas[entity] = {FETCH: 1.0}  # of another kind: as if it were not there
    assert Limits(PRODUCE, quotas).of("u", "c") is None
    assert not Limits(PRODUCE, quotas)


def test_others_are_not_held_by_what_is_named_for_one():
    limits = Limits(PRODUCE, {((C, "c"),): {PRODUCE: 5.0}, ((U, "u"),): {PRODUCE: 6.0}})
    assert limits.of("v", "d") is None
    assert limits.of("u", "c").bound == 6.0
    assert limits.of("v", "c").bound == 5.0


def test_an_address_has_its_own_limit_or_the_default():
    kind = "connection_creation_rate"
    limits = Limits(kind, {(("ip", None),): {kind: 3.0}, (("ip", "10.0.0.1"),): {kind: 9.0}})
    assert limits.of_ip("10.0.0.1").bound == 9.0
    assert limits.of_ip("10.0.0.2").bound == 3.0
    assert limits.of_ip("10.0.0.2").meter == ("10.0.0.2", "")
    assert entity_of(limits.of_ip("10.0.0.1").level, "10.0.0.1", "") == (("ip", "10.0.0.1"),)
    assert entity_of(limits.of_ip("10.0.0.2").level, "10.0.0.2", "") == (("ip", None),)
