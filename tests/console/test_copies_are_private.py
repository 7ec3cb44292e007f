"""Copies are as private as the data, lead nowhere else, and a check of nothing fails."""

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

from console.model.asking.failure import Failure
from console.model.backup import keeping, manifest
from console.model.backup.store import FolderStore
from console.model.storage import folder_copy
from penstock.local import Appliance
from tests.console.forked_commands import Forks


@pytest.fixture(scope="module")
def forks():
    made = Forks()
    yield made
    made.close()


@pytest.fixture
def copies(alone, forks, tmp_path):
    """A backup of an appliance with a record, made under umask 000."""
    where = tmp_path / "copies"
    env = {"PENSTOCK_BOOTSTRAP": alone.bootstrap}
    forks.run("topic", "create", "copied", "--if-not-exists", env=env)
    assert forks.run("produce", "copied", "--value", "secret", env=env).returncode == 0
    done = forks.run("backup", "create", str(where), str(alone.data_dir), umask=0)
    assert done.returncode == 0, done.stderr
    return where


def _open_to_others(folder):
    return [path for path in (folder, *folder.rglob("*")) if path.lstat().st_mode & 0o007]


def _rewritten(where, change):
    """The newest list of a backup, changed, with a digest that fits."""
    path = max((where / manifest.BACKUPS).iterdir())
    found = json.loads(path.read_bytes().partition(b" ")[2])
    change(found)
    body = json.dumps(found)
    path.write_text(f"{sha256(body.encode()).hexdigest()} {body}\n")


def test_nothing_that_is_made_under_umask_000_is_readable_by_others(copies, forks, tmp_path):
    assert _open_to_others(copies) == []
    restored = tmp_path / "restored"
    assert forks.run("restore", str(copies), str(restored), umask=0).returncode == 0
    assert _open_to_others(restored) == []


@pytest.mark.parametrize(
    "commands",
    [
        [
            "secure init --certificates --host localhost",
            "secure client loader",
            "secure server --host b --out b.pem",
        ],
        ["secure init --host localhost"],
        ["profile add here localhost:9"],
        ["debug bundle -b localhost:9 -o bundle.tar.gz"],
    ],
    ids=lambda commands: commands[-1].partition(" -")[0],
)
def test_what_other_commands_make_is_for_their_user_alone(forks, tmp_path, commands):
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path)}
    (tmp_path / "penstock-data").mkdir()
    for command in commands:
        done = forks.run(*command.split(), umask=0, cwd=str(tmp_path), env=env)
        assert done.returncode == 0, done.stderr
    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert made and [path for path in made if path.stat().st_mode & 0o077] == []


def test_an_appliance_makes_its_folder_for_its_user_alone(tmp_path):
    class Open(Appliance):
        def command(self):
            first, *rest = super().command()
            return ["/bin/sh", "-c", 'umask 000; exec "$@"', "sh", first, *rest]

    with Open(tmp_path / "data") as running:
        assert _open_to_others(running.data_dir) == []


@pytest.mark.parametrize("command", ["verify", "list", "prune --keep 1", "restore"])
def test_a_place_without_a_backup_is_told(forks, tmp_path, command):
    verb, *rest = command.split()
    where = str(tmp_path / "no-such-place")
    typed = ["restore", where, str(tmp_path / "d")] if verb == "restore" else ["backup", verb]
    done = forks.run(*typed, *([where, *rest] if verb != "restore" else []))
    assert done.returncode == 2
    assert b"no such folder, and no backup" in done.stderr
    assert not os.path.exists(where)


def test_a_verify_of_an_empty_folder_is_not_sound(forks, tmp_path):
    done = forks.run("backup", "verify", str(tmp_path))
    assert done.returncode == 2
    assert b"there is no backup there" in done.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [("topic", "../x"), ("topic", "a/b"), ("partition", -1), ("folder", 7), ("topic_id", "00")],
)
def test_a_list_whose_names_lead_elsewhere_is_not_restored(copies, forks, tmp_path, name, value):
    def change(found):
        found["partitions"][0][name] = value

    _rewritten(copies, change)
    done = forks.run("restore", str(copies), str(tmp_path / "r" / "data"))
    assert done.returncode == 1
    assert b"[BACKUP_DAMAGED]" in done.stderr
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("body", ["[]", "{}", '{"format": 1}', '{"format": 1, "partitions": 3}'])
def test_a_list_of_another_shape_is_named(copies, forks, body):
    path = max((copies / manifest.BACKUPS).iterdir())
    path.write_text(f"{sha256(body.encode()).hexdigest()} {body}\n")
    done = forks.run("backup", "verify", str(copies))
    assert done.returncode == 1
    assert b"[BACKUP_DAMAGED]" in done.stderr


def test_damage_that_a_verify_has_found_is_sent_again(copies, alone, forks):
    pieces = (copies / manifest.SEGMENTS).glob("*/*")
    segment = next(path for path in pieces if b"secret" in path.read_bytes())
    whole = segment.read_bytes()
    segment.write_bytes(bytes(len(whole)))
    assert forks.run("backup", "verify", str(copies)).returncode == 4
    assert forks.run("backup", "create", str(copies), str(alone.data_dir)).returncode == 0
    assert segment.read_bytes() == whole
    assert forks.run("backup", "verify", str(copies)).returncode == 0


def test_a_link_in_a_store_is_not_followed(tmp_path):
    (tmp_path / "segments").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "segments" / "file").symlink_to(tmp_path / "secret")
    (tmp_path / "backups").symlink_to(tmp_path / "segments")
    store = FolderStore(str(tmp_path))
    assert store.names("segments") == {}
    for name in ("segments/file", "backups/file"):
        with pytest.raises(Failure):
            list(store.read_object(name))
    with pytest.raises(Failure):
        store.write_object("backups/new", [b""])
    assert keeping.every(store) == []


def test_a_link_in_a_foreign_folder_is_not_copied(tmp_path):
    (tmp_path / "t-0").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "t-0" / "00000000000000000000.log").symlink_to(tmp_path / "secret")
    with pytest.raises(Failure, match="is no plain file"):
        folder_copy.sources(str(tmp_path), ["t-0"], lambda name: False)


def test_an_import_of_a_folder_with_a_link_makes_nothing(forks, tmp_path):
    source = tmp_path / "kafka"
    source.mkdir()
    (tmp_path / "secret").write_text("node.id=1\n")
    (source / "meta.properties").symlink_to(tmp_path / "secret")
    done = forks.run("import", str(source), "--data", str(tmp_path / "made"), "--yes")
    assert done.returncode == 1
    assert b"is a symbolic link" in done.stderr
    assert not Path(tmp_path / "made").exists()
