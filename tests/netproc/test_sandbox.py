"""What a network process cannot do any more, tried in a process that gave it up; and the filters as
bytes."""

import ctypes
import errno
import os
import signal
import socket
import struct
import subprocess
import sys
import traceback

import pytest

from appliance.shell import sandbox

LIBC = ctypes.CDLL(None, use_errno=True)


def confined(tries, **stays):
    """What each of `tries` raised in a child with the sandbox: errno, 0 for nothing. stays: what it
    keeps."""
    away, here = os.pipe()
    child = os.fork()
    if child == 0:
        told = b"?"
        try:
            missing = sandbox.enter(**stays)
            told = repr((missing, [code_of(one) for one in tries])).encode()
        except BaseException:
            told = traceback.format_exc().encode()
        finally:
            os.write(here, told)
            os._exit(0)
    os.close(here)
    with open(away, "rb") as file:
        told = file.read().decode()
    os.waitpid(child, 0)
    missing, found = eval(told, {})
    if missing:
        pytest.skip(f"this kernel has no {missing}")
    return found


def code_of(one):
    try:
        one()
    except OSError as refused:
        return refused.errno
    return 0


def call(number, *words):
    def tried():
        if LIBC.syscall(number, *words) < 0:
            raise OSError(ctypes.get_errno(), "")

    return tried


def bound(port):
    def tried():
        with socket.socket() as one:
            one.bind(("127.0.0.1", port))

    return tried


def test_files_are_read_and_neither_written_made_nor_removed(tmp_path):
    there = tmp_path / "there"
    there.write_bytes(b"segment")
    found = confined(
        [
            there.read_bytes,
            lambda: there.write_bytes(b"x"),
            lambda: os.close(os.open(there, os.O_RDWR)),
            lambda: os.truncate(there, 0),
            lambda: (tmp_path / "new").touch(),
            (tmp_path / "folder").mkdir,
            there.unlink,
            lambda: there.rename(tmp_path / "other"),
            lambda: os.symlink("/", tmp_path / "link"),
        ]
    )
    assert found[0] == 0
    assert set(found[1:]) == {errno.EACCES}
    assert [one.name for one in tmp_path.iterdir()] == ["there"]
    assert there.read_bytes() == b"segment"


def test_no_program_is_started_and_no_other_process_reached(tmp_path):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        pid = other.pid
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        found = confined(
            [
                lambda: os.execv("/bin/true", ["true"]),
                lambda: os.kill(pid, signal.SIGKILL),
                call(sandbox.DENIED["process_vm_writev"], pid, None, 0, None, 0, 0),
                call(sandbox.DENIED["ptrace"], 16, pid, None, None),  # PTRACE_ATTACH
                call(sandbox.DENIED["pidfd_getfd"], os.pidfd_open(pid), 0, 0),
                call(sandbox.DENIED["unshare"], 0),
                bound(port),
            ]
        )
        assert other.poll() is None
        other.communicate(b"\n")
    assert found[:6] == [errno.EPERM] * 6
    assert found[6] == errno.EACCES


def test_memory_sockets_and_its_own_descriptors_stay(tmp_path):
    file = os.open(tmp_path / "before", os.O_RDWR | os.O_CREAT)

    def sent():
        one, other = socket.socketpair()
        with one, other:
            one.sendall(b"x")
            assert other.recv(1) == b"x"

    def shared():
        fd = os.memfd_create("x")
        os.ftruncate(fd, 4096)
        os.write(fd, b"x")
        os.close(fd)

    tries = [
        sent, shared, lambda: os.write(file, b"x"), lambda: os.kill(os.getpid(), 0),
        lambda: os.listdir("/proc/self/fd"),
    ]  # fmt: skip
    assert confined(tries) == [0] * len(tries)
    os.close(file)


@pytest.mark.parametrize("programs", [False, True])
def test_processes_that_write_files_reach_no_other_either(tmp_path, programs):
    pid = os.getpid()
    found = confined(
        [
            (tmp_path / "log").touch,
            lambda: os.listdir(f"/proc/{pid}/fd"),
            lambda: os.close(os.pidfd_open(pid)),
            call(sandbox.DENIED["process_vm_writev"], pid, None, 0, None, 0, 0),
            call(sandbox.DENIED["ptrace"], 16, pid, None, None),
            call(sandbox.DENIED["bpf"], 0, None, 0),
            lambda: os.execv(tmp_path / "log", ["log"]),
        ],
        files=True,
        programs=programs,
    )
    assert found == [0] * 3 + [errno.EPERM] * 3 + [errno.EACCES if programs else errno.EPERM]


@pytest.mark.parametrize(("abi", "size"), [(1, 8), (3, 8), (4, 16), (5, 16), (6, 24), (7, 24)])
def test_a_kernel_is_asked_for_nothing_that_it_does_not_know(abi, size):
    told = sandbox.ruleset(abi)
    assert len(told) == size
    (files,) = struct.unpack_from("<Q", told)
    assert files.bit_length() <= {1: 13, 2: 14}.get(abi, 15)
    assert files & 0b1100 == 0, "reading stays"


@pytest.mark.parametrize(
    ("arch", "number", "fails"),
    [
        (sandbox._AUDIT_ARCH_X86_64, 0, False),
        *((sandbox._AUDIT_ARCH_X86_64, one, True) for one in sandbox.DENIED.values()),
        (sandbox._AUDIT_ARCH_X86_64, 0 | sandbox._X32, True),
        (0x40000003, 0, True),
        *((sandbox._AUDIT_ARCH_X86_64, one, False) for one in (1, 58, 60, 439, 441, 500)),
    ],
)
def test_the_filter_run_by_a_machine_of_five_lines(arch, number, fails):
    steps = [*sandbox._STEP.iter_unpack(sandbox.program())]
    at = value = 0
    while True:
        code, yes, no, k = steps[at]
        at += 1
        if code == sandbox._LOAD:
            value = {0: number, 4: arch}[k]
        elif code == sandbox._RETURN:
            assert (k == sandbox._FAIL) is fails
            return
        else:
            met = value == k if code == sandbox._IF_EQUAL else bool(value & k)
            at += yes if met else no
