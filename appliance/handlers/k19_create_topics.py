"""CreateTopics, API key 19, versions 2 to 7.

4: counts may be -1 for the defaults (taken in every version here). 5: flexible; counts and
settings in the answer (KIP-525), for who may DESCRIBE_CONFIGS. 6: quota errors. 7: topic ids. Not
done: quotas; the timeout is not used because nothing is waited for. A topic with the setting
penstock.undelete is brought back instead of made, once the other brokers were asked who has it.
"""

from appliance.authorization import needs
from appliance.authorization.apis import declared
from appliance.base.errors import PeerError
from appliance.base.ids import ZERO_TOPIC_ID
from appliance.controller.decision import OK, Record, Result, duplicates, failed
from appliance.controller.topics import CreatedTopic, NewTopic, create_topics
from appliance.controller.undelete import UNDELETE, undelete, wants_undelete
from appliance.handlers import described_configs
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values, refusals


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    names = [topic.name for topic in request.topics]
    refused = refusals(context, needs.CREATE_TOPIC, names, "Authorization failed.")
    wanted = [
        NewTopic(
            name=topic.name,
            partitions=topic.num_partitions,
            replication_factor=topic.replication_factor,
            assignments=[(item.partition_index, item.broker_ids) for item in topic.assignments],
            configs={item.name: item.value for item in topic.configs},
        )
        for topic in request.topics
        if topic.name not in refused
    ]
    twice = duplicates([topic.name for topic in wanted])
    back = [one for one in wanted if wants_undelete(one) and one.name not in twice]
    records, results = create_topics(context.situation, [one for one in wanted if one not in back])
    results += [_undelete(context, one, records) for one in back]
    results += [(name, result, None) for name, result in refused.items()]
    rows = [_row(context, version, request.validate_only, *result) for result in results]
    return Answer([] if request.validate_only else records, {"throttle_time": 0, "topics": rows})


def seeks(request: Message, context: AdminContext) -> tuple[str, ...]:
    """The topics that are to come back, where other nodes may have them and the caller may ask."""
    image = context.situation.image
    if not any(one != context.situation.node_id for one in image.brokers):
        return ()
    return tuple(
        dict.fromkeys(
            topic.name
            for topic in request.topics
            if any(item.name == UNDELETE for item in topic.configs)
            and topic.name not in image.topics_by_name
            and context.rights.may(needs.CREATE_TOPIC, topic.name)
        )
    )


def _undelete(
    context: AdminContext, topic: NewTopic, records: list[Record]
) -> tuple[str, Result, CreatedTopic | None]:
    try:
        made, created = undelete(context.situation, context.kept(topic.name), topic)
    except PeerError as error:
        return topic.name, failed(error), None
    context.situation.free_rows -= created.partitions
    records += made
    return topic.name, OK, created


def _row(
    context: AdminContext,
    version: int,
    validate_only: bool,
    name: str,
    result: Result,
    created: CreatedTopic | None,
) -> Values:
    row: Values = {
        "name": name,
        "topic_id": ZERO_TOPIC_ID,
        "error_code": result.code,
        "error_message": result.message,
        "num_partitions": -1,
        "replication_factor": -1,
        "configs": [],
    }
    if created is None:
        return row
    if not validate_only:
        row["topic_id"] = created.topic_id
    if hidden := context.rights.refusal(needs.DESCRIBE_TOPIC_CONFIGS, name):
        row["topic_config_error_code"] = hidden
        return row
    row["num_partitions"] = created.partitions
    row["replication_factor"] = created.replication_factor
    if version >= 5:
        row["configs"] = described_configs.new_topic(context, created.configs)
    return row


API = Api(*declared(19), decide, seeks=seeks)
