"""Which version a tree is: by tag, by commit, without git, and in what was made of it."""

import subprocess

import pytest

from pages.release.version import named, of


@pytest.mark.parametrize(
    ("described", "version"),
    [
        ("v1.2.3", "1.2.3"),
        ("v1.2.3-0-g0a1b2c3d", "1.2.3"),
        ("v1.2.3-7-g0a1b2c3d", "1.2.4.dev7+g0a1b2c3d"),
        ("v1.3.0rc1-2-g0a1b2c3d", "1.3.0.dev2+g0a1b2c3d"),
        ("-700-g0a1b2c3d", "0.1.0.dev700+g0a1b2c3d"),
        ("", "0.1.0.dev0"),
        ("$Format:%(describe)$", "0.1.0.dev0"),
    ],
)
def test_what_git_says_becomes_a_version(described, version):
    assert named(described) == version


def test_a_changed_tree_is_not_the_release():
    assert named("v1.2.3-0-g0a1b2c3d", changed=True) == "1.2.4.dev0+g0a1b2c3d.dirty"


def test_a_tree_is_what_its_own_git_or_its_own_file_says(tmp_path):
    def git(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", tmp_path, *who, *words], check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "file").write_text("1\n")
    inner = tmp_path / "unpacked"
    inner.mkdir()
    git("add", "-A")
    git("commit", "-qm", "first")
    assert of(tmp_path).startswith("0.1.0.dev1+g")
    git("tag", "v2.0.0")
    assert of(tmp_path) == "2.0.0"
    assert of(inner) == "0.1.0.dev0", "a tree inside a repository of something else"
    (tmp_path / "file").write_text("2\n")
    assert of(tmp_path).startswith("2.0.1.dev0+g") and of(tmp_path).endswith(".dirty")
    (inner / ".git_archival").write_text("v2.0.0\n")
    assert of(inner) == "2.0.0"
    (inner / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: a\nVersion: 1.5\n")
    assert of(inner) == "1.5"
