"""Old software: the jars of Apache Kafka 3.9, clients of years ago. Fetched once, kept in the cache
of pytest; what cannot be fetched skips its tests."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def kafka39(pytestconfig) -> Path:
    """The folder with the jars of Apache Kafka 3.9."""
    folder = pytestconfig.cache.mkdir("kafka-3.9")
    if not any(folder.glob("kafka_2.13-3.9.*.jar")):
        if shutil.which("mvn") is None or shutil.which("java") is None:
            pytest.skip("java or mvn is not installed")
        command = ["mvn", "-q", "-B", "-f", str(HERE / "kafka39" / "pom.xml")]
        command += ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            pytest.skip("the jars of Apache Kafka 3.9 cannot be fetched")
    return folder


def python_with(pytestconfig, version: str, series: str) -> Path:
    """The interpreter of an environment that has kafka-python in this version. series: of the
    Python that it needs, 3.6 for example."""
    folder = pytestconfig.cache.mkdir(f"kafka-python-{version}")
    found = folder / "bin" / "python"
    if (folder / "whole").exists():
        return found
    roots = sorted(Path.home().glob(f".pyenv/versions/{series}.*/bin/python"))
    named = shutil.which(f"python{series}")
    if not roots and named is None:
        pytest.skip(f"Python {series} is not installed")
    base = str(roots[-1]) if roots else named
    subprocess.run([base, "-m", "venv", "--clear", folder], check=True, timeout=100)
    command = [found, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run(
        [*command, f"kafka-python=={version}", "six"], capture_output=True, text=True,
        timeout=100, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"kafka-python {version} cannot be fetched: {done.stderr[-300:]}")
    (folder / "whole").touch()
    return found


def run_python(python: Path, script: str, *arguments: str) -> list[str]:
    """Lines that a script prints."""
    done = subprocess.run(
        [python, "-c", script, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert not done.returncode, done.stderr[-3000:]
    return done.stdout.splitlines()
