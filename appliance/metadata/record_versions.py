"""In which version a metadata record is written, so that every node of the cluster's
metadata.version can read it (KIP-778)."""

from typing import Final

from appliance.wire import kraft_records as kraft

_ELR: Final = 23  # 4.0-IV1: eligible leader replicas
CORDONED: Final = 30
"""4.3-IV0: cordoned log folders (KIP-1066)."""


def encode(record: object, metadata_version: int) -> bytes:
    """The value of the record under this metadata.version (17, which is 3.7-IV2, or later)."""
    version = None
    if isinstance(record, kraft.PartitionRecord | kraft.PartitionChangeRecord):
        version = 2 if metadata_version >= _ELR else 1
    elif isinstance(record, kraft.RegisterBrokerRecord):
        version = 4 if metadata_version >= CORDONED else 3
    elif isinstance(record, kraft.BrokerRegistrationChangeRecord):
        version = 3 if metadata_version >= CORDONED else 2
    return kraft.encode(record, version)
