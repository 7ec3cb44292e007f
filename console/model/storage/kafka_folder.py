"""The data folder of one Apache Kafka node (KRaft, broker and controller in one) as ours, and ours
as its: what is in it, what stands against it, what is lost on the way.

Formats are Kafka's on both sides, so that it is a copy of the same cluster, node and folder: ids,
offsets, epochs, groups, transactions and producers stay as they are. Only two things are ours
alone: files besides partitions, which stay here, and settings that Kafka has not, which it would
refuse the next change of a topic for; an export writes the metadata anew without them.
"""

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from appliance.base.disk import Disk, read_file
from appliance.base.errors import ConfigError, DiskFull, PeerError, StorageFailed
from appliance.config.topic_settings import TOPIC as TOPIC_SETTINGS
from appliance.control.folder.startup import check_features
from appliance.control.quorum import log_repair as repair
from appliance.control.quorum import state_file as quorum_state
from appliance.controller.features import SUPPORTED
from appliance.controller.names import check_topic_name
from appliance.ioproc.durability import checkpoints
from appliance.logstore.files import LOG, stem
from appliance.logstore.format_upgrade import upgrade_folder
from appliance.logstore.partition_metadata import read_topic_id
from appliance.logstore.scrub import ANY, segments_of
from appliance.metadata.follower import LOG_FOLDER
from appliance.metadata.identity import META_PROPERTIES, Identity, read_identity
from appliance.metadata.image import TOPIC, MetadataImage
from appliance.supervisor.folder import CLEAN_NAME
from appliance.wire import kraft_records as kraft
from console.model.asking.failure import Failure, usage
from console.model.storage import folder_copy
from console.model.storage.folder_copy import Source

_PARTITION: Final = re.compile(r"(.+)-(\d+)")
_BESIDE: Final = (
    "bootstrap.checkpoint", checkpoints.RECOVERY_POINT, checkpoints.HIGH_WATERMARK,
    checkpoints.LOG_START, checkpoints.CLEANER,
)  # fmt: skip
_OURS: Final = ("flush.policy", "log.flush.policy")
_NOT_ENFORCED: Final = {
    "acl": "ACLs are kept, and NOT enforced without authorizer.class.name: every client that can"
    " connect may do everything",
    "scram": "SCRAM credentials are kept: their users log in where a listener asks for it",
    "token": "delegation tokens are kept: clients log in by them where"
    " delegation.token.secret.key is the same",
}
_SHOWN: Final = 5
_INDEX_INTERVAL: Final = 4096
"""log.index.interval.bytes of segments that are written anew."""


@dataclass(slots=True)
class Found:
    """A folder whose broker is stopped. clean: it ended in order. notes: what is not as it was on
    the other side, a sentence each. size: of the files, bytes."""

    folder: str
    identity: Identity
    made: repair.Plan
    clean: bool
    files: list[Source] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def image(self) -> MetadataImage:
        return self.made.image

    @property
    def size(self) -> int:
        return sum(one.size for one in self.files)

    @property
    def partitions(self) -> int:
        return sum(len(one.partitions) for one in self.image.topics_by_name.values())

    @property
    def clean_marker(self) -> dict[str, bytes]:
        """The file that says of a copy that its broker ended in order, if it did."""
        if not self.clean:
            return {}
        broker = self.image.brokers.get(self.identity.node_id)
        epoch = broker.epoch if broker else -1
        return {CLEAN_NAME: json.dumps({"version": 0, "brokerEpoch": epoch}).encode()}


def of_kafka(disk: Disk, folder: str) -> Found:
    """The content that an import would take. Raises Failure with everything that prevents it."""
    found = _look(disk, folder, "start Apache Kafka on it once, and shut it down cleanly")
    if not found.clean:
        found.notes.append(
            "Apache Kafka was not shut down cleanly: the first start runs log recovery"
        )
    try:
        check_features(found.image, folder)
    except ConfigError as why:
        raise _cannot(str(why)) from None
    tiered = [
        name
        for (kind, name), settings in sorted(found.image.configs.items())
        if kind == TOPIC and settings.get("remote.storage.enable") == "true"
    ]
    if tiered:
        raise _cannot(f"{_some(tiered)}: segments in remote storage are not in this folder")
    found.notes += _lost_in_import(found.image)
    return found


