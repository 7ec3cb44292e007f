"""Reads of remote segments, put together: the cache's folder, empty, and the way to the store."""

from collections.abc import Callable
from contextlib import suppress

from appliance.base.disk import Disk
from appliance.base.errors import StorageFailed
from appliance.base.remote_cache import FOLDER, cache_folder
from appliance.config.broker import BrokerConfig
from appliance.ioproc.remote.link import AnswerRoutes
from appliance.ioproc.remote.remote_storage import cache_room
from appliance.ioproc.remote.store_files import StoreFiles
from appliance.ioproc.remote_reads.file_cache import RemoteCache
from appliance.ioproc.remote_reads.remote_files import RemoteFiles
from appliance.ioproc.remote_reads.remote_read_rules import RemoteReads, SegmentsOf
from appliance.shell.log import WARNING, Log


def make_reads(
    disk: Disk,
    config: BrokerConfig,
    place: tuple[str, int, int],
    routes: AnswerRoutes,
    segments_of: SegmentsOf,
    events: Log,
    now_ms: Callable[[], int],
    settings: Callable[[], BrokerConfig],
) -> RemoteReads:
    """Returns the reader below the local log start. place: the data folder, this I/O process, and
    how many there are, which share room and rate. config, settings: the broker's settings at the
    start, and as they are now."""
    data_dir, index, share = place
    folder = cache_folder(data_dir, index)
    with suppress(StorageFailed):  # then files cannot be written either, and reads are refused
        _empty_folder(disk, data_dir, folder)
    room = cache_room(config, share)
    cache = RemoteCache(folder, now_ms() * 1000, room)  # no number of an earlier life

    def report(partition: str, why: str) -> None:
        events.event_seldom(WARNING, "remote-read-failed", partition=partition, cause=why)

    def rate() -> float:
        return settings().int("remote.log.manager.fetch.max.bytes.per.second") / share

    def list_wait_ms() -> int:
        return settings().int("remote.list.offsets.request.timeout.ms")

    fetcher = StoreFiles(routes.make_queue(), rate)
    files = RemoteFiles(disk, cache, fetcher, report, now_ms)
    return RemoteReads(files, segments_of, list_wait_ms)


def _empty_folder(disk: Disk, data_dir: str, folder: str) -> None:
    for path in (f"{data_dir}/{FOLDER}", folder):
        if not disk.exists(path):
            disk.mkdir(path)
    for name in disk.listdir(folder):
        disk.unlink(f"{folder}/{name}")
