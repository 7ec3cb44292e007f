"""`penstock service`: the files that it writes for this environment, and what it asks of systemd,
which is a program that writes down how it was called. tests/systemd has the real one."""

import json
import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.config.listeners import in_url
from appliance.config.open_listeners import ALLOWED
from appliance.shell.bind_address import resolve
from benchmarks.kafka import free_port
from console.model.asking.failure import Failure
from console.model.service.backing_up import Backups, add_backups, wished
from console.model.service.fitting import MARK, fitted
from console.model.service.installing import files
from console.model.service.listening import socket_unit
from console.model.service.place import (
    APPLIANCE,
    BACKUP,
    JOBS,
    SOCKET,
    of_host,
    of_user,
    shipped,
    unreachable,
)

PROGRAM = ("/srv/a/bin/penstock",)
SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$HOME/called"
case "$*" in
*show*InvocationID*) echo InvocationID=4711;;
*show*penstock.service*) echo LoadState=loaded; echo "ActiveState=$(cat "$HOME/state")"
    test "$(cat "$HOME/state")" = active || echo Result=exit-code
    echo SubState=running; echo UnitFileState=enabled; echo MainPID=7; echo NRestarts=2;;
*show*) echo LoadState=not-found; echo ActiveState=inactive;;
*restart*) test ! -e "$HOME/refuses" || { echo "Job failed. See logs." >&2; exit 1; };;
esac
"""


JOURNALCTL = """#!/bin/sh
echo "$*" >> "$HOME/asked"
echo "penstock: log.dirs is read-only"
"""


def lines(text, name):
    return re.findall(rf"^{name}=(.*)$", text, re.MULTILINE)


def test_the_hosts_unit_is_the_shipped_one_with_this_program():
    text = fitted(APPLIANCE, shipped(APPLIANCE), PROGRAM, of_host(None, None))
    first, rest = text.split("\n", 1)
    assert first.startswith(MARK) and first.endswith("systemctl edit penstock")
    assert rest.replace(PROGRAM[0], "/opt/penstock/bin/penstock") == shipped(APPLIANCE)


def test_another_data_folder_is_the_only_one_that_may_be_written():
    for name in (APPLIANCE, JOBS):
        text = fitted(name, shipped(name), PROGRAM, of_host("/srv/100%", None))
        assert "/var/lib/penstock" not in text and not lines(text, "StateDirectory")
        assert lines(text, "ReadWritePaths") == ["/srv/100%%"] == lines(text, "RequiresMountsFor")
    assert "XDG_CACHE_HOME=/srv/100%%/cache HOME=/srv/100%%" in text


def test_a_path_that_a_unit_cannot_name_is_refused():
    with pytest.raises(Failure, match="a b"):
        fitted(APPLIANCE, shipped(APPLIANCE), PROGRAM, of_host("/srv/a b", None))


@pytest.mark.parametrize("name", [APPLIANCE, JOBS, BACKUP])
def test_a_users_unit_asks_for_nothing_that_needs_root(name, tmp_path):
    text = fitted(name, shipped(name), PROGRAM, of_user(str(tmp_path), None))
    for word in ("User", "StateDirectory", "ProtectSystem", "PrivateTmp", "OOMScoreAdjust"):
        assert lines(shipped(name), word) and not lines(text, word), word
    assert not any(lines(text, word) for word in ("PrivateUsers", "ReadWritePaths"))
    assert not lines(text, "AmbientCapabilities") and not lines(text, "CapabilityBoundingSet")
    assert lines(text, "WantedBy") == ([] if name == BACKUP else ["default.target"])
    assert lines(text, "NoNewPrivileges") == ["yes"]
    assert "/var/lib" not in text and "/etc" not in text and str(tmp_path) in text


def test_what_a_service_of_the_host_cannot_see_is_told(tmp_path):
    assert unreachable((Path("/usr/bin"),)) is None
    assert "cannot see" in unreachable((Path("/home/a/venv"),))
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    assert "only its owner" in unreachable((closed,), ())


def test_settings_of_the_administrator_are_kept():
    kept = [file.path.name for file in files(of_host(None, None), PROGRAM, True) if file.keep]
    assert kept == ["server.properties"]


@pytest.fixture
def home(tmp_path):
    """A home with a systemctl in it."""
    (tmp_path / "bin").mkdir()
    for name, text in (("systemctl", SYSTEMCTL), ("journalctl", JOURNALCTL)):
        program = tmp_path / "bin" / name
        program.write_text(text)
        program.chmod(0o755)
    (tmp_path / "state").write_text("active")
    return tmp_path


@pytest.fixture
def service(home):
    def run(*words, code=0):
        env = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
        env |= {"HOME": str(home), "PATH": f"{home}/bin:{os.environ['PATH']}"}
        done = subprocess.run(
            [sys.executable, "-m", "console", "service", *words, "--user"],
            capture_output=True, text=True, env=env, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def called(home):
    """How systemctl was called since the last time."""
    found = (home / "called").read_text().splitlines()
    (home / "called").write_text("")
    return [line.removeprefix("--user ") for line in found if line != "--user --version"]


def test_an_upgrade_of_a_service_that_runs_is_under_its_clients(service, home):
    service("install")
    data = home / ".local/state/penstock/data"
    settings = home / ".config/penstock/server.properties"
    port = free_port()
    settings.write_text(f"listeners=PLAINTEXT://127.0.0.1:{port}\n")
    called(home)
    with (home / "log").open("w+") as log:
        one = subprocess.Popen(
            [sys.executable, "-m", "console", "up", "--data", data, "--config", settings],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            wait = [sys.executable, "-m", "console", "wait", "--data", data, "--timeout", "60"]
            subprocess.run(wait, check=True)
            with socket.create_connection(("127.0.0.1", port)) as client:
                service("install")
                assert called(home) == ["daemon-reload", "enable penstock.service"]
                settings.write_text("num.partitions=none\n")
                assert "serves as before" in service("install", code=1)
                assert called(home) == []
                client.setblocking(False)
                with pytest.raises(BlockingIOError):
                    client.recv(1)  # nobody has hung up
            one.terminate()
            assert one.wait(60) == 0
        finally:
            one.kill()
            one.wait()
    assert (home / "log").read_text().count("is ready") == 2


def test_a_users_service_comes_and_goes(service, home):
    unit = home / ".config/systemd/user/penstock.service"
    settings = home / ".config/penstock/server.properties"
    said = service("install")
    assert "enable-linger" in said and str(unit) in said
    assert called(home) == ["daemon-reload", "enable penstock.service", "restart penstock.service"]
    data = home / ".local/state/penstock/data"
    (start,) = lines(unit.read_text(), "ExecStart")
    assert start.endswith(f" up --data {data} --config {settings}")
    assert start.startswith(str(Path(sys.executable).parent))
    assert stat.S_IMODE(data.stat().st_mode) == 0o750

    settings.write_text("num.partitions=3\n")
    service("install", "--no-start")
    assert settings.read_text() == "num.partitions=3\n"
    assert called(home) == ["daemon-reload", "enable penstock.service"]

    (row,) = json.loads(service("status", "-o", "json"))
    assert (row["unit"], row["state"], row["pid"], row["restarts"]) == ("penstock", "active", 7, 2)
    assert row["error"] is None
    (home / "state").write_text("failed")
    assert "penstock.service said: penstock: log.dirs is read-only" in service("status", code=4)
    (row,) = json.loads(service("status", "-o", "json", code=4))
    assert row["error"] == "penstock: log.dirs is read-only"
    asked = (home / "asked").read_text().split()
    assert {"--user", "--quiet", "--priority=err", "_SYSTEMD_INVOCATION_ID=4711"} <= set(asked)
    called(home)

    service("uninstall")
    assert called(home) == ["disable --now penstock.service", "daemon-reload"]
    assert not unit.exists() and settings.exists() and data.exists()
    assert "there is no" in service("uninstall")


def listens(text):
    return lines(text, "ListenStream"), lines(text, "BindIPv6Only")


def test_systemd_listens_where_the_settings_say(service, home):
    unit = home / ".config/systemd/user/penstock.socket"
    settings = home / ".config/penstock/server.properties"
    service("install", "--socket")
    assert called(home) == [
        "daemon-reload", "stop penstock.service", "enable penstock.socket",
        "restart penstock.socket", "enable penstock.service", "restart penstock.service",
    ]  # fmt: skip
    assert listens(unit.read_text())[0][0] == "127.0.0.1:9092"
    settings.write_text(
        "listeners=PLAINTEXT://127.0.0.1:9192,TWO://[::1]:9193\n"
        "listener.security.protocol.map=TWO:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
    )
    service("install", "--no-start")  # what it wrote before it writes anew
    assert listens(unit.read_text()) == (["127.0.0.1:9192", "[::1]:9193"], ["ipv6-only"])
    assert called(home) == [
        "daemon-reload", "enable penstock.socket", "enable penstock.service",
    ]  # fmt: skip
    settings.write_text("listeners=PLAINTEXT://localhost:0\n")
    assert "any free port" in service("install", code=2)
    service("uninstall")
    assert called(home)[-3:] == [
        "disable --now penstock.socket", "disable --now penstock.service", "daemon-reload",
    ]  # fmt: skip
    assert not unit.exists()


def test_a_listener_everywhere_is_one_socket_for_both_kinds_of_addresses():
    there = of_host(None, None)
    text = socket_unit(shipped(SOCKET), there, f"listeners=PLAINTEXT://:9092\n{ALLOWED}\n")
    (address,), (only,) = listens(text)
    _, host = resolve("", 9092)
    assert (address, only) == (f"{in_url(host)}:9092", "both")
    assert text.startswith(MARK) and "edit penstock.socket" in text
    wrong = f"listeners=PLAINTEXT://:9092,SIX://[::]:9093\n{ALLOWED}\n"
    with pytest.raises(Failure):
        socket_unit(shipped(SOCKET), there, wrong)


def test_backups_every_night_are_installed_and_stay_as_they_were_wished(service, home):
    unit = home / ".config/systemd/user/penstock-backup.service"
    timer = unit.with_suffix(".timer")
    kept = home / "kept"
    service("install", "--backup", str(kept), "--keep", "30")
    assert called(home)[-2:] == ["enable penstock-backup.timer", "restart penstock-backup.timer"]
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    for again in range(2):
        told = dict(one.split("=", 1) for one in lines(unit.read_text(), "Environment"))
        assert (told["PENSTOCK_BACKUP_TO"], told["PENSTOCK_BACKUP_KEEP"]) == (str(kept), "30")
        assert lines(unit.read_text(), "EnvironmentFile") == [
            f"-{home}/.config/penstock/backup.env"
        ]
        (start,) = lines(unit.read_text(), "ExecStart")
        assert f" {home}/.local/state/penstock/data $" in start
        if not again:
            unit.write_text(unit.read_text().replace("UMask=0077", "UMask=0022"))
            service("install")  # after an upgrade
            assert lines(unit.read_text(), "UMask") == ["0077"]
    service("install", "--backup", "s3://bucket/a", "--no-start")
    assert "PENSTOCK_BACKUP_TO=s3://bucket/a\nEnvironment=PENSTOCK_BACKUP_KEEP=30" in (
        unit.read_text()
    )
    within = home / ".local/state/penstock/data/backups"
    assert "lies inside the data folder" in service("install", "--backup", str(within), code=2)
    assert lines(timer.read_text(), "Persistent") == ["yes"]
    called(home)
    service("uninstall")
    assert called(home)[0] == "disable --now penstock-backup.timer"
    assert not unit.exists() and not timer.exists() and kept.exists()
    assert "--backup WHERE" in service("install", "--keep", "3", code=2)


def test_the_hosts_backups_may_write_their_folder_or_reach_their_bucket():
    there = of_host("/srv/data", None)
    text = add_backups(
        fitted(BACKUP, shipped(BACKUP), PROGRAM, there), Backups("/var/lib/penstock-b", 3)
    )
    assert lines(text, "ReadWritePaths") == ["/srv/data", "-/var/lib/penstock-b"]
    assert lines(text, "RequiresMountsFor") == ["/srv/data", "/var/lib/penstock-b"]
    assert lines(text, "PrivateNetwork") == ["yes"]
    assert lines(text, "RestrictAddressFamilies") == ["AF_UNIX"]
    text = add_backups(
        fitted(BACKUP, shipped(BACKUP), PROGRAM, there), Backups("s3://bucket/a%b", 3)
    )
    assert "PENSTOCK_BACKUP_TO=s3://bucket/a%%b" in text and "/var/backups" not in text
    assert lines(text, "ReadWritePaths") == ["/srv/data"] == lines(text, "RequiresMountsFor")
    assert lines(text, "PrivateNetwork") == []
    assert lines(text, "RestrictAddressFamilies") == ["AF_INET AF_INET6 AF_UNIX"]
    with pytest.raises(Failure, match="cannot see"):
        wished("/home/a/backups", None, there)


def test_what_was_not_written_by_it_is_left_alone(service, home):
    unit = home / ".config/systemd/user/penstock.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    for word in ("install", "uninstall"):
        assert "was not written by" in service(word, code=1)
    assert unit.read_text() == "[Service]\nExecStart=/bin/true\n"


def test_a_start_that_fails_says_where_to_look(service, home):
    (home / "refuses").touch()
    said = service("install", code=1)
    assert "Job failed" in said and "service logs tells" in said
    assert "penstock.service said: penstock: log.dirs is read-only" in said


def test_a_dry_run_writes_nothing(service, home):
    said = service("install", "--dry-run", "--jobs")
    assert "penstock-jobs.service" in said and "ExecStart=" in said
    assert not (home / ".config").exists() and not (home / "called").exists()
