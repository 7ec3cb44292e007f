"""Programs out of Debian's packages, unpacked to a folder of ours: nothing is installed or started.

Needs apt-get and dpkg, and a package index that apt-get knows.
"""

import os
import subprocess
from pathlib import Path

TARGET = Path(__file__).parents[1] / "out" / "debian"
LIMIT_S = 300


def program(path: str, *packages: str) -> list[str]:
    """The command for `path` (below /) of `packages`, fetched once. Libraries are looked for in the
    packages first. Raises RuntimeError with what apt-get said."""
    root = TARGET / packages[0]
    if not (root / path).exists():
        work = TARGET / "packages"
        work.mkdir(parents=True, exist_ok=True)
        for package in packages:
            _run(["apt-get", "-q", "download", package], work)
            for archive in work.glob(f"{package}_*.deb"):
                _run(["dpkg", "-x", str(archive), str(root)], work)
    libraries = f"{root}/usr/lib/{os.uname().machine}-linux-gnu"
    return ["env", f"LD_LIBRARY_PATH={libraries}", str(root / path)]


def version(command: list[str]) -> str:
    """The first line that the program says of its version."""
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    return said.stdout.splitlines()[0]


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {(done.stdout + done.stderr)[-500:]}")
