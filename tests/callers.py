"""Those who ask, for tests that stand in the place of a connection or of a netproc."""

from appliance.authorization.rights import AllowAll, Rights
from appliance.base.caller import ANONYMOUS, Caller


def caller(client_id="client", address="1.2.3.4", principal=ANONYMOUS):
    return Caller(principal, client_id, address, "PLAINTEXT")


def rights(client_id="client", authorizer=None, **named):
    return Rights(caller(client_id, **named), authorizer or AllowAll())
