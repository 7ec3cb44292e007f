"""Messages between the runner and the process of its Kafka clients: pickled values, each preceded
by its length. Both are one program of one version, so pickles are safe between them.
"""

import pickle
import struct
from typing import IO, Any, Final

_HEAD: Final = struct.Struct("<I")


def send_frame(file: IO[bytes], content: Any) -> None:
    """Write one value. Raises OSError when nobody reads any more."""
    packed = pickle.dumps(content)
    file.write(_HEAD.pack(len(packed)) + packed)
    file.flush()


def receive(file: IO[bytes]) -> Any:
    """Read one value. Raises EOFError when there is none any more."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise EOFError
    (size,) = _HEAD.unpack(head)
    packed = file.read(size)
    if len(packed) < size:
        raise EOFError
    return pickle.loads(packed)
