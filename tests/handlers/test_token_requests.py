"""Who may ask about delegation tokens, by the connection and by rules; and what is lost with a
leadership tells no HMAC."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from appliance.authorization.authorizer import AllowNothing
from appliance.authorization.rights import AllowAll, Rights
from appliance.base import errors
from appliance.base.caller import ANONYMOUS, Caller, Principal
from appliance.base.owner import LISTENER, OWNER
from appliance.config.broker import BrokerConfig
from appliance.control.requests.refusals import refused
from appliance.handlers import k38_create_delegation_token as k38
from appliance.handlers import k39_renew_delegation_token as k39
from appliance.handlers import k40_expire_delegation_token as k40
from appliance.handlers import k41_describe_delegation_token as k41
from appliance.metadata.image import MetadataImage

ANNA = Principal("User", "anna")
PROTOCOLS = "PLAINTEXT:PLAINTEXT,TLS:SSL,SASL:SASL_PLAINTEXT,BOTH:SASL_SSL,CONTROLLER:PLAINTEXT"
NOT_ALLOWED = errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def context(caller, authorizer=None, secret="secret"):
    words = {"listener.security.protocol.map": PROTOCOLS}
    if secret:
        words["delegation.token.secret.key"] = secret
    situation = SimpleNamespace(
        image=MetadataImage(), config=BrokerConfig.of(words), new_id=lambda: b"i" * 16
    )
    rights = Rights(caller, authorizer or AllowAll())
    return SimpleNamespace(situation=situation, rights=rights, now_ms=1_700_000_000_000)


def by(listener, principal=ANNA, **more):
    return Caller(principal, "c", "1.2.3.4", listener, **more)


def creation(owner=None, renewers=()):
    kind, name = owner or (None, None)
    return SimpleNamespace(
        owner_principal_type=kind, owner_principal_name=name,
        max_lifetime=timedelta(milliseconds=-1),
        renewers=[SimpleNamespace(principal_type=k, principal_name=n) for k, n in renewers],
    )  # fmt: skip


def created(where, **request):
    return k38.decide(creation(**request), 3, where).values


@pytest.mark.parametrize(
    ("caller", "allowed"),
    [
        (by("PLAINTEXT"), False), (by("PLAINTEXT", ANONYMOUS), False), (by("CONTROLLER"), False),
        (by("UNHEARD"), False), (by("TLS", ANONYMOUS), False), (by("TLS"), True),
        (by("SASL"), True), (by("BOTH"), True), (by("BOTH", by_token=True), False),
        (by("", by_token=True), False), (by(""), True),
    ],
)  # fmt: skip
def test_what_a_connection_must_prove(caller, allowed):
    where = context(caller)
    period = {"hmac": b"x", "renew_period": timedelta(0), "expiry_time_period": timedelta(0)}
    codes = {
        created(where)["error_code"],
        k39.decide(SimpleNamespace(**period), 2, where).values["error_code"],
        k40.decide(SimpleNamespace(**period), 2, where).values["error_code"],
        k41.decide(SimpleNamespace(owners=None), 3, where).values["error_code"],
    }
    assert codes == ({errors.NONE, errors.DELEGATION_TOKEN_NOT_FOUND} if allowed else {NOT_ALLOWED})
    assert k38.API.here(where) is not allowed


def test_the_owner_of_the_folder_makes_tokens_of_others_alone():
    where = context(by(LISTENER, OWNER))
    assert created(where)["error_code"] == errors.INVALID_PRINCIPAL_TYPE
    assert created(where, owner=("User", "bert"))["error_code"] == errors.NONE


def test_a_token_of_another_takes_a_right():
    where = context(by("SASL"), AllowNothing())
    refusal = errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert created(where)["error_code"] == errors.NONE
    assert created(where, owner=("User", "anna"))["error_code"] == errors.NONE
    told = created(where, owner=("User", "bert"))
    assert (told["error_code"], told["hmac"], told["principal_name"]) == (refusal, b"", "bert")


@pytest.mark.parametrize("secret", [None, ""])
def test_without_a_secret_tokens_are_disabled(secret):
    where = context(by("SASL"), secret=secret)
    disabled = errors.DELEGATION_TOKEN_AUTH_DISABLED
    assert created(where)["error_code"] == disabled
    told = k41.decide(SimpleNamespace(owners=None), 3, where).values
    assert (told["error_code"], told["tokens"]) == (disabled, [])


def test_a_token_that_was_lost_is_not_told():
    told = refused(created(context(by("SASL"))), "lost", errors.NOT_CONTROLLER, whole=True)
    assert told["error_code"] == errors.NOT_CONTROLLER
    assert (told["hmac"], told["token_id"], told["max_timestamp"]) == (b"", "", -1)


def test_a_life_for_ever_ends_with_the_year_9999():
    where = context(by("SASL"))
    where.situation.config = BrokerConfig.of(
        {"listener.security.protocol.map": PROTOCOLS, "delegation.token.secret.key": "s",
         "delegation.token.max.lifetime.ms": str((1 << 63) - 1),
         "delegation.token.expiry.time.ms": str((1 << 63) - 1)}
    )  # fmt: skip
    told = created(where)
    assert told["max_timestamp"] == told["expiry_timestamp"] == 253_402_300_799_999
