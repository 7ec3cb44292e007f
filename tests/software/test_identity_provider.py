"""An OpenID provider of others (oidc-provider-mock, on Authlib): tokens that it issues by the flow
with a code, and the keys that it publishes, let its users in, and nobody else."""

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from installs import python_packages

from benchmarks import kafka
from tests.broker_process import KAFKA
from tests.sasl.logged import HOST, LoggedIn

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(KAFKA, reason="what lets in is the appliance"),
]
PROVIDER = ("oidc-provider-mock==0.3.4", "authlib==1.9.10")
CALLBACK, CLIENT = "http://localhost/callback", "streams"
OWN = "listener.name.only."


class _Stay(urllib.request.HTTPRedirectHandler):
    """A redirect is the answer: it has the code."""

    def redirect_request(self, *_):
        return None


class RealProvider:
    def __init__(self, log):
        self.url = f"http://{HOST}:{kafka.free_port()}"
        port = self.url.rpartition(":")[2]
        self._process = subprocess.Popen(
            [str(python_packages(*PROVIDER)), "-W", "ignore", "-m", "oidc_provider_mock",
             "--port", port],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self._open = urllib.request.build_opener(_Stay).open
        self.found = self._wait()

    def _wait(self):
        end = time.monotonic() + 60
        while True:
            try:
                return json.loads(self.get(f"{self.url}/.well-known/openid-configuration"))
            except OSError:
                assert self._process.poll() is None and time.monotonic() < end
                time.sleep(0.05)

    def get(self, url):
        with self._open(url, timeout=30) as answer:
            return answer.read()

    def token(self, user, client=CLIENT):
        """What this user's client is given for a code."""
        asked = {"client_id": client, "redirect_uri": CALLBACK, "response_type": "code"}
        query = urllib.parse.urlencode(asked | {"scope": "openid", "state": "s"})
        form = urllib.parse.urlencode({"sub": user}).encode()
        with pytest.raises(urllib.error.HTTPError) as sent:
            self._open(f"{self.found['authorization_endpoint']}?{query}", form, timeout=30)
        assert sent.value.code == 302
        where = urllib.parse.urlsplit(sent.value.headers["Location"])
        sent.value.close()
        (code,) = urllib.parse.parse_qs(where.query)["code"]
        wanted = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK}
        secret = {"client_id": client, "client_secret": "any"}
        form = urllib.parse.urlencode(wanted | secret).encode()
        with self._open(self.found["token_endpoint"], form, timeout=30) as answer:
            return json.loads(answer.read())["id_token"]

    def end(self):
        self._process.terminate()
        self._process.wait(30)


@pytest.fixture
def provider(tmp_path):
    with (tmp_path / "provider.out").open("wb") as log:
        one = RealProvider(log)
        yield one
        one.end()


def admin(broker, token):
    given = {"bootstrap.servers": broker.at("ONLY"), "security.protocol": "SASL_PLAINTEXT"}
    given |= {"sasl.mechanism": "OAUTHBEARER", "log_level": 0}
    return AdminClient(given | {"oauth_cb": lambda _: (token, time.time() + 300)})


def test_its_users_are_let_in_by_its_published_keys(provider, tmp_path):
    keys = tmp_path / "keys.json"
    keys.write_bytes(provider.get(provider.found["jwks_uri"]))
    settings = {
        f"{OWN}sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{OWN}oauthbearer.sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        f"{OWN}oauthbearer.sasl.oauthbearer.expected.audience": CLIENT,
        f"{OWN}oauthbearer.sasl.oauthbearer.expected.issuer": provider.found["issuer"],
    }
    with LoggedIn(tmp_path / "data", settings) as broker:
        assert admin(broker, provider.token("alice")).list_topics(timeout=30).brokers
        broken = provider.token("alice")[:-6] + "AAAAAA"
        for refused in (provider.token("alice", "others"), broken):
            with pytest.raises(KafkaException):
                admin(broker, refused).list_topics(timeout=3)
    assert "login-failed" in broker.output()
