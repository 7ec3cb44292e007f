"""Which versions an upgrade comes from, of repositories with and without releases."""

import subprocess

import pytest

from tests.upgrade.versions import BEFORE_RELEASES, earlier

WHO = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")


class Repository:
    def __init__(self, place):
        self.place = place
        self.git("init", "-q", "-b", "main")

    def git(self, *words):
        done = subprocess.run(["git", *WHO, *words], cwd=self.place, check=True, text=True,
                              stdout=subprocess.PIPE)  # fmt: skip
        return done.stdout.strip()

    def commit(self, *tags):
        self.git("commit", "-q", "--allow-empty", "-m", "x")
        for tag in tags:
            self.git("tag", tag)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


def test_releases_newest_first(repository):
    first = repository.commit("v0.9.0")
    second = repository.commit("v0.10.0")
    repository.commit()
    assert earlier(1, repository.place) == [second]
    assert earlier(2, repository.place) == [second, first]
    assert earlier(3, repository.place) == [second, first, BEFORE_RELEASES[0]]


def test_an_annotated_tag_is_its_commit(repository):
    commit = repository.commit()
    repository.git("tag", "-a", "-m", "x", "v1.0.0")
    repository.commit()
    assert earlier(1, repository.place) == [commit]


def test_a_release_comes_from_the_one_before_it(repository):
    first = repository.commit("v1.0.0")
    repository.commit("v1.1.0")
    assert earlier(1, repository.place) == [first]


def test_no_candidate_and_no_release_of_another_branch(repository):
    first = repository.commit("v1.0.0")
    repository.commit("v2.0.0rc1", "vacation")
    repository.git("checkout", "-q", "-b", "aside")
    repository.commit("v3.0.0")
    repository.git("checkout", "-q", "main")
    repository.commit()
    assert earlier(1, repository.place) == [first]


def test_fixed_ones_before_the_first_release_and_without_git(repository, tmp_path_factory):
    repository.commit()
    assert earlier(1, repository.place) == list(BEFORE_RELEASES[:1])
    assert earlier(9, repository.place) == list(BEFORE_RELEASES)
    assert earlier(2, tmp_path_factory.mktemp("plain")) == list(BEFORE_RELEASES)
