"""requirements.lock pins all that an installation brings, by hash, from wherever it is had: every
dependency that is declared, what those need in turn, in versions that are allowed."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = ("spark", "schemas", "s3", "yaml", "web")
"""Of users; the others are of those who change it."""
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def pinned():
    """Name → (version, number of hashes), of each entry."""
    found = {}
    for entry in re.split(r"\n(?=[a-z])", "\n" + TEXT):
        lines = [line for line in entry.splitlines() if line and not line.startswith("#")]
        if lines:
            name, equals, rest = lines[0].partition("==")
            assert equals, lines[0]
            version = rest.split(";")[0].strip(" \\")
            assert canonicalize_name(name) not in found, name
            found[canonicalize_name(name)] = version, len(HASH.findall(entry))
    return found


def applies(one, extra=""):
    return one.marker is None or one.marker.evaluate({"extra": extra})


def needed():
    """(who needs it, requirement) of all that is declared, and of what is installed of that."""
    waiting = [("pyproject.toml", Requirement(text)) for text in PROJECT["dependencies"]]
    for extra in EXTRAS:
        texts = PROJECT["optional-dependencies"][extra]
        waiting += [(f"its extra {extra}", Requirement(text)) for text in texts]
    seen = set()
    while waiting:
        who, one = waiting.pop()
        yield who, one
        if (key := (canonicalize_name(one.name), frozenset(one.extras))) in seen:
            continue
        seen.add(key)
        try:
            texts = requires(one.name) or ()
        except PackageNotFoundError:  # an extra that is not installed here
            continue
        below = [Requirement(text) for text in texts]
        waiting += [
            (one.name, other)
            for other in below
            if any(applies(other, extra) for extra in ("", *one.extras))
        ]


def test_every_entry_has_a_version_and_hashes():
    found = pinned()
    assert len(found) > 30
    assert not [name for name, (version, hashes) in found.items() if not version or not hashes]
    assert sum(hashes for _, hashes in found.values()) == TEXT.count("--hash="), "sha256 alone"


def test_it_names_no_place_to_have_it_from():
    lines = [line for line in TEXT.splitlines() if not line.startswith("#")]
    assert not [one for one in lines if re.search(r"https?:|--(?!hash)| @ |\bgit\+", one)]


def test_it_has_all_that_is_needed_in_versions_that_are_allowed():
    found = pinned()
    missing = {(who, one.name) for who, one in needed() if canonicalize_name(one.name) not in found}
    assert not missing
    wrong = [
        (who, str(one), found[canonicalize_name(one.name)][0])
        for who, one in needed()
        if who.startswith(("pyproject", "its extra"))
        and not one.specifier.contains(found[canonicalize_name(one.name)][0], prereleases=True)
    ]
    assert not wrong


@pytest.mark.parametrize("name", ["cryptography", "pyjwt", "kio", "confluent-kafka"])
def test_what_reads_strangers_bytes_is_among_them(name):
    assert pinned()[name][1] > 1
