"""A Debian package of a wheel: an environment of its own below /usr/lib/penstock for the system's
Python, units, man pages, completion. Why so: docs/decisions/0069.

What goes into it is decided here as text; `build` alone runs pip and dpkg-deb.
"""

import gzip
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import md5
from pathlib import Path
from typing import Final, NamedTuple

from console.model.service.place import APPLIANCE, BACKUP, BACKUPS, JOBS, SOCKET, shipped
from pages.release import completion, man

PYTHON: Final = "/usr/bin/python3"
"""Debian's own: the package is for the release that this is run on."""
HOME: Final = "usr/lib/penstock"
CONFIG: Final = "etc/penstock/server.properties"
_MAINTAINER: Final = "Penstock <packages@penstock.invalid>"
_UNITS: Final = f"{APPLIANCE} {JOBS} {SOCKET} {BACKUPS}"
_START: Final = """\
#!/bin/sh
set -e
"""
_UNIT: Final = f"/usr/lib/systemd/system/{APPLIANCE}"
_UNIT_BEFORE: Final = "/run/penstock-unit-before"
_COMES: Final = f"""\
{_START}test "$1" = upgrade || exit 0
cp {_UNIT} {_UNIT_BEFORE} 2>/dev/null || true
"""
_MAKES_WAY: Final = f"""\
makes_way() {{ # 0: clients need no restart by systemd
    cmp -s {_UNIT} {_UNIT_BEFORE} || return 1
    systemctl --quiet is-active {APPLIANCE} || return 1
    test ! -e /usr/sbin/policy-rc.d || return 1 # it is for deb-systemd-invoke to ask
    said=$(/usr/bin/penstock restart --data /var/lib/penstock -o json 2>&1) && return 0
    case "$said" in
    *RESTART_REFUSED*) echo "penstock goes on as the version before: $said" >&2 ;;
    *TIMED_OUT*) echo "$said" >&2 ;;
    *) return 1 ;;
    esac
}}
"""
_INSTALLED: Final = f"""\
{_START}{_MAKES_WAY}
test "$1" = configure || exit 0
systemd-sysusers penstock.conf
deb-systemd-helper unmask {APPLIANCE} >/dev/null || true
if deb-systemd-helper --quiet was-enabled {APPLIANCE}; then
    deb-systemd-helper enable {APPLIANCE} >/dev/null || true
else
    deb-systemd-helper update-state {APPLIANCE} >/dev/null || true
fi
test -d /run/systemd/system || exit 0
systemctl --system daemon-reload >/dev/null || true
makes_way || deb-systemd-invoke restart {APPLIANCE} >/dev/null || true
rm -f {_UNIT_BEFORE}
systemctl try-restart {JOBS} {BACKUPS} || true
"""
_LEAVING: Final = f"""\
{_START}test "$1" = remove || exit 0
test -d /run/systemd/system || exit 0
deb-systemd-invoke stop {BACKUPS} {JOBS} {SOCKET} {APPLIANCE} >/dev/null || true
"""
_GONE: Final = f"""\
{_START}test ! -d /run/systemd/system || systemctl --system daemon-reload >/dev/null || true
case "$1" in
remove)
    deb-systemd-helper mask {APPLIANCE} >/dev/null || true ;;
purge)
    deb-systemd-helper purge {_UNITS} >/dev/null || true
    deb-systemd-helper unmask {_UNITS} >/dev/null || true
    test ! -d /var/lib/penstock || echo "penstock: records are kept in /var/lib/penstock" ;;
esac
"""


class File(NamedTuple):
    """path: below /."""

    path: str
    text: bytes
    mode: int = 0o644


def version(python_version: str) -> str:
    """Debian's words for it: what comes before a release sorts before it."""
    public, plus, local = python_version.partition("+")
    return re.sub(r"\.?(dev|a|b|rc)(?=\d)", r"~\1", public) + plus + local


def files(python_version: str) -> Iterator[File]:
    """All that is not the environment itself."""
    for name in (APPLIANCE, JOBS, SOCKET, BACKUP, BACKUPS):
        text = shipped(name).replace("/opt/penstock/bin/penstock", "/usr/bin/penstock")
        yield File(f"usr/lib/systemd/system/{name}", text.encode())
    yield File("usr/lib/sysusers.d/penstock.conf", shipped("penstock.sysusers").encode())
    yield File(CONFIG, shipped("server.properties").encode())
    for name, text in man.pages(python_version):
        yield File(f"usr/share/man/man1/{name}.gz", gzip.compress(text.encode(), mtime=0))
    for path, text in completion.scripts():
        yield File(path, text.encode())


