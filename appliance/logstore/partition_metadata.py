"""`partition.metadata`: the file that says which topic the folder of a partition belongs to."""

import errno
from base64 import urlsafe_b64decode, urlsafe_b64encode

from appliance.base.disk import Disk, read_file, write_file
from appliance.base.errors import StorageFailed
from appliance.logstore import files


def write_metadata(disk: Disk, path: str, topic_id: bytes, *, sync: bool = True) -> str:
    """The file that ties a folder to its topic, as Kafka writes it: its path. Raises
    StorageFailed."""
    text = f"version: 0\ntopic_id: {urlsafe_b64encode(topic_id).decode().rstrip('=')}"
    name = f"{path}/{files.PARTITION_METADATA}"
    write_file(disk, name, text.encode(), sync=sync)
    return name


def read_topic_id(disk: Disk, path: str) -> bytes | None:
    """Topic id of a partition's folder; None when it has no sound partition.metadata. Raises
    StorageFailed."""
    try:
        text = read_file(disk, f"{path}/{files.PARTITION_METADATA}").decode("latin-1")
    except StorageFailed as failure:
        if failure.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    try:
        topic_id = urlsafe_b64decode(fields["topic_id"].strip() + "==")
    except (KeyError, ValueError):
        return None
    return topic_id if len(topic_id) == 16 else None
