"""How the limits of all rooms relate: what must hold between two numbers that stand in different
files, each with the reason.

Invariant: an appliance starts only when all of it holds, so who changes one number and forgets
another one is told which, and why. What relates within one module is asserted there. `hold` is
called by `supervisor/main.py` before anything else is done.
"""

from typing import Final

from appliance.base import errors, os_disk, reserve, space
from appliance.base.disk import PAGE
from appliance.config.broker_settings import BROKER
from appliance.config.setting import Setting
from appliance.config.topic_settings import TOPIC
from appliance.control import shell as control
from appliance.control.deletion import topic_trash
from appliance.control.quorum import snapshots
from appliance.coordinators.kinds import KINDS
from appliance.handlers import fetch_watch
from appliance.ioproc import chores, netproc_peer, served_partitions
from appliance.ioproc import main as ioproc
from appliance.ioproc.coordination import coordinator_host, group_lag_sampler, marker_sender
from appliance.ioproc.deletion import deleted_folders, partition_deletion
from appliance.ioproc.durability import group_commit
from appliance.ioproc.lifecycle import partition_manager, partition_roles
from appliance.ioproc.log_folders import alter_log_dirs, file_copy
from appliance.ioproc.partitions import fetch_watches
from appliance.ioproc.replica_fetcher import fetchers
from appliance.ioproc.retention import housekeeping, log_cleaner
from appliance.logstore import active, journal
from appliance.metadata import follower
from appliance.netproc.connections import connection, framing, send_queue
from appliance.netproc.files import page_cache
from appliance.netproc.memory import admission
from appliance.netproc.transport import socket_options
from appliance.ring import arena, counters, partition_table, process_table, quota_table, ring
from appliance.ring.messages import WATCHED_BYTES
from appliance.shell import links, loop, patience
from appliance.supervisor import fleet, memory, restart
from appliance.supervisor.layout import Layout
from appliance.wire import aborted, messages

_LONGEST_TEXT: Final = (1 << 15) - 1
"""Bytes of a string on the wire."""
_REPLACED: Final = 3
"""What a byte of a client id becomes that is no UTF-8."""
_MS: Final = 1_000_000
_SECOND: Final = 1_000_000_000


def assert_relations() -> None:
    """Raise AssertionError, naming what does not hold."""
    _turns()
    _waits()
    _lives()
    _queues()
    _payloads()
    _frames()
    _answers()
    _disks()
    _ends_of_logs()
    _tables()


def _turns() -> None:
    """Limits on the work of one event-loop turn."""
    chores_ns = (
        max(partition_manager.OPENING_NS, partition_roles.ROLES_NS)
        + len(KINDS) * coordinator_host.SLICE_NS
        + housekeeping.RETAIN_NS
        + log_cleaner.LOOK_NS
        + group_lag_sampler.SLICE_NS
        + group_commit.EPOCHS_A_TURN * group_commit.EPOCHS_NS
        + follower.A_SLICE * follower.RECORD_NS
        + fetchers.TAKE_NS
    )
    assert chores_ns <= patience.TURN_NS, (
        f"all slices of one turn of an I/O process take {chores_ns / _MS:g} ms: no turn takes long"
    )
    assert follower.BREATH * follower.RECORD_NS < patience.CONFIRM_S * _SECOND / 10, (
        "who replays a snapshot at its start lets go of the dead meanwhile"
    )
    assert group_commit.QUICK_SYNC_NS * 10 <= patience.TURN_NS, (
        "a sync is done on the loop only where it is short beside a turn"
    )
    assert partition_deletion.A_JOB <= partition_deletion.A_TURN, "a turn closes enough for a job"
    assert alter_log_dirs.NEAR_ENOUGH <= file_copy.PIECE, (
        "what the loop copies when a partition changes its folder is at most a thread's piece"
    )
    longest_spin_ns = _high("penstock.spin.us") * 1000
    assert longest_spin_ns * 10 <= patience.TURN_NS, "a spin is short beside a turn"


