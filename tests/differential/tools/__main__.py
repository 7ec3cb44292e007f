"""python -m tests.differential.tools: run Kafka's tools on both brokers, compare what they print.

python -m tests.differential.tools                   everything; exit status 1 if one differs
python -m tests.differential.tools topics configs.of scripts whose name begins so
python -m tests.differential.tools --list            the scripts
python -m tests.differential.tools --table           what differs on purpose, as docs print it
Brokers that run already (`python -m tests.differential --keep`): --ours HOST:PORT:FOLDER --kafka …
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import kafka
from tests.differential import table
from tests.differential.run import both
from tests.differential.scene import Target
from tests.differential.tools.play import SCRIPTS, TABLE, play


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential.tools", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("only", nargs="*", help="beginnings of scripts' names")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--ours", metavar="HOST:PORT:FOLDER")
    parser.add_argument("--kafka", metavar="HOST:PORT:FOLDER")
    options = parser.parse_args()
    names = [name for name in SCRIPTS if name.startswith(tuple(options.only) or "")]
    if options.list:
        return print("\n".join(names))
    if options.table:
        return print(table.markdown(table.read(TABLE)), end="")
    if reason := kafka.unavailable():
        sys.exit(reason)
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "files"
        if options.ours:
            found = [_target("penstock", options.ours), _target("kafka", options.kafka)]
            return _report(names, found, files)
        with both(Path(folder)) as found:
            return _report(names, found, files)


def _target(name, text):
    host, port, folder = text.split(":", 2)
    return Target(name, (host, int(port)), folder)


def _report(names, targets, files):
    started = time.monotonic()
    report = play(names, targets, files)
    print(report)
    print(f"{time.monotonic() - started:.0f} s")
    sys.exit(not report.good)


if __name__ == "__main__":
    main()