def of_ours(disk: Disk, folder: str) -> Found:
    """The content that an export would write. Raises Failure when it cannot be."""
    found = _look(disk, folder, "run penstock metadata repair")
    if not found.clean:
        raise _cannot(
            f"{folder} was not shut down cleanly: only the appliance can read its journal",
            "start it once with penstock up, and stop it with Ctrl-C",
        )
    own = sorted({f"{setting} of {name or 'all'}" for _, name, setting in _own_settings(found)})
    if own:
        found.notes.append(f"settings that Apache Kafka has not are left out: {_some(own)}")
    if own and found.image.skipped:
        text = f"{found.image.skipped} metadata records of unknown types are lost"
        found.notes.append(text)
    return found


def import_folder(
    disk: Disk, found: Found, target: str, told: Callable[[int, int], None],
    extra: dict[str, bytes],
) -> None:  # fmt: skip
    """Make the data folder `target` of it, which is empty or not there. told: bytes done, of how
    many. extra: files beside, by name. Raises Failure, StorageFailed, OSError."""
    _copy(found, target, told)
    _upgrade_formats(disk, found, target)
    folder_copy.finish(disk, target, extra | found.clean_marker | _identity(disk, found))


def _upgrade_formats(disk: Disk, found: Found, target: str) -> None:
    """Segments of message formats 0 and 1 in format 2; each stays as old as it was, because its
    records may have no time. A damaged one stays what it is: the start of its partition says so."""
    for folder in _folders(found):
        path = f"{target}/{folder}"
        for base, _ in segments_of(disk, path):
            name = stem(path, base) + LOG
            told = os.stat(name)
            try:
                done = upgrade_folder(disk, path, [base], _INDEX_INTERVAL, ANY)
            except DiskFull:
                raise
            except StorageFailed:
                continue
            if done:
                os.utime(name, ns=(told.st_atime_ns, told.st_mtime_ns))


def export_folder(
    disk: Disk, found: Found, target: str, told: Callable[[int, int], None], now_ms: int
) -> None:
    """The folder of an appliance as one of Apache Kafka, with a `server.properties` that it starts
    with. Raises as `take`."""
    _copy(found, target, told)
    own = list(_own_settings(found))
    if own:
        for kind, name, setting in own:
            record = kraft.ConfigRecord(
                resource_type=kind, resource_name=name, name=setting, value=None
            )
            found.image.apply(found.image.applied_offset, record)
        shutil.rmtree(repair.carry_out(disk, target, found.made, now_ms))
    extra = {"server.properties": _properties(disk, found, target).encode()}
    folder_copy.finish(disk, target, extra | found.clean_marker | _identity(disk, found))


def _copy(found: Found, target: str, told: Callable[[int, int], None]) -> None:
    folder_copy.check_target(target, found.folder)
    folder_copy.check_room(target, found.size)
    folder_copy.copy(found.folder, found.files, target, told)
    if folder_copy.sources(found.folder, _folders(found), _is_beside) != found.files:
        raise _cannot(
            f"{found.folder} has changed while it was copied",
            f"remove {target}, and see that no broker runs there",
        )


def _identity(disk: Disk, found: Found) -> dict[str, bytes]:
    path = f"{found.folder}/{META_PROPERTIES}"
    return {META_PROPERTIES: bytes(read_file(disk, path))}


def _look(disk: Disk, folder: str, remedy: str) -> Found:
    if not os.path.exists(f"{folder}/{META_PROPERTIES}"):
        text = f"{folder} is no data folder: it has no {META_PROPERTIES}"
        raise usage(text, "log.dirs in server.properties names it")
    _check_no_links(folder)
    try:
        identity = read_identity(disk, folder)
        made = repair.plan(disk, folder)
        voters = quorum_state.voters(disk, f"{folder}/{LOG_FOLDER}")
    except (ConfigError, StorageFailed) as why:
        raise _cannot(str(why)) from None
    if not made.lossless:
        raise _cannot(f"the metadata log of {folder} is not there, or not whole", remedy)
    if made.quorum.record is not None:
        voters = frozenset(one.voter_id for one in made.quorum.record.voters)
    _check_alone(identity, made.image, voters)
    found = Found(folder, identity, made, os.path.exists(f"{folder}/{CLEAN_NAME}"))
    found.files = folder_copy.sources(folder, _folders(found), _is_beside)
    found.notes += _strange_folders(disk, found)
    return found


def _check_no_links(folder: str) -> None:
    """Raises Failure for a link in the folder or in one of its folders: it may lead out of it, and
    what is read there would be copied."""
    for one in (folder, *(f.path for f in os.scandir(folder) if f.is_dir(follow_symlinks=False))):
        for found in os.scandir(one):
            if found.is_symlink():
                raise _cannot(f"{found.path} is a symbolic link", "move what it names there")


