"""A request of any API, filled from its schema: a text is the name of a thing, unless its field
means something else.

A list of things has one element for each name; what is named once has the first of them. So a new
API is asked about things as soon as it has a schema.
"""

from uuid import UUID

from appliance.wire.messages import layout_of, request_type
from tests.differential.records import batch
from tests.differential.registry import APIS

MISSING = object()
ENDPOINT = {"name": "CONTROLLER", "host": "localhost", "port": 9}
ROW = {"partition_index": 0}
NOBODY = {"producer_id": 500_000, "producer_epoch": 0}


def _thing(about, name):
    return name


def of_producer(field):
    return lambda about, name: about.producers.get(name, NOBODY)[field]


FIELDS = {
    # of partitions
    "index": 0, "partition": 0, "partition_index": 0, "partitions": [0], "partition_indexes": [0],
    "records": batch(b"v"), "timestamp": -1, "current_leader_epoch": -1, "fetch_offset": 0,
    "partition_max_bytes": 1000, "max_bytes": 100_000, "log_start_offset": -1, "offset": 0,
    "last_fetched_epoch": -1, "committed_offset": 3, "committed_metadata": "",
    "committed_leader_epoch": -1, "topic_id": lambda about, name: about.ids.get(name),
    # of requests
    "acks": -1, "timeout": 10_000, "replica_id": -1, "session_epoch": -1, "session_id": 0,
    "rack_id": "", "cluster_id": None, "forgotten_topics_data": [], "max_wait": 0,
    "min_bytes": 0, "reason": None, "cursor": None, "response_partition_limit": 100,
    # of groups
    "member_id": "", "generation_id": -1, "generation_id_or_member_epoch": -1,
    "group_instance_id": None, "instance_id": None, "retention_time": -1, "session_timeout": 200,
    "rebalance_timeout": 200, "protocol_type": "consumer", "protocol_name": "range",
    "protocols": [{"name": "range", "metadata": b""}], "members": [{"member_id": "m"}],
    "assignments": [], "states_filter": [], "types_filter": [], "member_epoch": -1,
    "server_assignor": None, "subscribed_topic_regex": None, "key_type": 0,
    # of transactions
    "producer_id": of_producer("producer_id"), "producer_epoch": of_producer("producer_epoch"),
    "v3_and_below_producer_id": of_producer("producer_id"),
    "v3_and_below_producer_epoch": of_producer("producer_epoch"), "transaction_timeout": 60_000,
    "committed": True, "state_filters": [], "producer_id_filters": [], "duration_filter": -1,
    "transactional_id_pattern": None,
    # of topics and their settings
    "num_partitions": 1, "replication_factor": 1, "configs": [], "count": 3, "validate_only": False,
    "replicas": [1], "path": "/nowhere", "configuration_keys": ["retention.ms"],
    # of rules: that of reading topics
    "resource_type": 2, "resource_type_filter": 2, "resource_pattern_type": 3,
    "pattern_type_filter": 3, "operation": 3, "permission_type": 3, "principal": "User:anna",
    "host": "*", "principal_filter": None, "host_filter": None,
    # of tokens
    "principal_type": "User", "owner_principal_type": "User", "max_lifetime": -1,
    "hmac": b"no token's", "renew_period": -1, "expiry_time_period": -1,
    # of the cluster
    "resource_types": [16], "components": [], "upsertions": [], "mechanism": 1, "broker_id": 7,
    "voter_id": 7, "voter_directory_id": UUID(int=7), "listeners": [ENDPOINT],
    "feature_updates": [{"feature": "nothing", "max_version_level": 1, "upgrade_type": 1}],
}  # fmt: skip
"""Field → its value, or a function of (what is there, the name it is about)."""


def _entries(about, name):
    ops = [{"key": "producer_byte_rate", "value": 1e9, "remove": False}]
    rows = [{"entity_type": "user", "entity_name": one} for one in about.many]
    return [{"entity": [row], "ops": ops} for row in rows]


OF_APIS = {
    "Produce": {"transactional_id": None},
    "InitProducerId": {"transactional_id": None, "producer_id": -1, "producer_epoch": -1},
    "Metadata": {"allow_auto_topic_creation": False},
    "OffsetFetch": {"member_id": None},
    "ConsumerGroupHeartbeat": {"member_id": "m", "member_epoch": 0, "topic_partitions": []},
    "WriteTxnMarkers": {"producer_id": 500_000, "producer_epoch": 0},
    "AlterClientQuotas": {"entries": _entries},
    "AlterConfigs": {"configs": [{"name": "retention.ms", "value": "500000000"}]},
    "IncrementalAlterConfigs": {"configs": [{"name": "retention.ms", "value": "500000000"}]},
    "DescribeQuorum": {"topic_name": "__cluster_metadata", "partitions": [ROW]},
    "CreateDelegationToken": {"renewers": [{"principal_type": "User", "principal_name": "anna"}]},
    "AddRaftVoter": {"cluster_id": "elsewhere"},
    "RemoveRaftVoter": {"cluster_id": "elsewhere"},
}
"""The same, of one API."""


