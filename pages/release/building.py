"""Source distribution, wheel and bill of materials of a checkout, each by the tool that Python's
own packaging guide names; the same commit gives the same files, byte by byte."""

import gzip
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from tempfile import TemporaryDirectory


def epoch(tree: Path) -> int:
    """The time of everything that is made: SOURCE_DATE_EPOCH, else the commit's, else 1980, before
    which a wheel cannot be."""
    if told := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(told)
    done = subprocess.run(
        ["git", "-C", str(tree), "log", "-1", "--format=%ct"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return int(done.stdout) if done.returncode == 0 else 315_532_800


def distributions(tree: Path, place: Path, at_s: int) -> tuple[Path, Path]:
    """The source distribution, and the wheel that is built of it in an environment of its own;
    a wheel for this host's libc or a newer one (manylinux, musllinux) when it was compiled."""
    raw = place / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    env = os.environ | {"SOURCE_DATE_EPOCH": str(at_s)}
    command = [sys.executable, "-m", "build", "--outdir", str(raw), str(tree)]
    subprocess.run(command, check=True, env=env)
    (source,), (wheel,) = raw.glob("*.tar.gz"), raw.glob("*.whl")
    made = portable(wheel, place, env)
    settled = of_one_time(source, place / source.name, at_s)
    shutil.rmtree(raw)
    return settled, made


def of_one_time(source: Path, target: Path, at_s: int) -> Path:
    """A source distribution whose files are all of that time and of nobody in particular:
    setuptools takes both from the folder that it packs, where they say when it was cloned, and by
    whom. Returns target."""
    with (
        tarfile.open(source) as found,
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=at_s) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as made,
    ):
        for one in sorted(found, key=lambda member: member.name):
            one.mtime, one.pax_headers = at_s, {}
            one.uid = one.gid = 0
            one.uname = one.gname = ""
            made.addfile(one, found.extractfile(one) if one.isreg() else None)
    return target


def portable(wheel: Path, place: Path, env: dict[str, str]) -> Path:
    """It, moved to `place`; a compiled one by the name of the oldest libc that it runs with."""
    if "-linux_" not in wheel.name:
        return Path(shutil.move(wheel, place / wheel.name))
    tools = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', os.defpath)}"
    with TemporaryDirectory(dir=place) as folder:
        command = [sys.executable, "-m", "auditwheel", "repair", "-w", folder, str(wheel)]
        subprocess.run(command, check=True, env=env | {"PATH": tools})  # it calls patchelf
        (made,) = Path(folder).glob("*.whl")
        return Path(shutil.move(made, place / made.name))


def version_of(wheel: Path) -> str:
    """As its name says it."""
    return wheel.name.split("-")[1]


def bill_of_materials(wheel: Path, place: Path) -> Path:
    """What is in an environment into which the wheel was installed with what it needs: CycloneDX,
    as JSON."""
    there = place / "installed"
    venv.create(there, clear=True, with_pip=False)
    python = str(there / "bin/python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", str(wheel)]
    subprocess.run(pip, check=True)
    for told in there.rglob("direct_url.json"):
        told.unlink()  # where the wheel lay on this machine
    name = f"penstock-{version_of(wheel)}-{platform.machine()}.cdx.json"
    subprocess.run(
        [
            sys.executable, "-m", "cyclonedx_py", "environment", python,
            "--output-reproducible", "--of", "JSON", "-o", str(place / name),
        ],
        check=True,
    )  # fmt: skip
    shutil.rmtree(there)
    return place / name
