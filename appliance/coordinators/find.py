"""FindCoordinator, API key 10, versions 0 to 6: answered from the image by the network process.

1: key type. 4: several keys. 5: TRANSACTION_ABORTABLE may be answered (we do not). 6: share groups.
Who leads the key's partition of the kind's topic is its coordinator.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from appliance.authorization.needs import DESCRIBE_GROUP, DESCRIBE_TRANSACTION
from appliance.authorization.operations import TEXTS
from appliance.authorization.rights import Rights
from appliance.base import errors
from appliance.coordinators.groups.kind import GROUPS
from appliance.coordinators.kinds import BY_KEY_TYPE
from appliance.coordinators.runtime.kind import Kind, partition_of
from appliance.coordinators.transactions.kind import TRANSACTIONS
from appliance.metadata.image import MetadataImage

SHARE: Final = 2

SEVERAL_SINCE: Final = 4
_NEEDS: Final = {GROUPS.KEY_TYPE: DESCRIBE_GROUP, TRANSACTIONS.KEY_TYPE: DESCRIBE_TRANSACTION}


class CoordinatorNode(NamedTuple):
    """A node as the asking client reaches it."""

    node_id: int
    host: str
    port: int


_MALFORMED: Final = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)
_NOBODY: Final = CoordinatorNode(-1, "", -1)
_NO_LEADER: Final = "no living broker leads the coordinator's partition now"


def find_coordinators(
    version: int,
    request: Any,
    image: MetadataImage,
    living: Callable[[int], CoordinatorNode | None],
    rights: Rights,
) -> tuple[dict[str, Any], str | None]:
    """(the answer's values, the internal topic that has to be created first, or None): all keys at
    once, see `finder`."""
    told, missing = finder(request, image, living, rights)
    if version < SEVERAL_SINCE:
        values = told(request.key)
        text = TEXTS.get(values["error_code"]) or values["error_message"] or "NONE"
        return {"throttle_time": 0, **values, "error_message": text}, missing
    rows = [told(key) for key in request.coordinator_keys]
    return {"throttle_time": 0, "coordinators": rows}, missing


def finder(
    request: Any,
    image: MetadataImage,
    living: Callable[[int], CoordinatorNode | None],
    rights: Rights,
) -> tuple[Callable[[str], dict[str, Any]], str | None]:
    """(what tells who coordinates a key, the internal topic to create first, or None).

    living: a broker that the client can go to, by its id. While the topic is missing, or nobody
    such leads, the answer is COORDINATOR_NOT_AVAILABLE, upon which clients ask again. Share groups,
    and types that there are not: INVALID_REQUEST. Who may not see a group or a transaction is not
    told more.
    """
    key_type = getattr(request, "key_type", GROUPS.KEY_TYPE)
    kind = BY_KEY_TYPE.get(key_type)
    missing = None
    if kind is not None and kind.TOPIC.name not in image.topics_by_name:
        missing = kind.TOPIC.name
    code, message = _verdict(key_type, missing)

    def describe_coordinator(key: str) -> dict[str, Any]:
        found, why, text = None, _refusal(rights, key_type, key), ""
        if not why:
            why, text = code, message
        if kind is not None and not why:
            found = living(_leader(image, kind, key))
            if found is None:
                why, text = errors.COORDINATOR_NOT_AVAILABLE, _NO_LEADER
        node = found or _NOBODY
        return {
            "key": key,
            "node_id": node.node_id,
            "host": node.host,
            "port": node.port,
            "error_code": why,
            "error_message": text,
        }

    return describe_coordinator, missing


def _leader(image: MetadataImage, kind: Kind, key: str) -> int:
    partitions = image.topics_by_name[kind.TOPIC.name].partitions
    return partitions[partition_of(key, len(partitions))].leader


def _refusal(rights: Rights, key_type: int, key: str) -> int:
    need = _NEEDS.get(key_type)
    return errors.NONE if need is None else rights.refusal(need, key)


def _verdict(key_type: int, missing: str | None) -> tuple[int, str]:
    if missing is not None:
        return errors.COORDINATOR_NOT_AVAILABLE, f"{missing} is being created"
    if key_type in BY_KEY_TYPE:
        return errors.NONE, ""
    if key_type == SHARE:
        return errors.INVALID_REQUEST, f"{_MALFORMED} Share groups are not served."
    return errors.INVALID_REQUEST, f"{_MALFORMED} Groups have key type 0, transactions 1."
