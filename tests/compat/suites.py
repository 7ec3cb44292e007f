"""Running a client's own suite in a process of its own."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree


def results(where, folder, tests, chosen="test", plugins=(), **environment):
    """Name of each test that the expression chooses → passed, failure, error or skipped; why.

    where: the suite's folder, in which its `tests` are named. folder: for what it leaves behind.
    environment: variables that the suite reads."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", *tests, "-q", "--tb=short"]
    command += ["-p", "no:cacheprovider", "--timeout=60", "--timeout-method=signal"]
    command += [f"--junitxml={report}", "-k", chosen]
    for plugin in plugins:
        command += ["-p", plugin]
    variables = os.environ | environment
    variables.pop("PYTEST_ADDOPTS", None)
    subprocess.run(
        command, cwd=where, env=variables, stdin=subprocess.DEVNULL, timeout=300, check=False
    )
    seen = {}
    for case in ElementTree.parse(report).iter("testcase"):
        verdict = next(
            (child for child in case if child.tag in ("failure", "error", "skipped")), None
        )
        kind = "passed" if verdict is None else verdict.tag
        seen[case.get("name")] = (kind, "" if verdict is None else verdict.get("message", ""))
    return seen
