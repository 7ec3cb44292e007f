"""Replicas that are not in sync, in words."""

from console.model.cluster.nodes import FENCED, Node
from console.model.topics.replicas import BEHIND, FOLDER, LEVEL, UNREGISTERED, Missing
from console.show.figures import age, in_bytes, some


def describe_missing(missing: Missing, node: Node | None) -> str:
    """`node 2 is fenced, not heard of for 3 min`, `node 2 is 1,204 records, 12.3 MB behind`."""
    who = f"node {missing.node}"
    if missing.why == UNREGISTERED:
        return f"{who} is not registered"
    if missing.why == FENCED:
        silent = node is not None and node.heard_s is not None and node.heard_s >= 1
        return f"{who} is fenced" + (
            f", not heard of for {age(node.heard_s)}" if silent and node is not None else ""
        )
    if missing.why == FOLDER:
        return f"{who} has lost the folder that it was in, or has no row for it (see its log)"
    if missing.why == LEVEL:
        return f"{who} has caught up and joins in a moment"
    if missing.why == BEHIND:
        assert missing.records is not None
        more = f", {in_bytes(missing.bytes)}" if missing.bytes else ""
        return f"{who} is {some(missing.records, 'record')}{more} behind"
    return f"{who} does not say how far it is"
