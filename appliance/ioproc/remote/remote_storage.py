"""All of tiered storage in an I/O process: its link to the store, what is copied and removed.

Made when `remote.log.storage.system.enable` is set. Called by the chores; `PartitionNews` is told
of partitions before there is a core to tier them for.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from appliance.config.broker import BrokerConfig
from appliance.config.tiering_checks import ENABLED, STORE_URL
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.remote.link import AnswerRoutes, RemoteLink
from appliance.ioproc.remote.removing import RemoteRemovals
from appliance.ioproc.remote.tiering import Tiering

_CONFIGURE_NS: Final = 1_000_000_000


class PartitionNews:
    """An observer of partitions (`partition_listener.py`) that keeps what it hears."""

    __slots__ = ("_heard",)

    def __init__(self) -> None:
        self._heard: deque[tuple[Callable[[Tiering, Partition], None], Partition]] = deque()

    def opened(self, partition: Partition) -> None:
        """It is served from now on."""
        self._heard.append((Tiering.opened, partition))

    def leads(self, partition: Partition) -> None:
        """It copies and deletes from now on, in this epoch."""
        self._heard.append((Tiering.role_changed, partition))

    def follows(self, partition: Partition) -> None:
        """Another node copies and deletes."""
        self._heard.append((Tiering.role_changed, partition))

    def no_room(self, partition: Partition, *, lost: bool) -> None:
        """Ignored: what is written is small."""

    def closed(self, partition: Partition) -> None:
        """Its log is over."""
        self._heard.append((Tiering.closed, partition))

    def tell_tiering(self, tiering: Tiering) -> None:
        """Give on what was heard, in its order."""
        while self._heard:
            tell, partition = self._heard.popleft()
            tell(tiering, partition)


class RemoteStorage:
    """link: the process that talks to the store. routes: for whoever else asks by it.
    tell_readers: answers those for whom something has come (now in ms). configure: acts upon the
    broker's settings as they are now. tell_figures: shows how it goes."""

    def __init__(
        self,
        link: RemoteLink,
        routes: AnswerRoutes,
        news: PartitionNews,
        tiering: Tiering,
        removals: RemoteRemovals,
        tell_readers: Callable[[int], None],
        configure: Callable[[], None],
        tell_figures: Callable[[], None],
    ) -> None:
        self.link = link
        self.routes = routes
        self.tiering = tiering
        self._news = news
        self._removals = removals
        self._tell_readers = tell_readers
        self._configure = configure
        self._tell_figures = tell_figures
        self._next_ns = 0

    def run_slice(self, now_ns: int, now_ms: int) -> None:
        """Take what was done, begin what comes next."""
        if now_ns >= self._next_ns:
            self._next_ns = now_ns + _CONFIGURE_NS
            self._configure()
            self._tell_figures()
        self._news.tell_tiering(self.tiering)
        self.routes.deliver_answers(now_ns, now_ms)
        self._tell_readers(now_ms)
        self.tiering.tick(now_ns, now_ms)
        self._removals.tick(now_ns, now_ms, self.tiering.uses_store)

    def give_up(self, partition: Partition) -> None:
        """It is about to go: nothing is written into its folder when this returns."""
        self._news.tell_tiering(self.tiering)
        self.tiering.give_up(partition)

    def close(self) -> None:
        """End the process; what it was asked is found as unfinished by the next start."""
        self.link.close()


def open_link(config: BrokerConfig, share: int) -> RemoteLink | None:
    """The link to the store of this node; None without tiered storage. share: how many I/O
    processes have one."""
    if not config.bool(ENABLED):
        return None
    return RemoteLink(str(config.get_value(STORE_URL)), *threads_of(config, share))


def threads_of(config: BrokerConfig, share: int) -> tuple[int, int]:
    """How many threads copy, and how many read, for one I/O process."""
    copiers = config.int("remote.log.manager.copier.thread.pool.size") // share
    readers = config.int("remote.log.reader.threads") // share
    return max(1, copiers), max(1, readers)


def cache_room(config: BrokerConfig, share: int) -> int:
    """Bytes of the cache of one I/O process."""
    return config.int("remote.log.index.file.cache.total.size.bytes") // share
