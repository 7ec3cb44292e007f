"""Runs stages of tests one after another and tells in the end how all of it went.

    python .ci/suite.py --alone COMMAND NAME=COMMAND [NAME=COMMAND ...]

Each COMMAND is a shell line that ends in a call of pytest. What fails runs once more, alone, with
the command of `--alone`: a test that passes then is listed as flaky, and one that fails twice fails
the run. So do tests that never ran, a stage that takes too long, and what the tests leave behind.
The last line is pytest's closing line for all stages together; those of the stages are reworded, so
that no reader takes one of them for it.
"""

import argparse
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import leftovers
from report import Outcomes, keep, print_slowest

CLOSING = re.compile(r"^=* ?((?:\d+ [a-z]+(?:, )?)+|no tests ran) in [\d.]+s( \([\d:.]+\))? ?=*$")
MOST_AGAIN = 25
"""Failed tests that run once more. With more of them, the cause is not chance."""
NO_TESTS = 5
"""Exit code of pytest: none of a choice of tests belongs to this stage."""
GRACE_S = 90
"""Time for pytest to end its processes after an interrupt, before it is killed."""
PROGRESS_S = 30
MOST_AGAIN_S = 180
"""Seconds for all tests that run once more: one that hangs again costs no more than this."""


class Suite:
    """All stages, with the time that is left and what they found."""

    def __init__(self, place: Path, limit_s: float, whole: bool = False):
        self._place = place
        self._whole = whole
        self.most_again_s = MOST_AGAIN_S
        self._end = time.monotonic() + limit_s
        self.began = time.monotonic()
        self.outcomes = Outcomes()
        self.problems: list[str] = []

    def run_stage(self, name: str, command: str, most_s: float = math.inf) -> Outcomes:
        """Runs one command of pytest within the time that is left, and most_s seconds at most;
        returns what it recorded."""
        record = self._place / f"{name}.jsonl"
        left_s = min(most_s, self._end - time.monotonic())
        if left_s < 1:
            self.problems.append(f"{name}: no time is left for it")
            return Outcomes()
        line = f"{command} --outcomes={shlex.quote(str(record))} -o session_timeout={left_s:.0f}"
        print(f"== {name}: {line}", flush=True)
        code = self._run_within(name, line, left_s, record)
        found = Outcomes.read(record)
        if code not in (0, 1, NO_TESTS):
            self.problems.append(f"{name}: pytest ended with {code}")
        elif code == 1 and not found.failed():
            self.problems.append(f"{name}: pytest ended with 1 and no test failed")
        if code == NO_TESTS and self._whole:
            self.problems.append(f"{name}: no test was run")
        if found.unfinished():
            self.problems.append(f"{name}: {len(found.unfinished())} tests did not run")
        return found

    def _run_within(self, name: str, line: str, left_s: float, record: Path) -> int:
        process = subprocess.Popen(
            ["bash", "-c", line], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        done = threading.Event()
        threads = [
            threading.Thread(target=self._copy_output, args=(name, process.stdout), daemon=True),
            threading.Thread(target=self._tell_progress, args=(name, record, done), daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            return process.wait(left_s)
        except subprocess.TimeoutExpired:
            self.problems.append(f"{name}: it took longer than the {left_s:.0f} s that were left")
            os.killpg(process.pid, signal.SIGINT)
            try:
                return process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                return -signal.SIGKILL
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            done.set()
            threads[0].join(5)  # a process that was left behind may hold the pipe open

    @staticmethod
    def _copy_output(name, output):
        for line in output:
            closing = CLOSING.match(line.rstrip())
            if closing:
                reworded = re.sub(r"(\d+) ([a-z]+)", r"\2 \1", closing[1])
                line = f"{name}: {reworded}\n"
            sys.stdout.write(line)
            sys.stdout.flush()

    def _tell_progress(self, name: str, record: Path, done: threading.Event) -> None:
        while not done.wait(PROGRESS_S):
            now = Outcomes.read(record)
            print(
                f"-- {clock(time.monotonic() - self.began)} {name}: {now.ran()} of"
                f" {len(now.collected) or '?'} tests, failed {len(now.failed())}",
                flush=True,
            )


def clock(seconds: float) -> str:
    return f"{int(seconds // 60)}:{int(seconds % 60):02}"


def run_again_alone(suite: Suite, command: str, failed: list[str]) -> list[str]:
    """Runs tests that failed once more, one at a time; returns those that passed."""
    if not failed:
        return []
    if len(failed) > MOST_AGAIN:
        print(f"== failed: {len(failed)} tests, too many to run them again")
        return []
    listed = suite._place / "failed.txt"
    listed.write_text("".join(f"{one}\n" for one in failed))
    command = f"{command} --maxfail={len(failed)} {shlex.quote(f'@{listed}')}"
    again = suite.run_stage("again", command, suite.most_again_s)
    return [one for one in failed if again.passed(one)]


def tell(suite: Suite, flaky: list[str]) -> bool:
    """Prints what matters, the closing line last. Returns whether all is well."""
    outcomes = suite.outcomes
    print_slowest(outcomes)
    flaky = flaky + outcomes.flaky_inside()
    if flaky:
        print(f"\n==== FLAKY ({len(flaky)}): they failed once and passed alone; mend them ====")
        for one in flaky:
            print(f"flaky: {one}")
    failed = [one for one in outcomes.failed() if one not in flaky]
    if failed:
        print(f"\n==== FAILED TWICE: {len(failed)} ====")
        for one in failed:
            print(f"failed: {one}")
    for problem in suite.problems:
        print(f"problem: {problem}")
    counts = outcomes.counts(flaky)
    counts["errors"] = len(suite.problems)
    if not sum(counts.values()):
        suite.problems.append("no test was run")
        print(f"problem: {suite.problems[-1]}")
        counts["errors"] = 1
    told = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    took_s = time.monotonic() - suite.began
    print(f"\n==== {told or 'no tests ran'} in {took_s:.2f}s ({clock(took_s)}) ====", flush=True)
    return not failed and not suite.problems


def end_once(number: int, frame: object) -> None:
    """Ends the suite in order; who asks twice waits for the same end."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--alone", required=True, help="command for what failed")
    parser.add_argument("--limit-s", type=float, default=4000, help="for all stages together")
    parser.add_argument(
        "--again-limit-s", type=float, default=MOST_AGAIN_S, help="for what runs once more"
    )
    parser.add_argument("--whole", action="store_true", help="each stage has to run tests")
    parser.add_argument("--problem", action="append", default=[], help="one that is known already")
    parser.add_argument("stages", nargs="+", metavar="NAME=COMMAND")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, end_once)
    temporary = Path(tempfile.mkdtemp(prefix="ci-"))
    records = Path(tempfile.mkdtemp(prefix="ci-outcomes-"))
    watch = leftovers.Watch(temporary)
    os.environ |= watch.environment()
    suite = Suite(records, options.limit_s, options.whole)
    suite.most_again_s = options.again_limit_s
    flaky: list[str] = []
    try:
        for stage in options.stages:
            name, _, command = stage.partition("=")
            suite.outcomes.add(suite.run_stage(name, command))
        if options.whole:
            keep(records.glob("*.jsonl"))
        flaky = run_again_alone(suite, options.alone, suite.outcomes.failed())
    finally:
        left = watch.find()
        watch.clean()
        shutil.rmtree(records, ignore_errors=True)
    suite.problems += options.problem
    suite.problems += [f"left behind: {one}" for one in left]
    return 0 if tell(suite, flaky) else 1


if __name__ == "__main__":
    sys.exit(main())