def _waits() -> None:
    """Limits on intervals between checks."""
    assert chores.BUSY_MS <= chores.EVERY_MS <= chores.QUIET_MS <= loop.LONGEST_WAIT_MS, (
        "an idle I/O process does its chores when it wakes"
    )
    assert group_commit.VISIBLE_MS * _MS <= group_commit.BACKGROUND_NS, (
        "what nobody has seen is synced before what only has to be"
    )
    assert group_commit.LOOK_EVERY_NS <= group_commit.BACKGROUND_NS, "what is due is found"
    assert deleted_folders.LOOK_EVERY_NS <= deleted_folders.REREAD_EVERY_NS
    freed_ns = deleted_folders.LOOK_EVERY_NS + housekeeping.RELIEVE_NS + space.LOOK_EVERY_NS
    assert freed_ns <= topic_trash.REST_MS * _MS, (
        "control sees the room that it made before it empties more of the trash"
    )
    assert topic_trash.LOOK_EVERY_MS < topic_trash.REST_MS


def _lives() -> None:
    """Deaths, starts and ends."""
    layout = Layout()
    delays = [0] + [
        min(restart.FIRST_DELAY_NS << n, restart.LONGEST_DELAY_NS)
        for n in range(layout.crash_limit - 2)
    ]
    assert sum(delays) < layout.crash_window_seconds * _SECOND, (
        "who dies at each start dies often enough within the window to be isolated"
    )
    stages = {kind: stage for stage, kind in enumerate(fleet.DRAIN_ORDER, 1)}
    assert stages[process_table.NETPROC] == 1, "netprocs drain as soon as anybody does"
    assert stages[process_table.IOPROC] == ioproc.DRAIN_STAGE, "it ends when it is asked to"
    assert stages[process_table.CONTROL] == control.DRAIN_STAGE, "it ends when it is asked to"
    assert snapshots.KEEP_SNAPSHOTS >= 2, (
        "the log goes back to the snapshot before the last: who follows need not begin again"
    )


def _queues() -> None:
    """How much may be under way."""
    assert links.BATCH <= ring.DEFAULT_CAPACITY, "a turn takes a part of a ring at most"
    assert netproc_peer.BACKLOG >= ring.DEFAULT_CAPACITY, (
        "who took all that a ring holds of answers is not made to wait for the next"
    )
    assert connection.MOST_IN_FLIGHT + links.BATCH <= ring.DEFAULT_CAPACITY, (
        "one client with small requests does not fill a ring"
    )
    assert 2 * marker_sender.MOST_SENT <= ring.DEFAULT_CAPACITY, (
        "markers that were asked for and their answers have room in one ring"
    )
    assert served_partitions.PARKED_READS >= partition_table.DEFAULT_ROWS, (
        "one fetch may wait for every partition that there can be"
    )
    assert fetch_watches.MOST_ROWS >= partition_table.DEFAULT_ROWS, "and watch them"


def _payloads() -> None:
    """Bytes that travel in rings."""
    layout = Layout()
    longest_caller = (_REPLACED + 1) * _LONGEST_TEXT + PAGE
    assert layout.payload_bytes // ring.PIECES >= longest_caller + _LONGEST_TEXT, (
        "who asks, and the name of a topic, go to control in one piece"
    )
    for area in (layout.payload_bytes, layout.group_payload_bytes):
        assert area // ring.PIECES >= aborted.SIZE, "a piece holds an aborted transaction"
    assert layout.group_payload_bytes // ring.PIECES >= fetch_watch.A_WATCH * WATCHED_BYTES, (
        "a watch goes in one piece"
    )


