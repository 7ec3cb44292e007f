"""A JAAS file that the settings or KAFKA_OPTS name is read where settings are, and only as far as
it matters."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from appliance.authentication.jaas import PLAIN_MODULE
from appliance.base.errors import ConfigError
from console.model.access.jaas_file import of_jaas_file
from penstock.local import OURSELVES

FILE, TEXT = "penstock.sasl.jaas.file", "penstock.sasl.jaas.text"
SECTIONS = f'KafkaServer {{\n  {PLAIN_MODULE} required user_alice="${{secret}}";\n}};\n'
LOGINS = {
    "listeners": "SASL_PLAINTEXT://localhost:1",
    "sasl.enabled.mechanisms": "PLAIN",
}
OWN = {
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_a="b";'
}
PLAINTEXT = {"listeners": "PLAINTEXT://localhost:1"}


@pytest.fixture
def file(tmp_path):
    found = tmp_path / "jaas file.conf"
    found.write_text(SECTIONS)
    return found


@pytest.fixture
def spelt(tmp_path):
    """Without blanks: KAFKA_OPTS is split at them."""
    found = tmp_path / "jaas.conf"
    found.write_text(SECTIONS)
    return str(found)


def options(path, *more):
    words = ["-Xmx1g", "-Djava.security.auth.login.config=/none", *more]
    return {"KAFKA_OPTS": " ".join([*words, f"-Djava.security.auth.login.config={path}", "-Dx=y"])}


@pytest.mark.parametrize("before", ["", "=", "file:", "file://"])
def test_of_kafka_opts_the_last_word_counts(spelt, before):
    found = of_jaas_file(None, LOGINS, options(before + spelt, "-Dsecret=s3cret"))
    assert found == {FILE: spelt, TEXT: SECTIONS.replace("${secret}", "s3cret")}


def test_the_setting_comes_before_kafka_opts(spelt, file):
    found = of_jaas_file(f"{FILE}={file}\n", LOGINS, options("/none"))
    assert found == {TEXT: SECTIONS}
    assert of_jaas_file(None, LOGINS | {TEXT: SECTIONS}, options(spelt)) == {}


def test_where_nobody_needs_it_kafka_opts_disturbs_nobody(spelt):
    assert of_jaas_file(None, LOGINS, {"KAFKA_OPTS": "-Xmx1g"}) == {}
    more = ["-Dsecret=x"]
    for settings in (LOGINS | OWN, PLAINTEXT):
        assert of_jaas_file(None, settings, options("/none")) == {FILE: "/none"}
        assert TEXT in of_jaas_file(None, settings, options(spelt, *more))  # for one opened later
        with open(spelt, "a") as broken:
            broken.write("a b")
        assert TEXT not in of_jaas_file(None, settings, options(spelt, *more))
        Path(spelt).write_text(SECTIONS)


@pytest.mark.parametrize(
    ("text", "overrides", "environ", "words"),
    [
        (
            None,
            LOGINS,
            options("/none"),
            "KAFKA_OPTS: java.security.auth.login.config=/none cannot",
        ),
        (f"a=b\n{FILE}=/none", LOGINS, {}, f"the file, line 2: {FILE}=/none cannot be read: No "),
        (None, LOGINS | {FILE: "/"}, {}, f"^{FILE}=/ cannot be read"),
        (None, LOGINS | {FILE: "/x", TEXT: "x"}, {}, f"{FILE}: {TEXT} is set, too"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_by_who_names_it(text, overrides, environ, words):
    with pytest.raises(ConfigError, match=words):
        of_jaas_file(text, overrides, environ)


def check(words, environ, *settings):
    return subprocess.run(
        [*OURSELVES, *words, *settings], env=os.environ | environ, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


def test_lint_sees_kafka_opts_and_the_file(tmp_path, spelt):
    settings = tmp_path / "server.properties"
    settings.write_text("".join(f"{key}={value}\n" for key, value in LOGINS.items()))
    lint = ["config", "lint", str(settings), "-o", "json"]
    done = check(lint, options(spelt, "-Dsecret=x"))
    assert (done.returncode, json.loads(done.stdout)) == (0, [])
    done = check(lint, options(spelt))
    (row,) = json.loads(done.stdout)
    assert done.returncode == 4 and row["level"] == "error"
    assert f"{spelt}, line 2: unable to expand property secret" in row["message"]
    done = check(lint, options("/none"))
    (row, _) = json.loads(done.stdout)
    assert done.returncode == 4 and "KAFKA_OPTS" in row["message"] and "/none" in row["message"]


def test_what_kafka_opts_says_to_a_jvm_alone_is_told(tmp_path, spelt):
    settings = tmp_path / "server.properties"
    settings.write_text("node.id=1\n")
    said = ["-Djavax.net.ssl.trustStore=/t", "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=x"]
    done = check(["config", "lint", str(settings), "-o", "json"], {"KAFKA_OPTS": " ".join(said)})
    told = [row["message"] for row in json.loads(done.stdout)]
    assert [one for one in told if "-Djavax.net.ssl.trustStore has no effect here" in one]
    assert [one for one in told if "sasl.oauthbearer.allowed.urls has no effect here" in one]
    done = check(["up", "--data", str(tmp_path / "d"), "--check"], {"KAFKA_OPTS": said[0]})
    assert "warning: KAFKA_OPTS: -Djavax.net.ssl.trustStore has no effect here" in done.stderr


def test_a_start_is_refused_with_the_files_line(tmp_path, spelt):
    words = [word for key, value in LOGINS.items() for word in ("-o", f"{key}={value}")]
    up = ["up", "--data", str(tmp_path / "data"), "--check", *words]
    done = check(up, options(spelt))
    assert done.returncode != 0 and f"KAFKA_OPTS: {spelt}, line 2: unable" in done.stderr
    assert check(up, options(spelt, "-Dsecret=x")).returncode == 0
