"""Make what others install, of this checkout: `python -m pages.release [--out DIR] [WHAT …]`.

WHAT: `wheel` (source distribution and wheel), `sbom` (CycloneDX), `deb` (Debian package); all of
them without a word. SHA256SUMS is written last.
"""

import argparse
import hashlib
from pathlib import Path

from pages.release import building, deb

TREE = Path(__file__).parents[2]
KINDS = ("wheel", "sbom", "deb")


def main() -> None:
    """Raises CalledProcessError when a tool fails: what was made until then stays."""
    parser = argparse.ArgumentParser(description="Source distribution, wheel, SBOM, package.")
    parser.add_argument("what", nargs="*", metavar="wheel|sbom|deb")
    parser.add_argument("--out", type=Path, default=TREE / "dist")
    parser.add_argument("--wheel", type=Path, help="one that is there already")
    chosen = parser.parse_args()
    place: Path = chosen.out.resolve()
    place.mkdir(parents=True, exist_ok=True)
    what = chosen.what or KINDS
    if unknown := set(what) - set(KINDS):
        parser.error(f"nobody makes {', '.join(sorted(unknown))}")
    at_s = building.epoch(TREE)
    made: list[Path] = []
    wheel = chosen.wheel
    if wheel is None:
        made += building.distributions(TREE, place, at_s)
        wheel = made[-1]
    if "sbom" in what:
        made.append(building.bill_of_materials(wheel, place))
    if "deb" in what:
        told = building.version_of(wheel)
        made.append(deb.build(wheel, told, place, at_s))
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in made]
    (place / "SHA256SUMS").write_text("\n".join([*sums, ""]))
    print("\n".join(sums))


if __name__ == "__main__":
    main()