def _frames() -> None:
    """Requests in the receive arena."""
    arena_bytes = _default("penstock.arena.bytes")
    assert Layout().arena_bytes == arena_bytes, "one default"
    assert _default("socket.request.max.bytes") <= arena_bytes // 2, (
        "the longest request that may come has room beside another one"
    )
    least = min(memory.LEAST_ARENA, _low("penstock.arena.bytes"))
    assert _number(TOPIC["max.message.bytes"].default) + PAGE <= least // 2, (
        "a batch of the default size comes through the smallest arena"
    )
    assert framing.SHOWN % arena.UNIT == 0, "what a frame gets first is whole units"
    assert least // 64 >= framing.SHOWN, "what a frame gets first is not the whole arena"
    assert admission.ASIDE <= framing.SHOWN, "what is kept aside fits into what comes first"


def _answers() -> None:
    """Limits on what a network process sends."""
    assert send_queue.TURN_BYTES <= page_cache.AHEAD_BYTES, (
        "the disk is ahead of who reads by what he gets in a turn"
    )
    assert _default("penstock.connection.queued.max.bytes") >= send_queue.TURN_BYTES, (
        "who takes his share of every turn is not held back"
    )
    assert socket_options.SAME_HOST_SEND_BYTES <= send_queue.TURN_BYTES, "a share fills the socket"
    assert send_queue.MOST_BUFFERS <= os_disk.IOV_MAX, "the kernel takes them in one call"


def _disks() -> None:
    """Room on the disks, from most to none."""
    times = min(
        topic_trash.KEEP_FREE_TIMES, topic_trash.KEEP_FREE_PERCENT / space.KEEP_FREE_PERCENT
    )
    assert times > 2, (
        "the trash is emptied before produce is refused, and frees what ends a refusal: twice what "
        "must stay free"
    )
    assert reserve.SLICE <= space.TIGHT_BYTES < reserve.LEAST // 2, (
        "groups stop before their half of the smallest reserve is gone, and not at its begin"
    )
    most = 1 << 62
    assert journal.size_for(most) + reserve.size_for(most) < _default(
        "penstock.disk.free.min.bytes"
    ), "where produce is still taken a journal and a reserve find room"


def _ends_of_logs() -> None:
    """Limits on appended bytes that are not durable."""
    assert active.WRITEBACK_BYTES <= group_commit.BACKGROUND_BYTES, (
        "a sync finds little to do: the kernel was told to write before"
    )
    assert journal.MOST_OF_ONE <= active.WRITEBACK_BYTES, (
        "what is long enough for the kernel to be told is synced in its own file"
    )
    assert partition_deletion.A_SYNC >= group_commit.BACKGROUND_BYTES, (
        "a log with all that it may have unsynced is one job"
    )


def _tables() -> None:
    """Rows and columns in shared memory against what may be set."""
    assert _high("penstock.partitions.max") <= 1 << partition_table.ROW_BITS, (
        "a handle has room for the number of every row"
    )
    assert _default("penstock.partitions.max") == partition_table.DEFAULT_ROWS, "one default"
    assert _default("penstock.request.max.elements") == messages.ELEMENTS_MAX, "one default"
    assert messages.ELEMENTS_MAX >= 2 * partition_table.DEFAULT_ROWS, (
        "a request may name every partition, each in a topic of its own"
    )
    assert _high("quota.window.num") <= quota_table.MOST_WINDOWS, "a region has all windows"
    assert _default("penstock.quota.clients.max") == quota_table.DEFAULT_ROWS, "one default"
    assert _default("penstock.client.metrics.instances.max") == Layout().push_rows, "one default"
    assert _default("quota.window.num") == Layout().quota_windows, "one default"
    known = [value for value in vars(errors).values() if isinstance(value, int)]
    assert max(known) + 1 < counters.CODES, "every error is counted"


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


def _setting(name: str) -> Setting:
    return BROKER[name]


def _default(name: str) -> int:
    return _number(_setting(name).default)


def _low(name: str) -> float:
    low = _setting(name).low
    assert low is not None
    return low


def _high(name: str) -> float:
    high = _setting(name).high
    assert high is not None
    return high
