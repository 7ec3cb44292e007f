"""DeleteTopics, API key 20, versions 1 to 6.

3: TOPIC_DELETION_DISABLED (INVALID_REQUEST before). 4: flexible. 5: error texts and quota errors.
6: topics by name or by id. A topic is gone when the answer comes; its files follow after
file.delete.delay.ms.
"""

from appliance.base import errors
from appliance.controller.topics import TopicToDelete, delete_topics
from appliance.handlers.admin import AdminContext, Answer, Api, Message


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    if version >= 6:
        wanted = [
            TopicToDelete(item.name, item.topic_id.bytes if item.topic_id else None)
            for item in request.topics
        ]
    else:
        wanted = [TopicToDelete(name) for name in request.topic_names]
    records, results = delete_topics(context.situation, wanted)
    rows = []
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


API = Api(20, "DeleteTopics", 1, 6, 4, decide)