def control(python_version: str, architecture: str, python: tuple[int, int], kib: int) -> str:
    """The package's own description. python: the one that its environment is for. kib: its size
    when it is installed."""
    major, minor = python
    return f"""\
Package: penstock
Version: {version(python_version)}
Architecture: {architecture}
Maintainer: {_MAINTAINER}
Installed-Size: {kib}
Depends: python3 (>= {major}.{minor}), python3 (<< {major}.{minor + 1}), libc6, \
init-system-helpers, systemd | systemd-standalone-sysusers
Recommends: ca-certificates
Suggests: openjdk-17-jre-headless, kcat
Section: net
Priority: optional
Description: Kafka-compatible event-streaming appliance for one host, or three as a cluster
 One command starts an appliance that stock clients of Apache Kafka can use:
 topics, groups and transactions, with records on the host's own disks. The
 package starts it with the host, on localhost:9092.
"""


def scripts() -> Iterator[tuple[str, str, int]]:
    """Names, texts and modes of what dpkg runs and reads of the package."""
    yield "preinst", _COMES, 0o755
    yield "postinst", _INSTALLED, 0o755
    yield "prerm", _LEAVING, 0o755
    yield "postrm", _GONE, 0o755
    yield "conffiles", f"/{CONFIG}\n", 0o644


def build(wheel: Path, python_version: str, place: Path, epoch: int) -> Path:
    """The package of a wheel, in `place`; works in `place/deb`, which is removed. epoch: the time
    of every file, in seconds, so that the same wheel gives the same bytes."""
    stage = place / "deb"
    shutil.rmtree(stage, ignore_errors=True)
    _environment(wheel, stage)
    for file in files(python_version):
        _write(stage / file.path, file.text, file.mode)
    program = stage / "usr/bin/penstock"
    program.parent.mkdir(parents=True)
    program.symlink_to("../lib/penstock/bin/penstock")
    found = subprocess.run(
        [PYTHON, "-c", "import sys; print(*sys.version_info[:2])"],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    return pack(stage, python_version, (int(found[0]), int(found[1])), place, epoch)


def pack(
    stage: Path,
    python_version: str,
    python: tuple[int, int],
    place: Path,
    epoch: int,
    squeeze: tuple[str, ...] = ("-Zxz", "-z3"),
) -> Path:
    """The package of a tree of files, in `place`; the tree is removed. squeeze: dpkg-deb's options
    for the compression."""
    there = sorted(path for path in stage.rglob("*") if path.is_file() and not path.is_symlink())
    sums = [f"{md5(path.read_bytes()).hexdigest()}  {path.relative_to(stage)}" for path in there]
    kib = sum(path.stat().st_size for path in there) // 1024
    architecture = _said("dpkg", "--print-architecture")
    _write(stage / "DEBIAN/md5sums", ("\n".join(sums) + "\n").encode(), 0o644)
    text = control(python_version, architecture, python, kib)
    _write(stage / "DEBIAN/control", text.encode(), 0o644)
    for name, text, mode in scripts():
        _write(stage / "DEBIAN" / name, text.encode(), mode)
    for path in [stage, *stage.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
        os.utime(path, (epoch, epoch), follow_symlinks=False)
    made = place / f"penstock_{version(python_version)}_{architecture}.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", *squeeze, "--build", str(stage), str(made)],
        check=True, stdout=subprocess.DEVNULL, env=os.environ | {"SOURCE_DATE_EPOCH": str(epoch)},
    )  # fmt: skip
    shutil.rmtree(stage)
    return made


def _environment(wheel: Path, stage: Path) -> None:
    """A virtual environment that believes to be in its later place, with byte code that nobody
    has to write there."""
    there = stage / HOME
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", str(there)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(there / "bin/python"), "install"]
    subprocess.run([*pip, "--quiet", "--no-compile", str(wheel)], check=True)
    for path in (there / "bin").iterdir():
        if path.is_symlink():
            continue
        if path.name.lower().startswith("activate"):
            path.unlink()
        else:
            _write(path, path.read_bytes().replace(str(stage).encode() + b"/", b"/"), 0o755)
    settings = there / "pyvenv.cfg"
    kept = [line for line in settings.read_text().splitlines() if not line.startswith("command")]
    settings.write_text("\n".join([*kept, ""]))
    for told in there.rglob("direct_url.json"):
        told.unlink()  # where the wheel lay when it was installed
    subprocess.run(
        [
            PYTHON, "-m", "compileall", "-q", "-s", str(stage), "-p", "/",
            "--invalidation-mode", "unchecked-hash", str(there / "lib"),
        ],
        check=False, stdout=subprocess.DEVNULL,
    )  # fmt: skip


def _said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def _write(path: Path, text: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    path.chmod(mode)