def _check_alone(identity: Identity, image: MetadataImage, voters: frozenset[int]) -> None:
    """Raises Failure when the folder is not all that there is of a cluster."""
    me = identity.node_id
    others = sorted((voters | set(image.brokers)) - {me})
    if others:
        raise _cannot(
            f"nodes {', '.join(map(str, others))} belong to this cluster too: only a single "
            "node, broker and controller in one, can be converted",
            "remove the others from it first, or copy its topics with MirrorMaker",
        )
    known = image.brokers.get(me)
    if known is not None and any(one != identity.directory_id for one in known.log_dirs):
        raise _cannot("its partitions lie in several folders (log.dirs); only one can be moved")
    for topic in image.topics_by_name.values():
        if any(set(one.replicas) != {me} for one in topic.partitions):
            raise _cannot(f"the topic {topic.name} has replicas that are not on node {me}")


def _is_beside(name: str) -> bool:
    return name in _BESIDE


def _folders(found: Found) -> list[str]:
    """The existing folders of the partitions in the metadata, and of the metadata itself."""
    wanted = [LOG_FOLDER]
    for topic in found.image.topics_by_name.values():
        try:
            check_topic_name(topic.name)
        except PeerError as why:
            raise _cannot(str(why)) from None
        wanted += [f"{topic.name}-{one.index}" for one in topic.partitions]
    return [one for one in sorted(wanted) if os.path.isdir(f"{found.folder}/{one}")]


def _strange_folders(disk: Disk, found: Found) -> Iterator[str]:
    there, topics = set(_folders(found)), found.image.topics_by_name
    left = []
    for name in sorted(os.listdir(found.folder)):
        path = f"{found.folder}/{name}"
        match = _PARTITION.fullmatch(name)
        if not os.path.isdir(path) or name == LOG_FOLDER:
            continue
        if name not in there:
            left.append(name)
        elif match and read_topic_id(disk, path) not in (None, topics[match[1]].topic_id):
            raise _cannot(f"{path} belongs to another topic of that name, by its id")
    if left:
        yield f"folders of no topic are left where they are: {_some(left)}"
    if missing := found.partitions + 1 - len(there):
        yield f"{missing} partitions have no folder yet: they begin empty"


def _lost_in_import(image: MetadataImage) -> Iterator[str]:
    unknown = {name: level for name, level in image.features.items() if name not in SUPPORTED}
    if unknown:
        told = ", ".join(f"{name}={level}" for name, level in sorted(unknown.items()))
        yield f"features that are not served here: {told}"
    if image.skipped:
        yield (
            f"{image.skipped} metadata records are of kinds that are not known here: they go with"
            " the first snapshot"
        )
    for kind, count in sorted(Counter(key[0] for key in image.kept).items()):
        yield f"{count} {_NOT_ENFORCED[kind]}"
    settings = sorted(
        {
            f"{setting} of {name}"
            for (kind, name), given in image.configs.items()
            if kind == TOPIC
            for setting in given
            if setting not in TOPIC_SETTINGS
        }
    )
    if settings:
        yield f"settings of topics that are kept and do nothing here: {_some(settings)}"


def _own_settings(found: Found) -> Iterator[tuple[int, str, str]]:
    """(resource type, its name, setting) of those that Apache Kafka does not know."""
    for (kind, name), given in sorted(found.image.configs.items()):
        for setting in sorted(given):
            if setting in _OURS or setting.startswith("penstock."):
                yield kind, name, setting


def _properties(disk: Disk, found: Found, target: str) -> str:
    node = found.identity.node_id
    voted = quorum_state.dynamic(disk, f"{found.folder}/{LOG_FOLDER}")
    quorum = f"controller.quorum.voters={node}@localhost:9093"
    if voted or found.made.quorum.kraft_version:
        quorum = "controller.quorum.bootstrap.servers=localhost:9093"
    alone = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    lines = [
        "process.roles=broker,controller",
        f"node.id={node}",
        "listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        "controller.listener.names=CONTROLLER",
        quorum,
        f"log.dirs={target}",
        *(f"{name}.replication.factor=1" for name in alone),
        *(f"{name}.min.isr=1" for name in alone[1:]),
    ]
    return "".join(f"{line}\n" for line in lines)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _cannot(text: str, hint: str = "") -> Failure:
    return Failure(text, hint, name="CANNOT_MOVE")
