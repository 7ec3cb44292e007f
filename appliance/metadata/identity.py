"""Identity of this node: `meta.properties` in the data folder, and the making of new ids.

The file is what makes a folder a formatted one. Its keys and form are Apache Kafka's (version 1),
so either of the two opens the other's folder.
"""

from collections.abc import Callable
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.base.disk import Disk, read_file
from appliance.base.errors import ConfigError
from appliance.wire.uuids import format_uuid, parse_uuid

META_PROPERTIES: Final = "meta.properties"


@dataclass(slots=True, frozen=True)
class Identity:
    """cluster_id: text of the cluster's id. directory_id: 16 bytes that name this log folder."""

    cluster_id: str
    node_id: int
    directory_id: bytes


def new_uuid(random: Callable[[int], bytes]) -> bytes:
    """A random (version 4) uuid whose text has letters and digits only: it never looks like an
    option to a shell, and a double click selects it whole."""
    while True:
        value = bytearray(random(16))
        value[6] = value[6] & 0x0F | 0x40
        value[8] = value[8] & 0x3F | 0x80
        if format_uuid(bytes(value)).isalnum():
            return bytes(value)


def read_identity(disk: Disk, data_dir: str) -> Identity:
    """Returns the identity in the folder. Raises ConfigError if it is not formatted or not
    readable."""
    path = f"{data_dir}/{META_PROPERTIES}"
    if not disk.exists(path):
        raise ConfigError(f"{path} is missing: the folder is not formatted")
    return decode(read_file(disk, path), path)


def encode(identity: Identity) -> bytes:
    """The contents of the file."""
    lines = (
        "version=1",
        f"cluster.id={identity.cluster_id}",
        f"node.id={identity.node_id}",
        f"directory.id={format_uuid(identity.directory_id)}",
    )
    return ("\n".join(lines) + "\n").encode()


def decode(content: bytes, path: str) -> Identity:
    """Raises ConfigError naming the key that is missing or wrong."""
    values: dict[str, str] = {}
    for line in content.decode("utf-8", "replace").splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and not key.startswith(("#", "!")):
            values[key.strip()] = value.strip()
    if values.get("version") != "1":
        raise ConfigError(
            f"{path}: version={values.get('version')} is not 1, the version of KRaft: start what"
            " wrote this folder, or choose another folder with --data"
        )
    try:
        node_id = int(values.get("node.id", ""))
    except ValueError:
        node_id = -1
    if node_id < 0:
        raise ConfigError(f"{path}: node.id={values.get('node.id')} is not a number from 0 on")
    if not values.get("cluster.id"):
        raise ConfigError(f"{path}: cluster.id is missing")
    try:
        directory_id = parse_uuid(values.get("directory.id", ""))
    except ValueError as cause:
        raise ConfigError(f"{path}: directory.id: {cause}") from cause
    return Identity(values["cluster.id"], node_id, directory_id)
