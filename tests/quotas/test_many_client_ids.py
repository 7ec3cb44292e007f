"""A client that says a new id with each request evades quotas of client ids, and none of its user's
(docs/concepts.md says so)."""

from appliance.quotas.limits import PRODUCE, Limits

ME = "ANONYMOUS"


def meters(entity):
    limits = Limits(PRODUCE, {entity: {PRODUCE: 1000.0}})
    found = [limits.of(ME, f"id-{number}") for number in range(5)]
    assert all(limit is not None for limit in found)
    return {limit.meter for limit in found}


def test_a_quota_of_a_user_is_shared_by_all_its_client_ids():
    assert len(meters((("user", ME),))) == 1
    assert len(meters((("user", None),))) == 1


def test_a_quota_of_client_ids_is_one_for_each_as_kafkas():
    assert len(meters((("client-id", None),))) == 5
