"""The systemd unit: what it starts exists, its settings load, it stays locked down."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from appliance.config.listeners import in_url
from appliance.config.load import load
from console.commands.up import _read, command

FOLDER = Path(__file__).parents[2] / "systemd"
UNIT = (FOLDER / "penstock.service").read_text()
NEEDS_SYSTEMD = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here"
)


def settings(name):
    return re.findall(rf"^{name}=(.*)$", UNIT, re.MULTILINE)


def test_the_unit_calls_a_command_that_there_is():
    program, word, *arguments = shlex.split(settings("ExecStart")[0])
    assert Path(program).name == "penstock"
    assert word == command.name
    command.make_context("up", arguments)  # refuses what it does not know


def test_its_settings_load_without_a_warning():
    config, warnings = load((FOLDER / "server.properties").read_text(), {})
    assert warnings == []
    assert [one.host for one in config.endpoints()] == ["localhost"], "loopback unless told"


def test_the_socket_unit_listens_where_the_settings_do():
    text = (FOLDER / "penstock.socket").read_text()
    listens = re.findall(r"^ListenStream=(.*)$", text, re.MULTILINE)
    broker, _ = _read(str(FOLDER / "server.properties"), (), {})
    told = [f"{in_url(one.host)}:{one.port}" for one in broker.endpoints()]
    assert set(told) <= {one.replace("127.0.0.1", "localhost") for one in listens}


def test_the_unit_knows_our_exit_codes():
    from console.model.asking import failure as exits

    assert settings("RestartPreventExitStatus") == [str(exits.USAGE)]


def test_the_page_says_of_each_line_why_it_is_there():
    named = [path for path in FOLDER.iterdir() if path.suffix in (".service", ".socket", ".timer")]
    assert len(named) == 5
    units = "\n".join(path.read_text() for path in named)
    used = set(re.findall(r"^(\w+)=", units, re.MULTILINE)) - {"Description"}
    page = (FOLDER.parent / "docs/systemd.md").read_text()
    _, _, table = page.partition("## Every line of the units, and why\n")
    rows = re.findall(r"^\| (`.*?) \| (.+) \|$", table.partition("\n## ")[0], re.MULTILINE)
    told = {name for names, _ in rows for name in re.findall(r"`(\w+)`", names)}
    assert told == used


@NEEDS_SYSTEMD
@pytest.mark.parametrize("name", ["penstock.service", "penstock-backup.timer"])
def test_systemd_takes_the_unit(tmp_path, name):
    there = tmp_path / "penstock"
    there.write_text("#!/bin/sh\n")
    there.chmod(0o755)
    for path in FOLDER.glob("penstock*.*e*"):
        text = path.read_text().replace("/opt/penstock/bin/penstock", str(there))
        (tmp_path / path.name).write_text(text)
    unit = tmp_path / name
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert str(unit.name) not in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr


@NEEDS_SYSTEMD
@pytest.mark.parametrize("name", ["penstock", "penstock-backup"])
def test_the_unit_stays_locked_down(name):
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", str(FOLDER / f"{name}.service")],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze is older than 250")
    level = re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout)
    assert level is not None
    assert float(level[1]) <= 1.5
