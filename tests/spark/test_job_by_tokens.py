"""A job whose clients log in by OAUTHBEARER: source, sink and dead letters with tokens that they
fetch themselves, and the secret for them in nothing but two files."""

import json

import pytest

from benchmarks import kafka
from penstock.local import Appliance
from tests.sasl.provider import AUDIENCE, ISSUER, Served
from tests.spark.conftest import JAVA_FOR_A_MINUTE, reason
from tests.spark.test_secured_job import JOB, penstock

pytestmark = pytest.mark.timeout(400)
SECRET = "canary-of-a-job-5d1e"


@pytest.fixture
def provider():
    served = Served()
    served.clients["etl"] = SECRET
    yield served
    served.close()


def test_a_job_logs_in_by_tokens_and_nothing_tells_its_secret(tmp_path, provider, monkeypatch):
    if why := reason():
        pytest.skip(why)
    monkeypatch.setenv("JDK_JAVA_OPTIONS", JAVA_FOR_A_MINUTE)
    keys = tmp_path / "keys.json"
    keys.write_bytes(provider.jwks())
    plain, own = kafka.free_port(), kafka.free_port()
    settings = {
        "listeners": f"PLAINTEXT://localhost:{plain},SASL_PLAINTEXT://localhost:{own}",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
    }
    (tmp_path / "etl.properties").write_text(
        f"bootstrap.servers=localhost:{own}\nsecurity.protocol=SASL_PLAINTEXT\n"
        "sasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.method=oidc\n"
        f"sasl.oauthbearer.client.id=etl\nsasl.oauthbearer.client.secret={SECRET}\n"
        f"sasl.oauthbearer.token.endpoint.url={provider.token_url}\n"
    )
    (tmp_path / "totals.toml").write_text(JOB)
    at = ("-b", f"localhost:{plain}")
    with Appliance(tmp_path / "data", settings):
        penstock(tmp_path, "topic", "create", "numbers", "doubled", *at)
        records = "".join(json.dumps({"n": n}) + "\n" for n in range(20)) + "no JSON\n"
        penstock(tmp_path, "produce", "numbers", *at, stdin=records)
        words = ("totals.toml", "--jobs", "jobs", "-b", "localhost:1", "--memory", "512m")
        penstock(tmp_path, "job", "run", *words, "--once")
        rows = penstock(tmp_path, "consume", "doubled", *at, "-e").splitlines()
        assert sorted(json.loads(line)["twice"] for line in rows) == [*range(0, 40, 2)]
        assert penstock(tmp_path, "consume", "totals.dlq", *at, "-e").strip() == "no JSON"
        plan = penstock(tmp_path, "job", "explain", *words)
        audit = penstock(tmp_path, "audit", "--data", "data", "--who", "etl", "-o", "json")
    assert SECRET not in plan + audit and '"OAUTHBEARER"' in audit
    files = [one for one in tmp_path.rglob("*") if one.is_file()]
    holders = {one.name for one in files if SECRET.encode() in one.read_bytes()}
    assert holders == {"etl.properties", "kafka.properties"}
