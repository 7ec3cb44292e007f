"""Client files of jobs: librdkafka's words in Java's, and no secret in an option of Spark's."""

import stat
from dataclasses import replace

import pytest

from appliance.authentication.jaas import parse as parse_jaas
from appliance.config.properties import parse_properties
from spark_local.cause import JobError
from spark_local.client_settings import ClientSettings, escaped, java_properties
from tests.tls_front import Authority

LOGIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": 'o"mar',
    "sasl.password": 's3cr3t \\ "ö𝄞',
}


def read(file):
    return {key: value for key, value, _ in parse_properties(file.read_text())}


def test_the_options_of_spark_name_lines_of_a_file_that_others_cannot_read(tmp_path):
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")
    told = LOGIN | {"ssl.ca.location": str(tmp_path / "ca.pem"), "bootstrap.servers": "other:1"}
    kafka = ClientSettings.of("host:9093", told).written(tmp_path)
    options = kafka.spark()
    assert options["kafka.bootstrap.servers"] == "host:9093"
    assert options["kafka.security.protocol"] == "SASL_SSL"
    assert "s3cr3t" not in repr(options) + repr(kafka)
    file = tmp_path / "kafka.properties"
    assert options["kafka.sasl.jaas.config"] == f"${{file:{file}:sasl.jaas.config}}"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = read(file)
    login = parse_jaas(found["sasl.jaas.config"])
    assert login.options == {"username": LOGIN["sasl.username"], "password": LOGIN["sasl.password"]}
    assert found["ssl.truststore.certificates"] == (tmp_path / "ca.pem").read_text().strip()
    assert kafka.librdkafka(group_id="g")["sasl.password"] == LOGIN["sasl.password"]


def test_a_login_by_tokens_is_javas(tmp_path):
    said = {
        "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.client.id": "etl", "sasl.oauthbearer.client.secret": 's3cr3t"x',
        "sasl.oauthbearer.token.endpoint.url": "https://login/token",
        "https.ca.location": str(tmp_path / "ca.pem"),
    }  # fmt: skip
    kafka = ClientSettings.of("host:9093", said).written(tmp_path)
    assert "s3cr3t" not in repr(kafka.spark())
    found = read(tmp_path / "kafka.properties")
    login = parse_jaas(found["sasl.jaas.config"])
    assert login.module.endswith(".OAuthBearerLoginModule")
    assert login.options == {
        "clientId": "etl", "clientSecret": 's3cr3t"x', "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
    }  # fmt: skip
    assert found["sasl.oauthbearer.token.endpoint.url"] == "https://login/token"
    assert found["sasl.login.callback.handler.class"].endswith(".OAuthBearerLoginCallbackHandler")
    with pytest.raises(JobError, match="has no sasl"):
        java_properties({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"})


def test_a_link_where_the_file_goes_is_replaced_and_not_followed(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("as it was")
    (tmp_path / "kafka.properties").symlink_to(elsewhere)
    ClientSettings.of("h:1", LOGIN | {"security.protocol": "SASL_PLAINTEXT"}).written(tmp_path)
    assert elsewhere.read_text() == "as it was"
    assert not (tmp_path / "kafka.properties").is_symlink()


def test_without_tls_and_login_nothing_is_written(tmp_path):
    kafka = ClientSettings("host:9092")
    assert kafka.written(tmp_path).spark() == {"kafka.bootstrap.servers": "host:9092"}
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(AssertionError):
        replace(kafka, properties=(("security.protocol", "SSL"),)).spark()


def test_a_certificate_of_the_client_is_what_java_reads(tmp_path):
    cert, key, _ = Authority(tmp_path).certificate("client", "127.0.0.1")
    told = {
        "security.protocol": "ssl", "ssl.ca.location": str(cert),
        "ssl.certificate.location": str(cert), "ssl.key.location": str(key),
        "ssl.endpoint.identification.algorithm": "none",
    }  # fmt: skip
    found = java_properties(told)
    assert found["security.protocol"] == "SSL"
    assert "-----BEGIN PRIVATE KEY-----" in found["ssl.keystore.key"]
    assert "-----BEGIN CERTIFICATE-----" in found["ssl.keystore.certificate.chain"]
    assert found["ssl.endpoint.identification.algorithm"] == ""


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism=GSSAPI"),
        ({"ssl.ca.location": "/no/such"}, "ssl.ca.location=/no/such cannot be read"),
        ({"enable.ssl.certificate.verification": "false"}, "verify the broker's certificate"),
        (
            {"ssl.certificate.pem": "x", "ssl.key.pem": "no key"},
            "the key of ssl.key.location cannot be used",
        ),
    ],
)
def test_what_java_cannot_use_is_told_by_its_name(wrong, said):
    with pytest.raises(JobError, match=said):
        java_properties(LOGIN | wrong)


@pytest.mark.parametrize("text", [" a", "a\\b", "a\nb\rc", "ö𝄞", "#=:!", ""])
def test_a_value_is_read_back_as_it_was(text):
    ((_, found, _),) = parse_properties(f"key={escaped(text)}\n")
    assert found == text
