"""Rights: what the authorizer says of one caller, and what of that is remembered."""

from appliance.authorization.needs import (
    ALTER_CLUSTER,
    CREATE_TOPIC,
    READ_GROUP,
    WRITE_TOPIC,
    WRITE_TRANSACTION,
)
from appliance.authorization.operations import (
    CLUSTER,
    CREATE,
    DESCRIBE,
    GROUP,
    READ,
    THE_CLUSTER,
    TOPIC,
    WRITE,
    Resource,
)
from appliance.authorization.rights import (
    NOBODY,
    OURSELVES,
    AllowAll,
    Authorizer,
    Callers,
    Rights,
)
from appliance.base import errors
from appliance.base.caller import Principal
from tests.callers import caller, rights

TOPIC_BITS, GROUP_BITS, CLUSTER_BITS = 0b1101_1111_1000, 0b1101_0100_1000, 0b1_1111_1010_0000


class Allows(Authorizer):
    """What it was given, to anybody."""

    def __init__(self, *allowed):
        self.allowed = allowed
        self.asked = []

    def allows_everything(self, caller):
        return False

    def allows(self, caller, operation, resource):
        self.asked.append((caller, operation, resource))
        return (operation, resource) in self.allowed

    def allows_some(self, caller, operation, kind):
        return any(one == operation and where.kind == kind for one, where in self.allowed)


def test_who_may_do_everything_is_asked_about_nothing():
    class Everything(Allows):
        def allows_everything(self, caller):
            return True

    authorizer = Everything()
    one = rights(authorizer=authorizer)
    assert one.everything and one.some(WRITE_TOPIC)
    assert one.refusal(WRITE_TOPIC, "t") == one.refusal(ALTER_CLUSTER) == errors.NONE
    assert one.operations(TOPIC, "t") == TOPIC_BITS
    assert one.operations(GROUP, "g") == GROUP_BITS
    assert one.operations(CLUSTER) == CLUSTER_BITS
    assert authorizer.asked == []


def test_each_kind_of_resource_has_its_error():
    assert NOBODY.refusal(WRITE_TOPIC, "t") == errors.TOPIC_AUTHORIZATION_FAILED
    assert NOBODY.refusal(READ_GROUP, "g") == errors.GROUP_AUTHORIZATION_FAILED
    assert NOBODY.refusal(ALTER_CLUSTER) == errors.CLUSTER_AUTHORIZATION_FAILED
    refused = NOBODY.refusal(WRITE_TRANSACTION, "t")
    assert refused == errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert NOBODY.operations(TOPIC, "t") == 0 and not NOBODY.some(WRITE_TOPIC)


def test_the_authorizer_is_asked_for_this_caller_this_operation_and_this_resource():
    authorizer = Allows((WRITE, Resource(TOPIC, "mine")))
    alice = caller(principal=Principal("User", "alice"))
    one = Rights(alice, authorizer)
    assert one.refusal(WRITE_TOPIC, "mine") == errors.NONE
    assert one.refusal(WRITE_TOPIC, "yours") == errors.TOPIC_AUTHORIZATION_FAILED
    assert authorizer.asked == [
        (alice, WRITE, Resource(TOPIC, "mine")), (alice, WRITE, Resource(TOPIC, "yours")),
    ]  # fmt: skip
    assert one.some(WRITE_TOPIC) and not one.some(READ_GROUP)


def test_a_right_on_the_cluster_may_do_as_well():
    on_cluster = rights(authorizer=Allows((CREATE, THE_CLUSTER)))
    on_topic = rights(authorizer=Allows((CREATE, Resource(TOPIC, "t"))))
    assert on_cluster.refusal(CREATE_TOPIC, "t") == on_topic.refusal(CREATE_TOPIC, "t") == 0
    assert on_cluster.refusal(CREATE_TOPIC, "u") == errors.NONE
    assert on_topic.refusal(CREATE_TOPIC, "u") == errors.TOPIC_AUTHORIZATION_FAILED


def test_operations_are_bits_by_their_numbers():
    group = Resource(GROUP, "g")
    one = rights(authorizer=Allows((READ, group), (DESCRIBE, group), (WRITE, group)))
    assert one.operations(GROUP, "g") == 1 << READ | 1 << DESCRIBE, "there is no WRITE of a group"
    assert one.operations(GROUP, "h") == 0


def test_whom_others_name_is_decoded_once():
    callers = Callers(AllowAll())
    encoded = caller("a").encode()
    one = callers.of(encoded)
    assert one.caller == caller("a") and one.encoded == encoded
    assert callers.of(bytes(encoded)) is one is callers.known[encoded]


def test_clients_that_call_themselves_differently_each_time_take_no_more_and_more_memory():
    callers = Callers(AllowAll())
    for number in range(10_000):
        callers.of(caller(str(number)).encode())
    assert len(callers.known) < 5000


def test_the_appliance_itself_is_known_by_its_mark_and_never_by_a_name():
    callers = Callers(AllowAll())
    assert callers.of(OURSELVES.encoded) is OURSELVES
    assert callers.of(OURSELVES.caller.encode()) is not OURSELVES
    assert OURSELVES.encoded != OURSELVES.caller.encode()
