"""Rights that a process gives up before it reads a stranger's byte: Landlock and seccomp of Linux.

A netproc parses what anybody sends. One that was taken over must not write a file, start a program,
signal or read another process, or open a port; its rings, its arena and the connections that it has
are all that is left. I/O processes, control and the exporter need files or `/proc`: they give up
system calls alone. landlock(7), seccomp(2); x86-64 only, like the appliance.
"""

import ctypes
import errno
import os
import struct
from typing import Any, Final

_PR_SET_SECCOMP: Final = 22
_PR_SET_NO_NEW_PRIVS: Final = 38
_FILTER: Final = 2  # SECCOMP_MODE_FILTER

_CREATE_RULESET: Final = 444
_RESTRICT_SELF: Final = 446
_ABI_VERSION: Final = 1  # LANDLOCK_CREATE_RULESET_VERSION

_EXECUTE: Final = 1 << 0
_WRITE: Final = 1 << 1
_REMOVE_AND_MAKE: Final = sum(1 << bit for bit in range(4, 13))
_REFER: Final = 1 << 13
_TRUNCATE: Final = 1 << 14
_FILE_RIGHTS: Final = ((1, _EXECUTE | _WRITE | _REMOVE_AND_MAKE), (2, _REFER), (3, _TRUNCATE))
"""(first version of Landlock's ABI, rights over files that it can take away)."""
_BIND_TCP: Final = (4, 1 << 0)
_SCOPES: Final = (6, 1 << 0 | 1 << 1)
"""Abstract unix sockets and signals of processes outside."""

DENIED: Final = {
    "execve": 59, "ptrace": 101, "personality": 135, "modify_ldt": 154, "pivot_root": 155,
    "adjtimex": 159, "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166,
    "swapon": 167, "swapoff": 168, "reboot": 169, "iopl": 172, "ioperm": 173, "init_module": 175,
    "delete_module": 176, "quotactl": 179, "clock_settime": 227, "kexec_load": 246, "add_key": 248,
    "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298,
    "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
    "kcmp": 312, "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "execveat": 322,
    "userfaultfd": 323, "io_uring_setup": 425, "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "pidfd_getfd": 438, "process_madvise": 440,
}  # fmt: skip
"""System calls that no process of the appliance makes but those of PROGRAMS, by their numbers on
x86-64; each fails with EPERM."""
PROGRAMS: Final = ("execve", "execveat")
"""System calls that start a program: I/O processes start the cleaner."""

_AUDIT_ARCH_X86_64: Final = 0xC000003E
_X32: Final = 0x40000000
_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_IF_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_IF_SET: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_NUMBER_AT: Final = 0
_ARCH_AT: Final = 4
_ALLOW: Final = 0x7FFF0000
_FAIL: Final = 0x00050000 | errno.EPERM
_STEP: Final = struct.Struct("<HBBI")
_PROGRAM: Final = struct.Struct("<H6xQ")  # struct sock_fprog


def enter(*, files: bool = False, programs: bool = False) -> list[str]:
    """Give the rights up, for this thread and all that it starts; for a process with one thread.
    files: what Landlock takes away stays, reading `/proc` of other processes too. programs: it
    starts some. Returns names of the parts that the kernel does not have: none when the sandbox is
    whole.
    """
    libc: Any = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return ["no_new_privs", "landlock", "seccomp"]
    missing = []
    if not (files or _enter_landlock(libc)):
        missing.append("landlock")
    if not _enter_seccomp(libc, program(programs=programs)):
        missing.append("seccomp")
    return missing


def ruleset(abi: int) -> bytes:
    """struct landlock_ruleset_attr for that version of Landlock's ABI: what is taken away."""
    files = sum(rights for since, rights in _FILE_RIGHTS if abi >= since)
    told = struct.pack("<Q", files)
    if abi >= _BIND_TCP[0]:
        told += struct.pack("<Q", _BIND_TCP[1])
    if abi >= _SCOPES[0]:
        told += struct.pack("<Q", _SCOPES[1])
    return told


def program(*, programs: bool = False) -> bytes:
    """The filter of system calls as classic BPF: another architecture, x32 and `DENIED` fail, which
    PROGRAMS are left out of for a process that starts some."""
    numbers = sorted(n for name, n in DENIED.items() if not (programs and name in PROGRAMS))
    steps = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_IF_EQUAL, 0, len(numbers) + 3, _AUDIT_ARCH_X86_64),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_IF_SET, len(numbers) + 1, 0, _X32),
        *((_IF_EQUAL, len(numbers) - at, 0, one) for at, one in enumerate(numbers)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _FAIL),
    ]
    assert len(numbers) < 250, "a jump goes over 255 steps at most"
    return b"".join(_STEP.pack(*step) for step in steps)


def _enter_landlock(libc: Any) -> bool:
    abi = libc.syscall(_CREATE_RULESET, None, 0, _ABI_VERSION)
    if abi < 1:
        return False
    attributes = ruleset(abi)
    fd = libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    if fd < 0:
        return False
    try:
        return bool(libc.syscall(_RESTRICT_SELF, fd, 0) == 0)
    finally:
        os.close(fd)


def _enter_seccomp(libc: Any, steps: bytes) -> bool:
    held = ctypes.create_string_buffer(steps, len(steps))
    told = _PROGRAM.pack(len(steps) // _STEP.size, ctypes.addressof(held))
    return bool(libc.prctl(_PR_SET_SECCOMP, _FILTER, told, 0, 0) == 0)
