"""python -m benchmarks guard: is this checkout slower than a commit before it?

    python -m benchmarks guard [--against HEAD~1] [--rounds 8] [--interpreted] [--rows 'p*' f64k]

Both are installed as `pip install .` leaves them, then measured in alternation: the checkout once
and the commit twice in each round, every time a fresh appliance. How much the two runs of the
commit differ is the noise; a row fails when the checkout loses more than that, and more than 3 %.
About five minutes after the two installations. Ends with 1 upon a loss.
"""

import argparse
import contextlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import machine, procstat, raw, tables
from benchmarks.compare import compiled
from benchmarks.compare.command import load
from benchmarks.compare.systems import System
from benchmarks.losses import Round, Verdict, judge
from benchmarks.peer import Peer
from benchmarks.startup import byte_compile

SEATS = ("new", "old", "again")
ROWS = ("p1x100-1", "p1x100-5", "p16x1k-5", "p64x1k-5", "p1x100-5c8", "f64k", "f1m")
WARM_S = 1.0
FIGURES = {"requests_s": True, "cpu_us": False, "first_answer_s": False, "pss_mb": False}
"""What is compared, and whether more of it is better."""
FIGURES_OF_A_ROW = ("requests_s", "cpu_us")
Found = dict[tuple[str, str], dict[str, list[float]]]
"""(row, figure) → seat → its value in each round."""


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks guard", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--against", default="HEAD~1", metavar="COMMIT")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.6, help="of one measurement")
    parser.add_argument("--rows", nargs="+", default=list(ROWS), help="names or shell patterns")
    parser.add_argument("--interpreted", action="store_true", help="compile nothing")
    parser.add_argument("--data", type=Path, help="where the appliances put their files")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("--rounds and --seconds must be above zero")
    return options


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    names = raw.choose(options.rows)
    if not names:
        raise SystemExit(f"no row matches {options.rows}; rows: {' '.join(raw.ROWS)}")
    with tempfile.TemporaryDirectory(prefix="benchmarks-guard-", dir=options.data) as folder:
        place = Path(folder)
        trees = build_trees(place, options.against, interpreted=options.interpreted)
        print(f"load {load()}, a wake-up {machine.measure_wake_up_us():.0f} µs", file=sys.stderr)
        found: Found = {}
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
            measure_round(place, trees, names, options.seconds, number, found)
    verdicts = {key: judge_figure(key[1], seats) for key, seats in found.items()}
    print(show(found, verdicts))
    lost = [" ".join(key) for key, verdict in verdicts.items() if verdict.word == "loss"]
    if lost:
        raise SystemExit(f"slower than {options.against}: {', '.join(lost)}")


def build_trees(place: Path, commit: str, *, interpreted: bool) -> dict[str, Path]:
    """What each seat runs. Raises SystemExit with what git or the compiler said."""
    source = place / "commit"
    archive = ["git", "archive", "--format=tar", commit]
    done = subprocess.run(archive, cwd=compiled.ROOT, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"--against {commit}: {done.stderr.decode(errors='replace').strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as files:
        files.extractall(source, filter="data")
    roots = {"new": compiled.ROOT, "old": source}
    trees = dict(roots)
    if not interpreted:
        for seat, root in roots.items():
            (place / seat).mkdir()
            trees[seat] = compiled.build(place / seat, root)
    for tree in trees.values():
        byte_compile(tree)
    return {**trees, "again": trees["old"]}


def measure_round(
    place: Path, trees: dict[str, Path], names: list[str], seconds: float, number: int, found: Found
) -> None:
    """Starts the three side by side and loads one at a time. Raises SystemExit upon a wrong answer:
    a build that fails is not compared."""
    turn = number % len(SEATS)
    order = SEATS[turn:] + SEATS[:turn]
    with contextlib.ExitStack() as stack:
        peers = []
        for seat in order:
            system = stack.enter_context(fresh(place, trees[seat]))
            begun = time.monotonic()
            system.start()
            note(found, "start", "first_answer_s", seat, time.monotonic() - begun)
            note(found, "start", "pss_mb", seat, procstat.memory(system.pid).pss / 1e6)
            peers.append(Peer(seat, system.peer.address, system.pid))
        raw.warm(peers, WARM_S)
        for row in raw.measure(peers, names, seconds, 1):
            for cell in row:
                if cell.failure:
                    raise SystemExit(f"{cell.row} on the {cell.peer.name} build: {cell.failure}")
                for figure in FIGURES_OF_A_ROW:
                    note(found, cell.row, figure, cell.peer.name, cell.column(figure)[0])


def note(found: Found, row: str, figure: str, seat: str, value: float) -> None:
    found.setdefault((row, figure), {}).setdefault(seat, []).append(value)


@contextlib.contextmanager
def fresh(place: Path, tree: Path) -> Iterator[System]:
    """An appliance of this tree in an empty folder, not started; stopped and removed at the end."""
    folder = Path(tempfile.mkdtemp(dir=place, prefix="data-"))
    system = System("penstock", "D1", folder, tree)
    try:
        yield system
    finally:
        system.stop()
        shutil.rmtree(folder, ignore_errors=True)


def judge_figure(figure: str, seats: dict[str, list[float]]) -> Verdict:
    rounds = [Round(*values) for values in zip(*(seats[seat] for seat in SEATS), strict=True)]
    return judge(rounds, more_is_better=FIGURES[figure])


def show(found: Found, verdicts: dict[tuple[str, str], Verdict]) -> str:
    rows = []
    for (row, figure), verdict in verdicts.items():
        seats = found[row, figure]
        rows.append([
            row, figure, tables.spread(seats["old"] + seats["again"]), tables.spread(seats["new"]),
            f"{verdict.ratio:.3f}", f"±{verdict.limit:.1%}", verdict.word,
        ])  # fmt: skip
    head = ["row", "figure", "commit", "checkout", "ratio", "by chance", ""]
    return tables.render(head, rows, markdown=False, left=2)
