"""The supervisor's parts one by one: policy, memory, folder, doors, notifications."""

import os
import signal
import socket
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_memory import nothing_is_left

from appliance.config.broker import BrokerConfig
from appliance.ring.messages import APPEND
from appliance.ring.process_table import CONTROL, IOPROC, NETPROC, Peer, peers_of
from appliance.ring.ring import RingReader, RingWriter
from appliance.shell.log import Log
from appliance.supervisor import layout as layout_module
from appliance.supervisor.child import shown_as
from appliance.supervisor.folder import CLEAN_NAME, DataFolder, FolderInUse
from appliance.supervisor.layout import MIB, Layout, default_processes
from appliance.supervisor.listeners import AddressInUse, Listeners
from appliance.supervisor.memory import NoMemory, SharedMemory, fit_arenas
from appliance.supervisor.restart import RestartPolicy
from appliance.supervisor.signals import SAME_WISH_NS, Wishes

SECOND = 1_000_000_000
SMALL = Layout(netprocs=2, ioprocs=2, arena_bytes=MIB, partition_rows=16)


@pytest.fixture
def log(tmp_path):
    fd = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    yield Log("test", fd=fd, journal=False)
    os.close(fd)


@given(st.lists(st.integers(1, 30 * SECOND), min_size=1, max_size=30))
def test_a_place_is_isolated_exactly_at_the_limit_of_deaths_within_the_window(gaps):
    policy = RestartPolicy(limit=5, window_ns=10 * SECOND)
    deaths, now = [], 0
    for gap in gaps:
        now += gap
        deaths.append(now)
        recent = [death for death in deaths if death > now - 10 * SECOND]
        start_at = policy.died(now)
        assert policy.recent == len(recent)
        assert (start_at is None) == (len(recent) >= 5)
        if start_at is None:
            return
        assert (start_at == now) == (len(recent) == 1)


def test_restarts_wait_longer_and_longer():
    policy = RestartPolicy(limit=100, window_ns=100 * SECOND)
    delays = [policy.died(now) - now for now in range(12)]
    assert delays[0] == 0
    assert delays[1:] == sorted(delays[1:])
    assert delays[1] < delays[2]
    assert delays[-1] == 5 * SECOND


TERM, INT, HUP = (bytes([number]) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))


@pytest.mark.parametrize(
    ("heard", "count"),
    [
        ([(0, HUP)], 0),
        ([(0, TERM)], 1),
        ([(0, TERM + INT + TERM)], 1),
        ([(0, TERM), (3_000_000, TERM), (SAME_WISH_NS - 1, INT)], 1),
        ([(0, TERM), (3_000_000, TERM), (SAME_WISH_NS, INT)], 2),
        ([(0, INT), (SECOND, HUP), (SECOND, INT), (SECOND, INT)], 2),
    ],
)
def test_signals_of_one_wish_count_once_and_a_later_one_again(heard, count):
    wishes = Wishes()
    for at, numbers in heard:
        wishes.add_signals(numbers, 7 * SECOND + at)
    assert wishes.count == count


@pytest.mark.parametrize(("cpus", "processes"), [(1, 1), (2, 1), (4, 2), (8, 4), (128, 4)])
def test_processes_grow_with_the_host(cpus, processes):
    assert default_processes(cpus) == processes


def test_arenas_shrink_to_what_shared_memory_has_and_say_so(log, tmp_path):
    layout = Layout(netprocs=2, arena_bytes=256 * MIB)
    assert fit_arenas(layout, 8 * MIB, 10_000 * MIB, log) == 256 * MIB
    assert (tmp_path / "log").read_text() == ""
    each = fit_arenas(layout, 8 * MIB, 64 * MIB, log)
    assert 8 * MIB + 2 * each <= 64 * MIB
    assert each == 26 * MIB
    assert "arena-shrunk asked_mib=256 given_mib=26" in (tmp_path / "log").read_text()
    with pytest.raises(NoMemory, match="remount"):
        fit_arenas(layout, 8 * MIB, 20 * MIB, log)


def test_rings_of_a_pair_meet_and_clearing_one_place_leaves_the_others(log):
    memory = SharedMemory(SMALL, log)
    io, io_other, net = Peer(IOPROC, 0), Peer(IOPROC, 1), Peer(NETPROC, 1)
    assert set(memory.rings_of(net)) == {Peer(CONTROL, 0), io, io_other}
    readers = {}
    for target in (io, io_other):
        writer = RingWriter(memory.rings_of(net)[target].out, 1)
        readers[target] = RingReader(memory.rings_of(target)[net].into, 1)
        writer.push(APPEND, 0, 0, 7)
        writer.publish()
        assert readers[target].pending()
    memory.clear_rings_of(io)
    readers[io].reset(2)
    assert not readers[io].pending()
    assert [m.token for m in readers[io_other].drain()] == [7]
    assert len(memory.arenas) == 2
    memory.arenas[0][:2] = b"xy"
    assert bytes(memory.arenas[1][:2]) == bytes(2)


