"""Log events of control about changes and requests."""

from collections.abc import Mapping

from appliance.control.deletion.topic_trash import TopicTrash
from appliance.control.requests.admin_requests import USUAL
from appliance.metadata.changes import Change, TopicAdded, TopicRemoved
from appliance.shell.log import ERROR, NOTICE, WARNING, Log


def log_change(log: Log, change: Change, trash: TopicTrash) -> None:
    """This is committed."""
    if isinstance(change, TopicAdded):
        back = change.topic_id in trash.view.topics
        event = "topic-undeleted" if back else "topic-created"
        log.event_kept(NOTICE, event, topic=change.name)
    elif isinstance(change, TopicRemoved):
        log.event_kept(NOTICE, "topic-deleted", topic=change.name)


def report(log: Log, event: str, fields: Mapping[str, object]) -> None:
    """This was asked, or went wrong."""
    if event in USUAL:
        log.note_event(NOTICE, event, **fields)
    else:
        log.event_seldom(ERROR if event == "bug" else WARNING, event, **fields)
