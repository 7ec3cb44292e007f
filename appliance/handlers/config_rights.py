"""Permissions for settings: those of topics and groups the resource itself, all others the
cluster.

Callers: DescribeConfigs, AlterConfigs and IncrementalAlterConfigs.
"""

from collections.abc import Iterable

from appliance.authorization import needs
from appliance.authorization.needs import Need
from appliance.authorization.operations import TEXTS
from appliance.authorization.rights import Rights
from appliance.base.addresses import plain_address
from appliance.base.errors import PeerError
from appliance.config.listener_settings import is_tls
from appliance.controller.config_resources import ConfigResource
from appliance.controller.decision import Result, failed
from appliance.handlers.admin import Message
from appliance.metadata.image import BROKER, GROUP, TOPIC

_DESCRIBE = {TOPIC: needs.DESCRIBE_TOPIC_CONFIGS, GROUP: needs.DESCRIBE_GROUP_CONFIGS}
_ALTER = {TOPIC: needs.ALTER_TOPIC_CONFIGS, GROUP: needs.ALTER_GROUP_CONFIGS}


def check_described(rights: Rights, resource: ConfigResource) -> None:
    """Raises PeerError for who may not see its settings."""
    own = _DESCRIBE.get(resource.kind)
    _check(rights, own, needs.DESCRIBE_CLUSTER_CONFIGS, resource)


def not_altered(
    rights: Rights, resources: Iterable[ConfigResource]
) -> dict[ConfigResource, Result]:
    """Those whose settings the caller may not change, each with what to tell."""
    found: dict[ConfigResource, Result] = {}
    for resource in resources if not rights.everything else ():
        try:
            _check(rights, _ALTER.get(resource.kind), needs.ALTER_CLUSTER_CONFIGS, resource)
        except PeerError as error:
            found[resource] = failed(error)
    return found


def is_here(rights: Rights) -> bool:
    """True if the caller came over the loopback interface, of this node or of the forwarding one; a
    caller without an address is no client.
    """
    address = plain_address(rights.caller.address)
    return address in ("", "::1") or address.startswith("127.")


def is_of_files(request: Message, node_id: int) -> bool:
    """True if only settings of this node change, and they load certificates."""
    named = [(one.resource_type, one.resource_name) for one in request.resources]
    return named == [(BROKER, str(node_id))] and any(
        is_tls(one.name) for one in request.resources[0].configs
    )


def _check(rights: Rights, own: Need | None, cluster: Need, resource: ConfigResource) -> None:
    code = rights.refusal(cluster) if own is None else rights.refusal(own, resource.name)
    if code:
        raise PeerError(code, TEXTS[code])
