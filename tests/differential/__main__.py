"""python -m tests.differential: play scripts on Apache Kafka and on the appliance, compare.

python -m tests.differential                     everything; exit status 1 when something differs
python -m tests.differential Metadata fetch_     scripts of an API, or whose name begins so
python -m tests.differential --list              the scripts
python -m tests.differential --table             what differs on purpose, as docs print it
python -m tests.differential --keep              start both brokers and print how to reach them
python -m tests.differential --rights [Metadata]  every API as users with different rights, or one
python -m tests.differential --as nobody [Metadata]  every script as who may do nothing, or all
python -m tests.differential --ours HOST:PORT --kafka HOST:PORT   on one that runs already, or both
"""

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import kafka
from tests.differential import registry, table
from tests.differential.rights import plays, whole
from tests.differential.rights.brokers import secured
from tests.differential.run import both, run


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stop what was started then, too
    options = _options()
    scripts = plays.scripts() if options.rights else registry.load()
    if options.as_:
        scripts = whole.scripts(scripts, options.as_)
    if options.only:
        scripts = [s for s in scripts if s.api in options.only or s.name.startswith(options.only)]
    if options.list:
        return print("\n".join(f"{one.api:28}{one.name}" for one in scripts))
    if options.table:
        return print(table.markdown(table.read()), end="")
    if options.kafka is None and (reason := kafka.unavailable()):
        sys.exit(reason)
    with tempfile.TemporaryDirectory() as folder, _started(options, Path(folder)) as targets:
        if options.keep:
            return _keep(targets)
        return _report(options, scripts, targets)


def _started(options, folder):
    if options.as_:
        return whole.ruled(folder, options.as_)
    return secured(folder) if options.rights else both(folder, options.ours, options.kafka)


def _options():
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("only", nargs="*", help="names of APIs, or beginnings of scripts' names")
    parser.add_argument("--verbose", action="store_true", help="say which script is played when")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--rights", action="store_true", help="as users with different rights")
    parser.add_argument(
        "--as", dest="as_", choices=("allowed", "nobody"), help="as who may do all, or nothing"
    )
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--ours", metavar="HOST:PORT[:FOLDER]")
    parser.add_argument("--kafka", metavar="HOST:PORT[:FOLDER]")
    options = parser.parse_args()
    options.only = tuple(options.only)
    return options


def _keep(targets):
    ours, theirs = (f"{t.address[0]}:{t.address[1]}:{t.folder}" for t in targets)
    print(f"--ours {ours} --kafka {theirs}", flush=True)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        return None


def _report(options, scripts, targets):
    started = time.monotonic()

    def tell(script, version):
        if options.verbose:
            print(f"{time.monotonic() - started:6.1f} {script.name} v{version}", flush=True)

    entries = table.of_rights() if options.rights else table.of_scripts()
    if options.as_ == "nobody":
        entries = table.of_nobody()
    every = not options.only and not options.as_
    report = run(scripts, targets, entries, every, tell)
    print(report)
    print(f"{time.monotonic() - started:.0f} s")
    sys.exit(not report.good)


if __name__ == "__main__":
    main()
