"""The metadata of a cluster as that of one of its nodes alone: what a backup of a node becomes.

Everything that the node had it has and leads; a partition of which it had no replica begins empty,
since a topic has no holes. The others are forgotten: as brokers, controllers, voters and replicas.
"""

import os
import re
from collections.abc import Sequence
from typing import Final

from appliance.metadata.checkpoint import VoterSet
from appliance.metadata.identity import new_uuid
from appliance.metadata.image import MetadataImage
from appliance.wire import kraft_records as kraft
from appliance.wire.uuids import format_uuid

_UNASSIGNED: Final = bytes(16)
_CLUSTER: Final = re.compile(r"^(cluster\.id=).*$", re.MULTILINE)


def of_another_cluster(identities: Sequence[str]) -> tuple[str, ...]:
    """These `meta.properties` of the folders of one node, with a new id of a cluster in all of
    them: neither the nodes that were left nor who starts this one by their settings takes it for
    one of them."""
    fresh = format_uuid(new_uuid(os.urandom))
    return tuple(_CLUSTER.sub(rf"\g<1>{fresh}", one) for one in identities)


def others(image: MetadataImage, node_id: int) -> list[int]:
    """The brokers beside this node."""
    return sorted(set(image.brokers) - {node_id})


def left_alone(image: MetadataImage, quorum: VoterSet, node_id: int) -> VoterSet:
    """Change the image, of which nobody else has a part, to that of this node alone; who votes
    then."""
    at = image.applied_offset
    for number in others(image, node_id):
        epoch = image.brokers[number].epoch
        image.apply(at, kraft.UnregisterBrokerRecord(broker_id=number, broker_epoch=epoch))
    for number in set(image.controllers) - {node_id}:
        del image.controllers[number]  # no record says so: controllers are forgotten by their votes
    for topic in list(image.topics_by_name.values()):
        for one in topic.partitions:
            mine = dict(zip(one.replicas, one.directories, strict=False)).get(node_id, _UNASSIGNED)
            record = kraft.PartitionChangeRecord(
                partition_id=one.index, topic_id=topic.topic_id, isr=(node_id,), leader=node_id,
                replicas=(node_id,), removing_replicas=(), adding_replicas=(), directories=(mine,),
                leader_recovery_state=0,
                **({"eligible_leader_replicas": ()} if one.eligible_leader_replicas else {}),
                **({"last_known_elr": ()} if one.last_known_elr else {}),
            )  # fmt: skip
            image.apply(at, record)
    voters = () if quorum.record is None else quorum.record.voters
    kept = tuple(one for one in voters if one.voter_id == node_id)
    if quorum.record is None or not kept:
        return VoterSet()
    return VoterSet(quorum.kraft_version, type(quorum.record)(voters=kept))
