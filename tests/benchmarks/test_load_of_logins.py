"""The load of logins says what a server of SCRAM and of PLAIN takes."""

import pytest

from appliance.authentication import plain
from appliance.authentication.mechanisms import BY_NAME
from appliance.authentication.refused import LoginRefused
from appliance.authentication.scram import ScramServer, made, parse_first
from benchmarks import logins


def proved(mechanism, password):
    """The last answer of a server that knows this password."""
    says = logins.messages(mechanism)
    first = parse_first(next(says))
    credential = made(BY_NAME[mechanism], password, b"salt", 4096)
    server = ScramServer(BY_NAME[mechanism], first, credential, True, "nonce")
    return server.finish(says.send(server.challenge()))


@pytest.mark.parametrize("mechanism", logins.SCRAMS)
def test_scram(mechanism):
    assert proved(mechanism, logins.PASSWORD).startswith(b"v=")
    with pytest.raises(LoginRefused):
        proved(mechanism, "another one")


def test_plain():
    claim = plain.parse(next(logins.messages(logins.PLAIN)))
    assert (claim.user, claim.password) == (logins.USER, logins.PASSWORD)


def test_the_user_of_the_settings_is_the_one_who_logs_in(tmp_path):
    known = logins.Guarded(logins.OURS, tmp_path, tmp_path).settings
    users = known["listener.name.known.plain.sasl.jaas.config"]
    assert f'user_{logins.USER}="{logins.PASSWORD}"' in users
    assert "listener.name.stored.plain.sasl.jaas.config" not in known
