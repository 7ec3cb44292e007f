"""An open appliance gets logins without a stop, by the commands of docs/secure.md."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.kafka import free_port
from penstock.local import environment

pytestmark = pytest.mark.timeout(240)
PAGE = (Path(__file__).parents[2] / "docs/secure.md").read_text()
SECTION = PAGE[PAGE.index("## Migrate a running") : PAGE.index("## On this host")]
BEGIN, LISTED, END = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
ALLOWED = "penstock.listeners.without.authentication=allow"
LIMIT_S = 100


class Place:
    """A folder with an open appliance, and a person who types there what the page says."""

    def __init__(self, folder):
        self.folder = folder
        self.old = free_port()
        self.new = free_port(self.old)
        (folder / "bin").mkdir()
        program = folder / "bin/penstock"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m console "$@"\n')
        program.chmod(0o755)
        self.env = environment() | {
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder), "PENSTOCK_BOOTSTRAP": f"localhost:{self.old}",
        }  # fmt: skip
        (folder / "server.properties").write_text(f"listeners=PLAINTEXT://:{self.old}\n{ALLOWED}\n")

    def type(self, text):
        text = text.replace("9092", str(self.old)).replace("9093", str(self.new))
        text = text.replace("--host edge.example.org", f"--host localhost --port {self.new}")
        done = subprocess.run(
            ["bash", "-ec", text], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (text, done.stdout, done.stderr, self.log())
        return done.stdout

    def log(self):
        return (self.folder / "log").read_text()[-3000:]

    def listens(self, port):
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", port)) == 0


def test_both_serve_for_a_while_and_then_the_old_one_is_closed(tmp_path):
    place = Place(tmp_path)
    with (tmp_path / "log").open("ab") as log, subprocess.Popen(
        ["penstock", "up", "--config", "server.properties"], cwd=tmp_path, env=place.env,
        executable=str(tmp_path / "bin/penstock"), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
    ) as process:  # fmt: skip
        try:
            place.type("penstock wait --timeout 60; penstock topic create orders")
            place.type(BEGIN)
            at = f"-b localhost:{place.new} --command-config loader.properties"
            place.type(f"echo new | penstock produce orders {at}")
            with socket.create_connection(("127.0.0.1", place.old), LIMIT_S) as left:
                left.sendall(b"\0\0\0\x0d\0\x12\0\0\0\0\0\x01\0\x03old")
                assert left.recv(4)
                told = place.type(LISTED.replace("PLAINTEXT", "PLAINTEXT -o json"))
                rows = [(one["client_id"], one["user"]) for one in json.loads(told)]
                assert ("old", "User:ANONYMOUS") in rows or ("old", "ANONYMOUS") in rows, rows
            pid = process.pid
            place.type(END)
            assert process.poll() is None and process.pid == pid
            del place.env["PENSTOCK_BOOTSTRAP"]
            place.type("penstock wait --timeout 60")
            assert not place.listens(place.old) and place.listens(place.new)
            assert "orders" in place.type("penstock topic list")
            place.type("penstock acl add loader read --topic orders --group g")
            assert place.type(f"penstock consume orders -e {at}") == "new\n"
        finally:
            process.terminate()
