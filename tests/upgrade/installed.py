"""Penstock as wheels of this checkout and of earlier commits, each in an environment of its own."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

from benchmarks.kafka import free_port

ROOT = Path(__file__).parents[2]
LIMIT_S = 60


def sources(commit, place):
    """The tree of a commit, or of the checkout as it stands (None); None where there is no such
    commit."""
    place.mkdir()
    if commit is None:
        listed = subprocess.run(
            ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"],
            capture_output=True, check=False,
        ).stdout.decode()  # fmt: skip
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, place / name)
        return place
    archive = place.with_suffix(".tar")
    command = ["git", "-C", ROOT, "archive", "-o", archive, commit]
    with contextlib.suppress(FileNotFoundError):
        if subprocess.run(command, check=False, capture_output=True).returncode == 0:
            with tarfile.open(archive) as tar:
                tar.extractall(place, filter="data")
            return place
    return None


PIP = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]


def install(tree, place):
    """An environment with the wheel of a tree in it, interpreted: its program."""
    wheels = place / "wheels"
    options = ["--no-deps", "--no-build-isolation"]
    env = os.environ | {"PENSTOCK_COMPILE": "0"}
    subprocess.run([*PIP, "wheel", *options, "-w", wheels, tree], check=True, env=env)
    (wheel,) = wheels.glob("*.whl")
    return put(wheel, place)


def put(wheel, place):
    """An environment with a wheel in it, and what it needs from this interpreter's packages: its
    program."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    python = place / "bin/python"
    subprocess.run([*PIP, "--python", python, "install", "--no-deps", wheel], check=True)
    (packages,) = place.glob("lib/*/site-packages")
    needed = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "zz-needed.pth").write_text("\n".join([*needed, ""]))
    return place / "bin/penstock"


def checkout(place):
    """A program that runs the checkout as it stands, as if it were installed."""
    place.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -P -m console "$@"\n')
    place.chmod(0o755)
    return place


PACKAGES = ("appliance", "console", "penstock", "spark_local", "systemd")


class InPlace:
    """An installation that is upgraded and downgraded in place, as pip does it: `program` runs
    whichever version is put there."""

    def __init__(self, folder):
        folder.mkdir()
        self._folder = folder
        self.program = folder / "penstock"
        words = f'"{sys.executable}" -P -m console "$@"'
        self.program.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}/now" exec {words}\n')
        self.program.chmod(0o755)

    def version(self, name, *changes, damaged=""):
        """Sources of the checkout under another version's name. changes: (file, before, after)
        each. damaged: a file that is not whole."""
        tree = self._folder / name
        tree.mkdir()
        for package in PACKAGES:
            shutil.copytree(ROOT / package, tree / package)
        told = tree / f"penstock-{name}.dist-info"
        told.mkdir()
        (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: penstock\nVersion: {name}\n")
        for file, before, after in changes:
            text = (tree / file).read_text()
            assert text.count(before) == 1, file
            (tree / file).write_text(text.replace(before, after))
        if damaged:
            file = tree / damaged
            file.write_bytes(b"(\n" + file.read_bytes()[: file.stat().st_size // 2])
        return name

    def put(self, name):
        """From now on this version is what is installed."""
        new = self._folder / "new"
        new.symlink_to(name)
        new.replace(self._folder / "now")


class Installed:
    """One appliance, started by any installation's program on one folder and port."""

    def __init__(self, data, *settings, config=None):
        self.data = data
        self._settings = [word for one in settings for word in ("-o", one)]
        self._settings += [] if config is None else ["--config", config]
        self.bootstrap = f"127.0.0.1:{free_port()}"
        self._process = None
        self._env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def start(self, program):
        """Returns when clients are served. Raises AssertionError with what it said."""
        ours, theirs = os.pipe()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    program, "up", "--data", self.data, "--listen", self.bootstrap,
                    *self._settings, "--ready-fd", str(theirs),
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[theirs],
                cwd=self.data.parent, env=self._env, start_new_session=True,
            )  # fmt: skip
        os.close(theirs)
        with os.fdopen(ours, "rb") as ready:
            assert ready.read(1), self.log.read_text()[-2000:]

    @property
    def log(self):
        return self.data.parent / f"{self.data.name}.log"

    def stop(self):
        """In order. Its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        """Until it has ended: its exit code."""
        return self._process.wait(LIMIT_S)

    @property
    def pid(self):
        return self._process.pid

    def children(self):
        """Process ids, of the supervisor's own."""
        return Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()

    def restart(self, program):
        """As `penstock restart` of that installation does it: its exit code, and what it said."""
        done = subprocess.run(
            [program, "restart", "--data", self.data, "-o", "json"], env=self._env,
            capture_output=True, text=True, timeout=2 * LIMIT_S, check=False, cwd=self.data.parent,
        )  # fmt: skip
        return done.returncode, done.stdout

    def refuses(self, program):
        """Start in vain: exit code, and what it said."""
        done = subprocess.run(
            [program, "up", "--data", self.data, "--listen", self.bootstrap, *self._settings],
            capture_output=True, text=True, timeout=LIMIT_S, check=False, env=self._env,
            cwd=self.data.parent,
        )  # fmt: skip
        return done.returncode, done.stderr

    def close(self):
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