def _resource(kind, name, key, value):
    """A setting of something that is not a topic. name: None for the one that is asked about."""

    return {"resource_type": kind, "configuration_keys": [key],
            "configs": [{"name": key, "value": value}],
            "resource_name": _thing if name is None else name}  # fmt: skip


_OF_GROUPS = _resource(32, None, "consumer.session.timeout.ms", "50000")
_OF_BROKERS = _resource(4, "1", "log.segment.bytes", "500000000")
_OF_METRICS = _resource(16, None, "interval.ms", "50000")
_CONFIGS = {"of groups": _OF_GROUPS, "of a broker": _OF_BROKERS, "of metrics": _OF_METRICS}


def _transactional(about, name):
    one = about.producers.get(about.name, NOBODY)
    producer = (one["producer_id"], one["producer_epoch"], 0)
    return batch(b"v", attributes=0x10, producer=producer)


VARIANTS = {
    "Produce": {"transactional": {"transactional_id": _thing, "records": _transactional}},
    "Fetch": {"as a replica": {"replica_id": 7, "replica_state": {"replica_id": 7}}},
    "InitProducerId": {"transactional": {"transactional_id": _thing}},
    "Metadata": {"created": {"allow_auto_topic_creation": True}},
    "FindCoordinator": {"of transactions": {"key_type": 1}},
    "DescribeConfigs": _CONFIGS,
    "AlterConfigs": _CONFIGS,
    "IncrementalAlterConfigs": _CONFIGS,
    "DescribeAcls": {"of groups": {"resource_type_filter": 3}},
}  # fmt: skip
"""API → further requests, by what is said of them: fields that are another value there."""


class About:
    """What a request is about. name: what it names once; many: the names that its lists have; ids:
    topics' ids by name where they are asked for so; producers: the numbers of transactional ids by
    name."""

    def __init__(self, name, many, ids=(), producers=()):
        self.name = name
        self.many = list(many)
        self.ids = dict(ids)
        self.producers = dict(producers)


def request(api, version, about, fields=()):
    """The values of a request. fields: of a variant."""
    known = FIELDS | OF_APIS.get(api, {}) | dict(fields)
    return _struct(layout_of(request_type(APIS[api], version)), about, about.name, known)


def fields(api, version):
    """The names of all fields of a request, however deep."""
    found = set()

    def walk(layout):
        for item in layout.fields:
            found.add(item.name)
            if item.nested is not None:
                walk(item.nested)

    walk(layout_of(request_type(APIS[api], version)))
    return found


def named_once(api, version, known=()):
    """True if the request names a thing outside of its lists."""
    known = FIELDS | OF_APIS.get(api, {}) | dict(known)
    return any(_is_thing(item, known) and not item.array
               for item in layout_of(request_type(APIS[api], version)).fields)  # fmt: skip


def ways(api, version):
    """How topics can be named: (False,) by their names, (True,) by their ids, or both."""
    found = fields(api, version)
    if "topic_id" not in found or api == "ConsumerGroupHeartbeat":
        return (False,)
    return (False, True) if api in ("Metadata", "DeleteTopics") else (True,)


def _struct(layout, about, name, known):
    values = {item.name: _value(item, about, name, known) for item in layout.fields}
    if values.get("topic_id") is not None:
        for item in layout.fields:
            if item.name in ("name", "topic"):
                values[item.name] = None if item.nullable or item.name == "name" else ""
    return {key: value for key, value in values.items() if value is not MISSING}


def _value(item, about, name, known):
    if item.name in known:
        value = known[item.name]
        if item.nested is None or not isinstance(value, list) or not _of_numbers(value):
            return value(about, name) if callable(value) else value
    if item.nested is not None and item.array:
        names = about.many if _names_things(item.nested, known) else [name]
        return [_struct(item.nested, about, one, known) for one in names]
    if item.nested is not None:
        return MISSING if item.nullable else _struct(item.nested, about, name, known)
    if _is_thing(item, known):
        return list(about.many) if item.array else name
    return item.name.startswith("include_") if item.kind == "bool" else MISSING


def _of_numbers(value):
    """Partitions are numbers in some lists and have fields in others."""
    return bool(value) and all(isinstance(one, int) for one in value)


def _names_things(layout, known):
    return any(_is_thing(item, known) or item.name == "topic_id" for item in layout.fields)


def _is_thing(item, known):
    if item.nested is not None or item.kind != "string":
        return False
    return item.name not in known or known[item.name] is _thing
