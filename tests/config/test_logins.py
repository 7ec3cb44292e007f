"""Settings of logins: what a listener offers, and that none of them is ignored silently."""

import pytest

from appliance.authentication.jaas import PLAIN_MODULE, SCRAM_MODULE
from appliance.base.errors import ConfigError
from appliance.config.logins import of_listener
from appliance.config.settings_reload import changes_at_once, compare
from tests.config.loading import examine, load

LISTENERS = {"listeners": "PLAINTEXT://:0,SASL_PLAINTEXT://:1"}
OWN = "listener.name.sasl_plaintext."
JAAS = f'{PLAIN_MODULE} required user_alice="tops3cret";'
PLAIN = LISTENERS | {"sasl.enabled.mechanisms": "PLAIN", f"{OWN}plain.sasl.jaas.config": JAAS}
SCRAM = LISTENERS | {"sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512"}


def test_what_a_listener_offers():
    config, told = load(None, PLAIN | {"connections.max.reauth.ms": "5000"})
    found = of_listener(config, "SASL_PLAINTEXT")
    assert told == [] and found.mechanisms == ("PLAIN",)
    assert found.users == {"alice": "tops3cret"} and found.lifetimes == {"PLAIN": 5000}
    assert of_listener(config, "PLAINTEXT") is None
    assert "tops3cret" not in repr(found)


def test_a_listener_has_its_own_words_and_a_mechanism_too():
    own = {
        f"{OWN}sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
        f"{OWN}plain.connections.max.reauth.ms": "1",
        f"{OWN}connections.max.reauth.ms": "2",
        f"{OWN}sasl.server.max.receive.size": "1000",
        f"{OWN}scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    }
    config, told = load(None, PLAIN | own)
    found = of_listener(config, "SASL_PLAINTEXT")
    assert told == [] and found.mechanisms == ("SCRAM-SHA-512", "PLAIN")
    assert found.lifetimes == {"PLAIN": 1, "SCRAM-SHA-512": 2} and found.longest == 1000


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (LISTENERS, "sasl.enabled.mechanisms=GSSAPI, the default: Kerberos is not served"),
        ({"sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER"}, "jwks.endpoint.url=: SASL_PLAINTEXT"),
        (
            {
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.oauthbearer.jwks.endpoint.url": "http://x",
            },
            "jwks.endpoint.url=http://x",
        ),
        ({"sasl.enabled.mechanisms": "SCRAM-SHA-1"}, "SCRAM-SHA-1: it is not known"),
        ({"sasl.enabled.mechanisms": ""}, "SASL_PLAINTEXT needs a mechanism"),
        (PLAIN | {f"{OWN}plain.sasl.jaas.config": JAAS[:-1]}, "plain.sasl.jaas.config: JAAS conf"),
        (
            PLAIN | {f"{OWN}plain.sasl.jaas.config": f"{SCRAM_MODULE} required;"},
            "the login module of PLAIN is .*PlainLoginModule",
        ),
    ],
)
def test_what_cannot_be_served_is_refused_by_its_name(settings, words):
    with pytest.raises(ConfigError, match=words) as refused:
        load(None, LISTENERS | settings)
    assert "tops3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (SCRAM | {f"{OWN}plain.sasl.jaas.config": JAAS}, "does not offer PLAIN"),
        (SCRAM | {"sasl.jaas.config": JAAS}, "a login is one listener's"),
        (SCRAM | {f"{OWN}sasl.jaas.config": JAAS}, "a login is one listener's"),
        (
            PLAIN | {"listener.name.plaintext.plain.sasl.jaas.config": JAAS},
            "has the protocol PLAINTEXT, which has no logins",
        ),
        (PLAIN | {"sasl.kerberos.service.name": "kafka"}, "Kerberos .GSSAPI. is not served"),
        (PLAIN | {"sasl.oauthbearer.expected.issuer": "x"}, "no listener offers OAUTHBEARER"),
        (PLAIN | {"delegation.token.expiry.time.ms": "5"}, "delegation tokens are disabled"),
        (PLAIN | {f"{OWN}plain.sasl.server.callback.handler.class": "x"}, "there is no JVM"),
        (PLAIN | {f"{OWN}plain.num.partitions": "1"}, "is ignored: of single listeners"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "no listener asks for a login"),
        (LISTENERS | {"sasl.enabled.mechanisms": "PLAIN"}, "against the SCRAM credentials"),
    ],
)
def test_what_has_no_effect_is_said(settings, words):
    _, told = load(None, settings)
    (said,) = told
    assert words.replace(".", "") in said.replace(".", "").replace("(", "").replace(")", "")
    assert "tops3cret" not in said


def test_a_secret_is_in_no_remark_and_in_no_change():
    assert "tops3cret" not in str(examine(None, PLAIN))
    before, _ = load(None, PLAIN)
    after, _ = load(None, PLAIN | {f"{OWN}plain.sasl.jaas.config": JAAS.replace("tops", "other")})
    changes = compare(before, after)
    assert [one.key for one in changes] == [f"{OWN}plain.sasl.jaas.config"]
    assert changes[0].at_once and "s3cret" not in str(changes)
    assert changes_at_once("sasl.enabled.mechanisms") and changes_at_once(
        "connections.max.reauth.ms"
    )
