"""Logins of a JAAS file: whose section holds for a listener, and what is told of a file that cannot
be used."""

import pytest

from appliance.authentication.jaas import OAUTH_MODULE, PLAIN_MODULE, SCRAM_MODULE
from appliance.base.errors import ConfigError
from appliance.config import node_logins
from appliance.config.logins import of_listener
from appliance.config.setting import PASSWORD
from appliance.config.settings_reload import changes_at_once, compare
from tests.config.loading import load
from tests.config.test_node_logins import WHOLE

LISTENERS = {
    "listeners": "PLAINTEXT://:0,A_B://:1,B://:2,C://:3",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,A_B:SASL_PLAINTEXT,B:SASL_PLAINTEXT,"
    "C:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "listener.name.c.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_key="k3y";',
}
FILE = f"""
KafkaServer {{
    {SCRAM_MODULE} required;
    {PLAIN_MODULE} required username="node" password="n0de" user_all="s3cret";
    {PLAIN_MODULE} required user_all="later" user_more="m0re";
}};
a_b.KafkaServer {{ {PLAIN_MODULE} required user_own="0wn"; }};
Client {{ com.example.Elsewhere required; }};
"""
OWN = WHOLE | {"listener.name.controller.sasl.enabled.mechanisms": "PLAIN"}
NAMED = {"penstock.sasl.jaas.file": "/j.conf"}


def given(text, settings=LISTENERS):
    return load(None, {**settings, **NAMED}, environment={"penstock.sasl.jaas.text": text})


def test_a_listeners_section_comes_before_that_of_all_and_a_setting_before_both():
    config, told = given(FILE)
    users = {name: of_listener(config, name).users for name in ("A_B", "B", "C")}
    assert told == []
    assert users == {
        "A_B": {"own": "0wn"},
        "B": {"all": "s3cret", "more": "m0re"},
        "C": {"key": "k3y"},
    }
    changed = config.over({"listener.name.b.plain.sasl.jaas.config": f"{PLAIN_MODULE} required;"})
    assert of_listener(changed, "B").users is None


def test_nodes_log_in_by_it():
    settings = {key: value for key, value in WHOLE.items() if not key.endswith("jaas.config")}
    text = f"""KafkaServer {{ {PLAIN_MODULE} required username="n" password="p" user_n="p";
    {SCRAM_MODULE} required username="s" password="q"; }};"""
    config, _ = given(text, settings)
    found = [node_logins.credentials(config, *way) for way in node_logins.routes(config)]
    assert {(one.mechanism, one.user, one.password) for one in found} == {
        ("PLAIN", "n", "p"), ("SCRAM-SHA-512", "s", "q"),
    }  # fmt: skip
    assert node_logins.needs_file(config) and not node_logins.needs_file(load(None, OWN)[0])
    with pytest.raises(ConfigError, match=r"/j.conf, section KafkaServer: .* must have username"):
        given(text.replace("username", "name"), settings)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "Client { M required; };",
            "/j.conf: Could not find a 'KafkaServer' or 'a_b.KafkaServer'",
        ),
        ("KafkaServer {\n M sometimes;", "/j.conf, line 2: Invalid control flag"),
        ("KafkaServer {\n com.x.Ldap required; };", "/j.conf, line 2: com.x.Ldap is not served: "),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_name_and_line(text, words):
    with pytest.raises(ConfigError, match=words):
        given(text)


def test_what_has_no_effect_is_told():
    kerberos = "com.sun.security.auth.module.Krb5LoginModule required principal=x;"
    told = given(f"KafkaServer {{\n {kerberos}\n {SCRAM_MODULE} required;\n }};")[1]
    assert any(
        "/j.conf, line 2: com.sun" in one and "Kerberos is not served" in one for one in told
    )
    assert any(f"/j.conf: {PLAIN_MODULE} names no users" in one for one in told)
    nobody = given(FILE, {"listeners": "PLAINTEXT://:0"})[1]
    assert [
        one for one in nobody if "penstock.sasl.jaas.file has no effect here: no listener" in one
    ]
    assert len(nobody) == 1


def test_tokens_are_offered_by_it_as_well():
    oauth = {
        "listeners": "B://:1",
        "listener.security.protocol.map": "B:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": "file:///k",
        "sasl.oauthbearer.expected.audience": "a",
    }
    config, told = given(f"KafkaServer {{ {OAUTH_MODULE} required; }};", oauth)
    assert of_listener(config, "B").tokens is not None and told == []


def test_it_is_a_secret_and_holds_without_a_restart():
    config, _ = given(FILE)
    other, _ = given(FILE.replace("0wn", "newer"))
    (changed,) = compare(config, other)
    assert changed.at_once and "0wn" not in repr(changed) and "newer" not in repr(changed)
    assert changes_at_once("penstock.sasl.jaas.file")
    assert config.setting("penstock.sasl.jaas.text").type == PASSWORD
