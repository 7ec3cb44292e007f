"""The local client: confluent-kafka with safe defaults and the address of the appliance filled in.

    import penstock

    link = penstock.connect()
    with link.producer() as producer:
        producer.produce("hello", b"world")
    for message in link.read("hello"):
        print(message.offset(), message.value())

`link.create_topic("hello", 3)` makes a topic, `link.read("hello", follow=True)` goes on for ever.
Everything returned is confluent-kafka's own class; what is not here is done with that.
`penstock.local` runs an appliance as a child process, `penstock.pytest_plugin` does so for tests.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.client import Connection, connect

__all__ = ["Connection", "connect"]


def __getattr__(name: str) -> object:
    """The client library is loaded by who uses it; `penstock.reach` and `.local` need none."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from penstock import client

    return getattr(client, name)
