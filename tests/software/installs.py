"""The software of others, each version pinned, fetched by the client of its own registry.

It is kept in ~/.cache/penstock-tests/software under a hash of what was asked for, and made by one
process at a time. Whoever asks is skipped where the toolchain is absent or the registry says no;
everything else that goes wrong is a failure.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.built import cache

PROGRAMS = Path(__file__).parent / "programs"
LIMIT_S = 600
"""How long an installation may take."""
REFUSALS = (
    "403 Forbidden", "E404", "No matching distribution", "not found in the package registry",
    "Could not resolve host", "dial tcp", "ENOTFOUND", "EAI_AGAIN", "failed to download",
    "Failed to fetch", "Could not transfer artifact", "Unable to locate package", "error sending",
)  # fmt: skip
"""What the registries' clients say when a package, or the network, is not to be had."""


def need(tool: str) -> str:
    """The path of a tool; skips the test without it."""
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"there is no {tool}")
    return found


@contextlib.contextmanager
def _folder(kind: str, *asked: str) -> Iterator[tuple[Path, bool]]:
    """A folder for what was asked for, and whether it is there already. It is when the block has
    ended without an exception once."""
    key = hashlib.sha256("\0".join([kind, sys.version, *asked]).encode()).hexdigest()[:16]
    place = cache() / "software" / f"{kind}-{key}"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when its process ends, however it ends
        ready = place / "ready"
        yield place / "made", ready.exists()
        ready.touch()


def _run(command: list[str], cwd: Path, **environment: str) -> None:
    done = subprocess.run(
        command, cwd=cwd, env=os.environ | environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    if done.returncode and any(refusal in said for refusal in REFUSALS):
        pytest.skip(f"{Path(command[0]).name} fetches nothing here: {said[-300:]}")
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {said[-3000:]}"


def _emptied(place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    return place


def python_packages(*requirements: str) -> Path:
    """The interpreter of an environment with these packages alone, of our own version."""
    with _folder("python", *requirements) as (place, ready):
        python = place / "bin" / "python"
        if not ready:
            shutil.rmtree(place, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(place)], place.parent)
            quiet = ["-q", "--disable-pip-version-check", "--no-compile"]
            _run([str(python), "-m", "pip", "install", *quiet, *requirements], place.parent)
    return python


def node_packages(**versions: str) -> Path:
    """A folder whose programs find these packages of npm."""
    npm = need("npm")
    with _folder("node", json.dumps(versions, sort_keys=True)) as (place, ready):
        if not ready:
            (_emptied(place) / "package.json").write_text(json.dumps({"dependencies": versions}))
            _run([npm, "install", "--no-audit", "--no-fund", "--ignore-scripts"], place)
    return place


def go_program(name: str, *modules: str) -> Path:
    """The program `programs/NAME.go`, built with these modules (MODULE@VERSION)."""
    go, source = need("go"), (PROGRAMS / f"{name}.go").read_text()
    with _folder("go", source, *modules) as (place, ready):
        if not ready:
            (_emptied(place) / "main.go").write_text(source)
            offline = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
            _run([go, "mod", "init", "program"], place, **offline)
            _run([go, "get", *modules], place, **offline)
            _run([go, "build", "-o", "program", "."], place, **offline)
    return place / "program"


def go_module(module: str) -> Path:
    """A copy of one's own of a module's files (MODULE@VERSION), tests included."""
    go = need("go")
    with _folder("go-module", module) as (place, ready):
        if not ready:
            offline = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "GOMODCACHE": str(place)}
            _run([go, "mod", "download", "-modcacherw", module], _emptied(place), **offline)
    return place / module


def librdkafka_runner(version: str) -> Path:
    """librdkafka's `tests/test-runner`, made of the source that this version of node-rdkafka has
    with it: npm's is the registry that has its tests. The libraries are in src and src-cpp."""
    npm = need("npm")
    for one in ("cc", "c++", "make"):
        need(one)
    tree = Path("package", "deps", "librdkafka")
    with _folder("librdkafka", version) as (place, ready):
        if not ready:
            _run([npm, "pack", "--silent", f"node-rdkafka@{version}"], _emptied(place))
            _run(["tar", "xzf", f"node-rdkafka-{version}.tgz"], place)
            _run(["./configure", "--disable-gssapi", "--disable-optimization"], place / tree)
            _run(["make", "-j2", "libs"], place / tree)
            _run(["make", "-j2", "-C", "tests", "test-runner"], place / tree)
    return place / tree / "tests" / "test-runner"


def rust_program(name: str, dependencies: str) -> Path:
    """The program `programs/NAME.rs`, built with these lines of a Cargo.toml."""
    cargo, source = need("cargo"), (PROGRAMS / f"{name}.rs").read_text()
    with _folder("rust", source, dependencies) as (place, ready):
        if not ready:
            manifest = '[package]\nname = "program"\nversion = "0.1.0"\nedition = "2021"\n'
            manifest += f"[profile.dev]\ndebug = false\n[dependencies]\n{dependencies}"
            (_emptied(place) / "src").mkdir()
            (place / "src" / "main.rs").write_text(source)
            (place / "Cargo.toml").write_text(manifest)
            _run([cargo, "build", "-q"], place)
            (place / "target" / "debug" / "program").rename(place / "program")
            shutil.rmtree(place / "target")
    return place / "program"


def jars(*coordinates: str) -> Path:
    """A folder with these artifacts of Maven Central (GROUP:ARTIFACT:VERSION) and theirs."""
    maven = need("mvn")
    need("java")
    with _folder("jars", *coordinates) as (place, ready):
        if not ready:
            parts = [one.split(":") for one in coordinates]
            wanted = "".join(
                f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
                f"<version>{version}</version></dependency>"
                for group, artifact, version in parts
            )
            (_emptied(place) / "pom.xml").write_text(
                '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0'
                "</modelVersion><groupId>software</groupId><artifactId>software</artifactId>"
                f"<version>1</version><dependencies>{wanted}</dependencies></project>"
            )
            to = f"-DoutputDirectory={place / 'libs'}"
            _run([maven, "-q", "-B", "dependency:copy-dependencies", to], place)
    return place / "libs"


def archive(coordinates: str) -> Path:
    """A folder with the content of an archive of Maven Central
    (GROUP:ARTIFACT:VERSION:tar.gz:CLASSIFIER)."""
    maven = need("mvn")
    with _folder("archive", coordinates) as (place, ready):
        if not ready:
            to = ["-Dmdep.useBaseVersion=true", f"-DoutputDirectory={_emptied(place)}"]
            _run([maven, "-q", "-B", "dependency:copy", f"-Dartifact={coordinates}", *to], place)
            (packed,) = place.glob("*.tar.gz")
            _run(["tar", "xzf", str(packed), "-C", str(place)], place)
            packed.unlink()
    return place


def debian_package(name: str) -> Path:
    """A folder with the files of a package of Debian, unpacked and not installed."""
    need("dpkg-deb")
    with _folder("debian", name) as (place, ready):
        if not ready:
            _run([need("apt-get"), "-q", "download", name], _emptied(place))
            (archive,) = place.glob("*.deb")
            _run(["dpkg-deb", "-x", str(archive), str(place / "root")], place)
    return place / "root"
