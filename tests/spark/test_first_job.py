"""A data engineer's first ten minutes with a job, as commands and keys: lines of JSON become a
topic of derived rows; a preview shows them first, and the console shows the job."""

import json
import os
import subprocess
import sys

import pytest

from console.screens.places import Place
from penstock.local import Appliance
from spark_local.cause import JobError
from spark_local.engine import jars, java
from tests.console.seat import LARGE, sit, tab
from tests.console_process import rows, typing

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("java_for_a_minute")]
LIMIT_S = 240
LINES = "".join(f'{{"page": "/{n % 2}", "ms": {n}}}\n' for n in range(10))
JOB = """
sql = "SELECT page, ms FROM clicks WHERE ms >= 5"
[sources.clicks]
topic = "clicks"
schema = "page STRING, ms INT"
[sink]
topic = "slow"
key = "page"
"""


@pytest.fixture(autouse=True)
def _needs_java():
    if why := java.unavailable():
        pytest.skip(why)
    try:
        jars.fetch()
    except JobError as problem:
        pytest.skip(str(problem))


def test_a_data_engineer_derives_a_topic(tmp_path):
    jobs = str(tmp_path / "jobs")
    (tmp_path / "slow.toml").write_text(JOB)
    with Appliance(tmp_path / "data") as appliance:
        run = typing(appliance.bootstrap)

        def job(*words):
            """By a process of its own: it starts a Spark."""
            environment = os.environ | {"PENSTOCK_BOOTSTRAP": appliance.bootstrap}
            done = subprocess.run(
                [sys.executable, "-m", "console", "job", *words, "--jobs", jobs],
                env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        run("topic", "create", "clicks")
        run("produce", "clicks", stdin=LINES)
        told = job("preview", str(tmp_path / "slow.toml"), "-o", "json")
        assert sorted(one["ms"] for one in json.loads(told)) == [5, 6, 7, 8, 9]
        assert "slow" not in run("topic", "list").stdout, "a preview writes nothing"
        run("job", "add", str(tmp_path / "slow.toml"), "--jobs", jobs)
        job("run", "slow", "--once")
        written = run("consume", "slow", "-e", "-J").stdout.splitlines()
        values = [json.loads(json.loads(one)["value"]) for one in written]
        assert sorted(one["ms"] for one in values) == [5, 6, 7, 8, 9]
        (status,) = rows(run("job", "status", "slow", "--jobs", jobs, "-o", "json"))
        assert (status["state"], status["rows_in"], status["rows_out"]) == ("finished", 10, 5)

        async def act(seat):
            await seat.press(tab("jobs"))
            await seat.sees("slow", "finished")
            await seat.press("enter")
            await seat.until(lambda: seat.app.here == Place("job", "slow"))
            await seat.sees("SELECT page, ms FROM clicks")

        sit(appliance.bootstrap, act, size=LARGE, jobs=jobs)
