"""DeleteTopics, API key 20, versions 1 to 6.

3: TOPIC_DELETION_DISABLED (INVALID_REQUEST before). 4: flexible. 5: error texts and quota errors.
6: topics by name or by id. A topic is gone when the answer comes; its files follow after
file.delete.delay.ms.
"""

from appliance.authorization import needs
from appliance.authorization.apis import declared
from appliance.authorization.operations import TEXTS
from appliance.base import errors
from appliance.controller.topics import TopicToDelete, delete_topics
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    if version >= 6:
        asked = [
            TopicToDelete(item.name, item.topic_id.bytes if item.topic_id else None)
            for item in request.topics
        ]
    else:
        asked = [TopicToDelete(name) for name in request.topic_names]
    wanted, rows = _allowed(context, asked)
    records, results = delete_topics(context.situation, wanted)
    for item, result, topic in results:
        code = result.code
        if code == errors.TOPIC_DELETION_DISABLED and version < 3:
            code = errors.INVALID_REQUEST
        rows.append(
            {
                "name": topic.name if topic else item.name,
                "topic_id": topic.topic_id if topic else item.topic_id,
                "error_code": code,
                "error_message": result.message,
            }
        )
    return Answer(records, {"throttle_time": 0, "responses": rows})


def _allowed(
    context: AdminContext, asked: list[TopicToDelete]
) -> tuple[list[TopicToDelete], list[Values]]:
    """The topics that the caller may delete, and the rows of the others. Existence and the name of
    an id are shown only with DESCRIBE.
    """
    rights, image = context.rights, context.situation.image
    if rights.everything:
        return asked, []
    wanted: list[TopicToDelete] = []
    rows: list[Values] = []
    for item in asked:
        by_id = None if item.topic_id is None else image.topics_by_id.get(item.topic_id)
        name = item.name if item.name is not None or by_id is None else by_id.name
        unseen = errors.NONE if name is None else rights.refusal(needs.SEE_DELETED_TOPIC, name)
        code = unseen
        if not code and name in image.topics_by_name:
            code = rights.refusal(needs.DELETE_TOPIC, name)
        if not code:
            wanted.append(item)
            continue
        rows.append(
            {
                "name": item.name if unseen else name,
                "topic_id": item.topic_id,
                "error_code": code,
                "error_message": TEXTS[code],
            }
        )
    return wanted, rows


API = Api(*declared(20), decide)
