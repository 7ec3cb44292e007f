"""Requests about ACLs with any texts: answered, and what is described afterwards is
what was said to be made."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.authorization.secured import Secured, every

bounded = settings(max_examples=60, deadline=None)
kinds, patterns = st.integers(1, 7), st.integers(1, 4)
operations, permissions = st.integers(1, 15), st.integers(1, 3)
"""Those that there are: a request with another number ends its connection, as with Apache Kafka."""
names = st.sampled_from(["", "*", "kafka-cluster", "orders"]) | st.text(max_size=12)
principals = st.sampled_from(["User:anna", "User:*", "User:", ":", "anna", ""]) | names
hosts = st.sampled_from(["*", "127.0.0.1", "::1", ""]) | names
rules = st.fixed_dictionaries({
    "resource_type": kinds, "resource_name": names,
    "resource_pattern_type": patterns, "principal": principals, "host": hosts,
    "operation": operations, "permission_type": permissions,
})  # fmt: skip
filters = st.fixed_dictionaries({
    "resource_type_filter": kinds, "resource_name_filter": st.none() | names,
    "pattern_type_filter": patterns, "principal_filter": st.none() | principals,
    "host_filter": st.none() | hosts, "operation": operations, "permission_type": permissions,
})  # fmt: skip


KEYS = ("resource_type", "resource_name", "resource_pattern_type", "principal", "host", "operation",
        "permission_type")  # fmt: skip
"""Of a rule, in the order of `_rows`."""


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    found = Secured(tmp_path_factory.mktemp("fuzzed"))
    yield found
    found.close()


def there(one):
    """Every rule that is described, as CreateAcls takes it."""
    told = one.asked("root", 29, 3, **every())
    assert not told["error_code"]
    return _rows(
        (row["resource_type"], row["resource_name"], row["pattern_type"], acl)
        for row in told["resources"]
        for acl in row["acls"]
    )


def _rows(found):
    return {
        (kind, name, pattern, acl["principal"], acl["host"], acl["operation"],
         acl["permission_type"])
        for kind, name, pattern, acl in found
    }  # fmt: skip


@bounded
@given(rows=st.lists(rules, max_size=5), version=st.integers(1, 3))
def test_what_is_made_is_what_is_described(one, rows, version):
    before = there(one)
    told = one.asked("root", 30, version, creations=rows)["results"]
    made = {
        tuple(row[key] for key in KEYS) for row, answer in zip(rows, told, strict=True)
        if not answer["error_code"]
    }  # fmt: skip
    assert there(one) == before | made


@bounded
@given(asked=st.lists(filters, max_size=4), version=st.integers(1, 3))
def test_what_is_removed_is_what_is_told(one, asked, version):
    before = there(one)
    described = [one.asked("root", 29, version, **each) for each in asked]
    told = one.asked("root", 31, version, filters=asked)["filter_results"]
    gone = set()
    for answer, seen in zip(told, described, strict=True):
        matching = answer["matching_acls"]
        found = _rows((acl["resource_type"], acl["resource_name"], acl["pattern_type"], acl)
                      for acl in matching)  # fmt: skip
        seen_rows = _rows((row["resource_type"], row["resource_name"], row["pattern_type"], acl)
                          for row in seen["resources"] for acl in row["acls"])  # fmt: skip
        assert found == seen_rows
        gone |= found
    assert there(one) == before - gone
