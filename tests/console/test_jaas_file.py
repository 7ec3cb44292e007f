"""A JAAS file in KAFKA_OPTS is not read, and a start with logins says so by its name."""

import os
import subprocess

import pytest

from appliance.config.load import load
from console.model.jaas_file import jaas_warnings
from penstock.local import OURSELVES

OPTIONS = {"KAFKA_OPTS": "-Xmx1g -Djava.security.auth.login.config=/etc/kafka/jaas.conf -Da=b"}
LOGINS = {
    "listeners": "SASL_PLAINTEXT://localhost:1",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
}


@pytest.mark.parametrize(
    ("settings", "environ", "told"),
    [
        (LOGINS, OPTIONS, "listener.name.sasl_plaintext.MECHANISM.sasl.jaas.config"),
        (LOGINS, {"KAFKA_OPTS": "-Xmx1g"}, None),
        (LOGINS, {}, None),
        ({"listeners": "PLAINTEXT://localhost:1"}, OPTIONS, None),
    ],
)
def test_it_is_told_where_it_would_matter(settings, environ, told):
    found = jaas_warnings(load(None, settings)[0], environ)
    assert [told in one and "/etc/kafka/jaas.conf" in one for one in found] == [True] * bool(told)


def test_a_start_says_it(tmp_path):
    words = [word for key, value in LOGINS.items() for word in ("-o", f"{key}={value}")]
    done = subprocess.run(
        [*OURSELVES, "up", "--data", str(tmp_path / "data"), "--check", *words],
        env=os.environ | OPTIONS, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "KAFKA_OPTS names the JAAS file /etc/kafka/jaas.conf" in done.stderr
