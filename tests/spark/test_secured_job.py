"""A job whose clients log in over TLS, as a user that may do what `--can job:NAME` allows: exactly
once, with a dead letter, and without its password anywhere but in two files."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.config.properties import parse_properties
from benchmarks import kafka
from console.model.secure import server_settings
from penstock.local import Appliance
from tests.spark.conftest import JAVA_FOR_A_MINUTE, reason

pytestmark = pytest.mark.timeout(400)
LIMIT_S = 180
JOB = """
name = "totals"
sql = "SELECT n, n * 2 AS twice FROM numbers"
trigger = "once"
client_config = "etl.properties"
[sources.numbers]
topic = "numbers"
schema = "n INT"
[sink]
topic = "doubled"
key = ["n"]
delivery = "exactly-once"
"""


def penstock(place, *words, code=0, stdin=""):
    done = subprocess.run(
        [sys.executable, "-m", "console", *words], cwd=place, input=stdin,
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def properties(path):
    return {key: value for key, value, _ in parse_properties(Path(path).read_text())}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with an appliance that asks for logins, `admin.properties` and `etl.properties`."""
    if why := reason():
        pytest.skip(why)
    at = tmp_path_factory.mktemp("secured-job")
    port = str(kafka.free_ports(server_settings.PORTS))
    penstock(at, "secure", "init", "--host", "localhost", "--port", port)
    (at / "admin.properties").symlink_to("penstock-secure/clients/admin/client.properties")
    with Appliance(at / "data", properties(at / "penstock-secure/server.properties")):
        admin = ("--command-config", "admin.properties")
        penstock(at, "topic", "create", "numbers", "doubled", *admin)
        rights = ("--can", "read:numbers", "--can", "write:doubled", "--can", "job:totals")
        told = penstock(at, "user", "add", "etl", *rights, *admin)
        (at / "etl.properties").write_text(told)
        records = "".join(json.dumps({"n": n}) + "\n" for n in range(20)) + "no JSON\n"
        penstock(at, "produce", "numbers", *admin, stdin=records)
        yield at


def test_a_job_logs_in_and_nothing_tells_its_password(place, monkeypatch):
    monkeypatch.setenv("JDK_JAVA_OPTIONS", JAVA_FOR_A_MINUTE)
    (place / "totals.toml").write_text(JOB)
    words = ("totals.toml", "--jobs", "jobs", "-b", "localhost:1")
    penstock(place, "job", "run", *words, "--memory", "512m", "--once")
    admin = ("--command-config", "admin.properties", "-e")
    rows = penstock(place, "consume", "doubled", *admin)
    assert sorted(json.loads(line)["twice"] for line in rows.splitlines()) == [*range(0, 40, 2)]
    assert penstock(place, "consume", "totals.dlq", *admin).strip() == "no JSON"
    password = properties(place / "etl.properties")["sasl.password"]
    holders = {
        str(one.relative_to(place))
        for one in place.rglob("*")
        if one.is_file() and password.encode() in one.read_bytes()
    }
    assert holders == {"etl.properties", "jobs/totals/kafka.properties"}
    plan = penstock(place, "job", "explain", *words, "--memory", "512m")
    assert password not in plan and re.search("doubled|twice", plan)


def test_a_user_without_the_right_is_told_which_one_is_missing(place):
    text = JOB.replace("totals", "others").replace("etl.properties", "./etl.properties")
    (place / "others.toml").write_text(text)
    from spark_local.engine import causes
    from spark_local.engine.clients import ClientError

    told = causes.translate(ClientError("GROUP_AUTHORIZATION_FAILED: not yours"), "others")
    assert "consumer group" in told.problem and "--can job:others" in told.remedy
