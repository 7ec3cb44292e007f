"""Names of the files of a partition's folder, as Kafka names them.

Every file of a segment is called after its base offset in twenty digits, so that names sort as
offsets do.
"""

from typing import Final

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
SEGMENT_SUFFIXES: Final = (LOG, INDEX, TIME_INDEX, TXN_INDEX)
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
DELETED_FOLDER: Final = "-delete"


def stem(folder: str, base: int) -> str:
    """Path of a segment's files without the suffix."""
    return f"{folder}/{base:020d}"


def offset_of(name: str, suffix: str) -> int:
    """The offset in a name such as 00000000000000000042.log, -1 when it is another file."""
    digits = name.removesuffix(suffix)
    if name.endswith(suffix) and len(digits) == 20 and digits.isascii() and digits.isdigit():
        return int(digits)
    return -1


def deleted_folder(folder: str, unique: str) -> str:
    """The name of a partition's folder while it waits for its removal; at most 255 characters.

    unique: hex digits that no other deletion of the same partition has.
    """
    parent, _, name = folder.rpartition("/")
    topic, _, partition = name.rpartition("-")
    tail = f"-{partition}.{unique}{DELETED_FOLDER}"
    return f"{parent}/{topic[: 255 - len(tail)]}{tail}"
