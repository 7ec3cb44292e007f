"""python -m benchmarks compare …, guard …, or --broker HOST:PORT --pid PID [--against …]"""

import argparse
import platform
import sys
import tempfile
from pathlib import Path

from benchmarks import guard, raw
from benchmarks.bare import BarePeer
from benchmarks.compare import command
from benchmarks.peer import Peer

EXAMPLES = "rows: " + " ".join(raw.ROWS)


def address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", epilog=EXAMPLES,
        description="Load a broker with raw requests, in turn with the machine's own limits.",
    )  # fmt: skip
    parser.add_argument("--broker", type=address, required=True, metavar="HOST:PORT")
    parser.add_argument("--pid", type=int, help="root of its process tree, to account CPU")
    parser.add_argument("--name", default="penstock")
    parser.add_argument(
        "--against", type=address, metavar="HOST:PORT", help="a second one, in turn"
    )
    parser.add_argument("--against-pid", type=int)
    parser.add_argument("--against-name", default="kafka")
    parser.add_argument("--rows", nargs="+", default=["*"], help="names or shell patterns")
    parser.add_argument("--seconds", type=float, default=3, help="per measurement")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--warm", type=float, default=6, help="seconds of load before it counts")
    parser.add_argument("--no-bare", action="store_true", help="leave the machine's own limits out")
    parser.add_argument(
        "--touched", action="store_true", help="also the bare loop over touched pages"
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()),
                        help="file system for the bare loops; choose the broker's own")  # fmt: skip
    parser.add_argument("--markdown", action="store_true")
    return parser.parse_args()


def main() -> None:
    if sys.argv[1:2] == ["compare"]:
        command.main(sys.argv[2:])
        return
    if sys.argv[1:2] == ["guard"]:
        guard.main(sys.argv[2:])
        return
    options = parse()
    names = raw.choose(options.rows)
    if not names:
        raise SystemExit(f"no row matches {options.rows}; {EXAMPLES}")
    peers = [Peer(options.name, options.broker, options.pid)]
    if options.against:
        peers.append(Peer(options.against_name, options.against, options.against_pid))
    raw.warm(peers, options.warm)
    loops = []
    if not options.no_bare:
        loops.append(BarePeer("bare loop", options.folder))
    if options.touched:
        loops.append(BarePeer("bare, touched pages", options.folder, touched=True))
    try:
        table = raw.measure([*peers, *loops], names, options.seconds, options.repeat)
    finally:
        for loop in loops:
            loop.close()
    print(f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
          f"{options.seconds:g} s × {options.repeat}: median (range)\n")  # fmt: skip
    print(raw.report(table, markdown=options.markdown))
    if not options.no_bare:
        print()
        limits = raw.durable(options.folder, min(1.0, options.seconds), options.repeat,
                             markdown=options.markdown)  # fmt: skip
        print(limits)


if __name__ == "__main__":
    main()
