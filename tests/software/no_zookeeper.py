"""A ZooKeeper that knows nothing: each node that is to be made is there already, and so nobody gets
a lock. For monitors that do not start without one."""

import socket
import struct
import threading

_CREATE = 1
_NODE_EXISTS = -110
_SESSION = struct.pack(">iiqi16s", 0, 6000, 1, 16, bytes(16))
"""Version, timeout in ms, id and password, as the answer to the first message has them."""


class NoZookeeper:
    """Use it as a context manager. port: of 127.0.0.1."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> "NoZookeeper":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=_serve, args=(link,), daemon=True).start()


def _serve(link: socket.socket) -> None:
    with link, link.makefile("rwb") as file:
        answer = _SESSION
        while head := file.read(4):
            asked = file.read(*struct.unpack(">i", head))
            if answer is not _SESSION:
                number, kind = struct.unpack_from(">ii", asked)
                answer = struct.pack(">iqi", number, 1, _NODE_EXISTS if kind == _CREATE else 0)
            file.write(struct.pack(">i", len(answer)) + answer)
            file.flush()
            answer = b""
