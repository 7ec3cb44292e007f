"""Describes the changes of a request for the audit trail.

Called before the records are replayed, while the image still has the removed things.

Values of settings are told only where the setting is known and no secret.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from appliance.authentication.mechanisms import BY_NUMBER
from appliance.authorization.words import KINDS, OPERATIONS, PATTERNS, PERMISSIONS, word
from appliance.config.broker_settings import BROKER
from appliance.config.topic_settings import TOPIC as TOPIC_SETTINGS
from appliance.controller.delegation_tokens import find_token
from appliance.handlers.admin import AdminContext
from appliance.metadata.image import BROKER as BROKER_KIND
from appliance.metadata.image import BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC, MetadataImage
from appliance.shell.audit import Trail
from appliance.wire import kraft_records as kraft

Thing = dict[str, str]
"""type, name, action, and what belongs to that type."""
_MOST: Final = 1000
"""Records that are looked at; the others are counted."""
_NAMED: Final = 20
_CONFIG_KINDS: Final = {
    TOPIC: "TOPIC", BROKER_KIND: "BROKER", BROKER_LOGGER: "BROKER_LOGGER",
    CLIENT_METRICS: "CLIENT_METRICS", GROUP: "GROUP",
}  # fmt: skip
_DECLARED: Final = {TOPIC: TOPIC_SETTINGS, BROKER_KIND: BROKER}


def audited(
    trail: Trail | None, request: str, records: Sequence[object], context: AdminContext
) -> Callable[[], None]:
    """Describes the changes now; call the result when the records are appended."""
    if trail is None:
        return lambda: None
    things, more = changed_things(context.situation.image, records)
    return partial(trail.note_change, request, things, more, context.rights.caller)


def changed_things(image: MetadataImage, records: Sequence[object]) -> tuple[list[Thing], int]:
    """(things, how many records were not looked at)."""
    found: dict[tuple[str, ...], Thing] = {}
    born = {one.topic_id: one.name for one in records[:_MOST] if isinstance(one, kraft.TopicRecord)}

    def topic(topic_id: bytes) -> str:
        known = image.topics_by_id.get(topic_id)
        return born.get(topic_id, "") or (known.name if known is not None else topic_id.hex())

    for one in records[:_MOST]:
        if isinstance(one, kraft.PartitionRecord) and one.topic_id in born:
            continue  # its topic says it
        for thing in _things(one, image, topic):
            found.setdefault(tuple(thing.values()), thing)
    return list(found.values()), max(0, len(records) - _MOST)


def _things(record: Any, image: MetadataImage, topic: Callable[[bytes], str]) -> Iterator[Thing]:
    match record:
        case kraft.TopicRecord():
            yield _thing("topic", record.name, "create")
        case kraft.RemoveTopicRecord():
            yield _thing("topic", topic(record.topic_id), "delete")
        case kraft.PartitionRecord():
            yield _thing("partition", f"{topic(record.topic_id)}-{record.partition_id}", "create")
        case kraft.PartitionChangeRecord():
            yield _thing("partition", f"{topic(record.topic_id)}-{record.partition_id}", "alter")
        case kraft.ConfigRecord():
            yield _config(record)
        case kraft.UserScramCredentialRecord() | kraft.RemoveUserScramCredentialRecord():
            removed = isinstance(record, kraft.RemoveUserScramCredentialRecord)
            known = BY_NUMBER.get(record.mechanism)
            mechanism = known.name if known else str(record.mechanism)
            action = "delete" if removed else "alter"
            yield {**_thing("user", record.name, action), "mechanism": mechanism}
        case kraft.DelegationTokenRecord() | kraft.RemoveDelegationTokenRecord():
            yield _token(record, image)
        case kraft.AccessControlEntryRecord():
            yield _acl(record, "create")
        case kraft.RemoveAccessControlEntryRecord():
            rule = image.kept.get(("acl", record.id.hex()))
            if isinstance(rule, kraft.AccessControlEntryRecord):
                yield _acl(rule, "delete")
        case kraft.ClientQuotaRecord():
            yield _quota(record)
        case _:
            yield from _of_cluster(record)


def _of_cluster(record: Any) -> Iterator[Thing]:
    match record:
        case kraft.UnregisterBrokerRecord():
            yield _thing("broker", str(record.broker_id), "delete")
        case kraft.FeatureLevelRecord():
            yield {**_thing("feature", record.name, "set"), "value": str(record.feature_level)}
        case kraft.BeginTransactionRecord() | kraft.EndTransactionRecord() | kraft.NoOpRecord():
            return
        case _:
            yield _thing("cluster", type(record).__name__.removesuffix("Record"), "alter")


def _thing(kind: str, name: str, action: str) -> Thing:
    return {"type": kind, "name": name, "action": action}


def _config(record: kraft.ConfigRecord) -> Thing:
    kind = _CONFIG_KINDS.get(record.resource_type, str(record.resource_type))
    thing = _thing("config", record.name, "delete" if record.value is None else "set")
    thing |= {"resource": kind, "of": record.resource_name}
    setting = _DECLARED.get(record.resource_type, {}).get(record.name)
    if setting is not None and not setting.sensitive and record.value is not None:
        thing["value"] = record.value
    return thing


def _token(
    record: kraft.DelegationTokenRecord | kraft.RemoveDelegationTokenRecord, image: MetadataImage
) -> Thing:
    """A token by its id: its HMAC is in no record, and nowhere in the audit."""
    before = find_token(image, record.token_id)
    if isinstance(record, kraft.RemoveDelegationTokenRecord):
        thing = _thing("token", record.token_id, "expire")
        return thing if before is None else {**thing, "owner": before.owner}
    action = "create"
    if before is not None:
        longer = record.expiration_timestamp >= before.expiration_timestamp
        action = "renew" if longer else "expire"
    thing = {**_thing("token", record.token_id, action), "owner": record.owner}
    return {**thing, "expires_ms": str(record.expiration_timestamp)}


def _acl(rule: kraft.AccessControlEntryRecord, action: str) -> Thing:
    return {
        **_thing("acl", rule.principal, action),
        "permission": word(rule.permission_type, PERMISSIONS),
        "operation": word(rule.operation, OPERATIONS),
        "host": rule.host,
        "resource": word(rule.resource_type, KINDS),
        "pattern": word(rule.pattern_type, PATTERNS),
        "of": rule.resource_name,
    }


def _quota(record: kraft.ClientQuotaRecord) -> Thing:
    entity = ",".join(
        f"{one.entity_type}={one.entity_name or '<default>'}" for one in record.entity
    )
    thing = _thing("quota", record.key, "delete" if record.remove else "set")
    return {**thing, "of": entity, **({} if record.remove else {"value": f"{record.value:g}"})}


def named(records: Sequence[object]) -> dict[str, str]:
    """The topics whose making or whose settings these records are, and the settings that they
    change, without their values, which may be secret."""
    topics: dict[str, None] = {}
    settings: dict[str, None] = {}
    for one in records:
        if isinstance(one, kraft.TopicRecord):
            topics[one.name] = None
        elif isinstance(one, kraft.ConfigRecord):
            settings[one.name] = None
            if one.resource_type == TOPIC:
                topics[one.resource_name] = None
    told = {"topics": topics, "settings": settings}
    return {key: ",".join(islice(names, _NAMED)) for key, names in told.items() if names}