def test_last_words_are_taken_once(log):
    memory = SharedMemory(SMALL, log)
    me = Peer(NETPROC, 0)
    memory.say_last_words(me, "ä" * 2000)
    assert memory.take_last_words(Peer(NETPROC, 1)) == ""
    assert memory.take_last_words(me).startswith("ä" * 200)
    assert memory.take_last_words(me) == ""


def test_segments_are_private_and_have_no_name(log, monkeypatch):
    import posix_ipc

    modes = []
    create = posix_ipc.SharedMemory

    def spy(*args, **kwargs):
        segment = create(*args, **kwargs)
        modes.append(stat.S_IMODE(os.fstat(segment.fd).st_mode))
        return segment

    monkeypatch.setattr(posix_ipc, "SharedMemory", spy)
    SharedMemory(SMALL, log)
    assert modes == [0o600] * 3
    assert nothing_is_left()


def test_folder_is_locked_until_closed(tmp_path):
    first = DataFolder(str(tmp_path))
    with pytest.raises(FolderInUse, match=f"process {os.getpid()}: stop that one first"):
        DataFolder(str(tmp_path))
    first.close()
    DataFolder(str(tmp_path)).close()


def test_clean_marker_is_taken_once(tmp_path):
    folder = DataFolder(str(tmp_path))
    assert not folder.take_clean_marker()
    folder.write_clean_marker()
    assert (tmp_path / CLEAN_NAME).exists()
    assert folder.take_clean_marker()
    assert not folder.take_clean_marker()
    folder.close()


def test_every_netproc_has_its_own_socket_on_the_same_address():
    listeners = Listeners(Layout(netprocs=3, listeners=(("127.0.0.1", 0), ("127.0.0.1", 0))))
    addresses = listeners.addresses
    assert len(set(addresses)) == 2
    for mine in listeners.of:
        assert [one.getsockname() for one in mine] == addresses
    with pytest.raises(AddressInUse, match=f"127.0.0.1:{addresses[1][1]} is in use"):
        Listeners(Layout(listeners=(("127.0.0.1", 0), addresses[1])))
    listeners.close()
    Listeners(Layout(listeners=(addresses[0],))).close()


@pytest.mark.parametrize(
    ("host", "reachable"), [("localhost", "127.0.0.1"), ("", "127.0.0.1"), ("127.0.0.1",) * 2]
)
def test_hosts_are_resolved_and_none_is_every_interface(host, reachable):
    listeners = Listeners(Layout(listeners=((host, 0),)))
    shown, port = listeners.addresses[0]
    assert shown == (host or shown)
    socket.create_connection((reachable, port)).close()
    listeners.close()


def test_unknown_host_is_refused():
    with pytest.raises(AddressInUse, match=r"no\.such\.host\.invalid:9092"):
        Listeners(Layout(listeners=(("no.such.host.invalid", 9092),)))


def test_layout_of_settings():
    config = BrokerConfig.of(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,OTHER://[::1]:9093",
            "penstock.net.processes": "3",
            "penstock.arena.bytes": "8388608",
        }
    )
    layout = Layout.of(config)
    assert layout.netprocs == 3
    assert layout.ioprocs == default_processes(layout_module.online_cpus())
    assert layout.listeners == (("127.0.0.1", 0), ("::1", 9093))
    assert layout.arena_bytes == 8 * MIB


def test_address_of_another_host_is_refused():
    with pytest.raises(AddressInUse, match=r"192\.0\.2\.1:9092 cannot be listened on"):
        Listeners(Layout(listeners=(("192.0.2.1", 9092),)))


def test_layout_refuses_what_makes_no_appliance():
    with pytest.raises(AssertionError):
        Layout(netprocs=0)
    with pytest.raises(AssertionError):
        Layout(listeners=())
    assert layout_module.online_cpus() >= 1


def test_a_process_is_shown_as_what_it_is_in_fifteen_letters():
    shown = {str(peer): shown_as(peer) for peer in peers_of(2, 1)}
    assert shown == {
        "control": "penstock-ctl",
        "ioproc-0": "penstock-io-0",
        "ioproc-1": "penstock-io-1",
        "netproc-0": "penstock-net-0",
    }
    assert all(len(shown_as(Peer(kind, 9999))) <= 15 for kind in range(3))
