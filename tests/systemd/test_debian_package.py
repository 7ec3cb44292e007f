"""The Debian package: what is in it, and its life on a booted Debian: installed, started, upgraded
while it serves, removed, purged."""

import gzip
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from booted import Booted, NotBooted, impossible

from console.model.service.place import APPLIANCE, BACKUP, BACKUPS, JOBS, SOCKET
from console.root import root
from pages.release import deb

ROOT = Path(__file__).parents[2]
NEEDS_DPKG = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb here")
AT_S = 1_700_000_000
LOOKS = 600


def said(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def test_versions_before_a_release_sort_before_it():
    versions = ["0.1.0.dev7+g0a1b", "0.1.0.dev12+g0a1b", "0.1.0rc1", "0.1.0", "0.1.1.dev1+g0"]
    told = [deb.version(one) for one in versions]
    assert told[0] == "0.1.0~dev7+g0a1b"
    for lower, higher in itertools.pairwise(told):
        subprocess.run(["dpkg", "--compare-versions", lower, "lt", higher], check=True)


@NEEDS_DPKG
def test_what_is_in_it(tmp_path):
    made = []
    for name in ("one", "two"):
        stage = tmp_path / name / "deb"
        for file in deb.files("1.2.dev3"):
            deb._write(stage / file.path, file.text, file.mode)
        made.append(deb.pack(stage, "1.2.dev3", (3, 11), tmp_path / name, AT_S))
    assert made[0].read_bytes() == made[1].read_bytes()
    package = str(made[0])
    assert said("dpkg-deb", "-f", package, "Version").strip() == "1.2~dev3"
    depends = said("dpkg-deb", "-f", package, "Depends")
    assert "python3 (>= 3.11), python3 (<< 3.12)" in depends
    listed = said("dpkg-deb", "-c", package)
    assert " root/root " in listed and not re.search(r" (?!root/root)\w+/\w+ ", listed)
    every = {name: root.get_command(None, name) for name in root.list_commands(None)}
    groups = [name for name, one in every.items() if isinstance(one, click.Group)]
    assert "topic" in groups
    for path in (
        *(f"usr/lib/systemd/system/{unit}" for unit in (APPLIANCE, JOBS, SOCKET, BACKUP, BACKUPS)),
        "usr/lib/sysusers.d/penstock.conf",
        "etc/penstock/server.properties",
        "usr/share/man/man1/penstock.1.gz",
        *(f"usr/share/man/man1/penstock-{group}.1.gz" for group in groups),
        "usr/share/bash-completion/completions/penstock",
        "usr/share/zsh/vendor-completions/_penstock",
        "usr/share/fish/vendor_completions.d/penstock.fish",
    ):
        assert f" ./{path}\n" in listed, path
    subprocess.run(["dpkg-deb", "-e", package, tmp_path / "control"], check=True)
    assert (tmp_path / "control/conffiles").read_text() == "/etc/penstock/server.properties\n"
    for script in ("preinst", "postinst", "prerm", "postrm"):
        subprocess.run(["sh", "-n", tmp_path / "control" / script], check=True)


def test_units_start_what_the_package_brings():
    units = {file.path: file.text.decode() for file in deb.files("1") if "systemd" in file.path}
    services = [text for path, text in units.items() if path.endswith(".service")]
    assert len(services) == 3 and len(units) == 5
    for text in services:
        assert "ExecStart=/usr/bin/penstock " in text and "/opt/penstock" not in text


def test_completion_is_read_by_its_shells(tmp_path):
    for path, text in deb.completion.scripts():
        shell = {"bash-completion": "bash", "zsh": "zsh", "fish": "fish"}[path.split("/")[2]]
        if shutil.which(shell):
            (tmp_path / "script").write_text(text)
            subprocess.run([shell, "-n", tmp_path / "script"], check=True)
        assert "_PENSTOCK_COMPLETE" in text


def test_man_pages_say_what_help_says():
    (page,) = [
        gzip.decompress(file.text).decode()
        for file in deb.files("1.2")
        if file.path.endswith("/penstock-topic.1.gz")
    ]
    assert page.startswith('.TH PENSTOCK-TOPIC 1 "" "Penstock 1.2"')
    for words in (r".SS penstock topic create", r"\-p, \-\-partitions", ".BR penstock (1)"):
        assert words in page, words
    if shutil.which("man"):
        done = subprocess.run(
            ["man", "--warnings", "-l", "-"], input=page, text=True, capture_output=True,
            env=os.environ | {"MANROFFSEQ": "", "LC_ALL": "C.UTF-8"}, check=True,
        )  # fmt: skip
        assert "warning" not in done.stderr, done.stderr


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Versions of this checkout: a first one, one that differs by its number alone, one with
    another unit. PENSTOCK_TEST_PACKAGES=DIR: of the package that lies there."""
    place = tmp_path_factory.mktemp("packages")
    there = os.environ.get("PENSTOCK_TEST_PACKAGES")
    first = next(Path(there).glob("*.deb")) if there else built(place)
    return first, repacked(first, place, "9.dev2"), repacked(first, place, "9.dev3", tasks=4095)


def built(place):
    subprocess.run(
        [
            sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
            "-w", place, ROOT,
        ],
        check=True, env=os.environ | {"PENSTOCK_COMPILE": "0"},
    )  # fmt: skip
    (wheel,) = place.glob("*.whl")
    return deb.build(wheel, "0.1.0.dev1", place, AT_S)


def repacked(package, place, version, tasks=4096):
    subprocess.run(["dpkg-deb", "-x", package, place / "stage"], check=True)
    unit = place / "stage/usr/lib/systemd/system" / APPLIANCE
    unit.write_text(unit.read_text().replace("TasksMax=4096", f"TasksMax={tasks}"))
    quickly = ("-Zgzip", "-z1")  # what is tried is the package, and xz takes half a minute
    return deb.pack(place / "stage", version, sys.version_info[:2], place, AT_S, quickly)


@pytest.fixture(scope="module")
def debian(tmp_path_factory):
    if why := impossible():
        pytest.skip(why)
    try:
        found = Booted(tmp_path_factory.mktemp("debian") / "container")
    except NotBooted as why:
        pytest.skip(str(why))
    yield found
    found.close()


def connections(booted):
    """Of the reader to the appliance, by the ports at its end, that are established."""
    mine = f"ls -l /proc/{booted.show('reader', 'MainPID')}/fd"
    script = f"""
        sockets=$({mine} | sed -n 's/.*socket:.\\([0-9]*\\).*/\\1/p')
        cat /proc/net/tcp /proc/net/tcp6 | awk -v mine="$sockets" '
            BEGIN {{ split(mine, those); for (n in those) held[those[n]] = 1 }}
            $3 ~ /:2384$/ && $4 == "01" && $10 in held {{ print $2 }}' | sort"""
    found = set(booted.run("sh", "-c", script).split())
    assert found
    return found


def until_read(booted, *lines):
    for _ in range(LOOKS):
        read = booted.run("journalctl", "-o", "cat", "-u", "reader", "_COMM=penstock").split()
        if read == list(lines):
            return
    raise AssertionError(booted.journal("reader"))


@NEEDS_DPKG
@pytest.mark.timeout(900)
def test_it_comes_serves_is_upgraded_and_goes(packages, debian):
    older, newer, other = packages
    debian.run("rm", "-f", "/usr/sbin/policy-rc.d")  # an image for Docker starts no service
    for package in packages:
        debian.copy(package, f"/root/{package.name}")
    debian.run("dpkg", "-i", f"/root/{older.name}")
    assert debian.run("systemctl", "is-active", "penstock") == "active\n"
    assert debian.run("systemctl", "is-enabled", "penstock") == "enabled\n"
    debian.run("/usr/bin/penstock", "wait", "--data", "/var/lib/penstock", "--timeout", "60")
    assert "penstock 0.1.0" in debian.run("penstock", "--version")
    debian.run("penstock", "produce", "kept", stdin="one\ntwo\n")
    first = debian.show("penstock", "MainPID")
    debian.run("systemd-run", "--unit=reader", "penstock", "consume", "kept", "-o", "start")
    until_read(debian, "one", "two")
    connected = connections(debian)

    settings = "/etc/penstock/server.properties"
    debian.run("sh", "-c", f"cp {settings} /root/good; echo num.partitions=many >> {settings}")
    said = debian.run("sh", "-c", f"dpkg -i /root/{newer.name} 2>&1")
    assert "goes on as the version before" in said and "num.partitions" in said
    # A client may open more of its own meanwhile.
    assert debian.show("penstock", "MainPID") == first and connected <= connections(debian)
    debian.run("sh", "-c", f"cp /root/good {settings}; echo num.partitions=3 >> {settings}")
    invocation = debian.show("penstock", "InvocationID")
    debian.run("dpkg", "-i", f"/root/{newer.name}")
    assert debian.run("systemctl", "is-active", "penstock") == "active\n"
    assert debian.show("penstock", "MainPID") == first
    assert debian.show("penstock", "InvocationID") == invocation
    told = debian.run("penstock", "config", "get", "num.partitions", "-o", "json")
    assert [row["value"] for row in json.loads(told)] == ["3"], "it has begun anew"
    debian.run("penstock", "produce", "kept", stdin="three\n")
    until_read(debian, "one", "two", "three")
    assert connected <= connections(debian)
    assert "num.partitions=3" in debian.run("cat", settings)
    assert "9~dev2" in debian.run("dpkg", "-s", "penstock")

    debian.run("dpkg", "-i", f"/root/{other.name}")
    assert debian.run("systemctl", "is-active", "penstock") == "active\n"
    assert debian.show("penstock", "MainPID") not in ("0", first)
    assert debian.show("penstock", "TasksMax") == "4095", "as its new unit has it"
    debian.run("systemctl", "stop", "reader")

    debian.run("dpkg", "-r", "penstock")
    debian.run("systemctl", "is-active", "penstock", code=None)
    assert debian.show("penstock", "ActiveState") == "inactive"
    debian.run("test", "-e", "/etc/penstock/server.properties")
    debian.run("test", "-e", "/var/lib/penstock/.kafka_cleanshutdown")
    debian.run("test", "!", "-e", "/usr/lib/penstock")
    debian.run("dpkg", "-i", f"/root/{newer.name}")
    kept = debian.run("penstock", "consume", "kept", "-o", "start", "-e")
    assert kept == "one\ntwo\nthree\n"
    assert "records are kept" in debian.run("dpkg", "--purge", "penstock")
    debian.run("test", "!", "-e", "/etc/penstock/server.properties")
    debian.run("test", "-e", "/var/lib/penstock/kept-0")
    left = debian.run("sh", "-c", "ls -d /etc/systemd/system/*/penstock* || true")
    assert left == ""
