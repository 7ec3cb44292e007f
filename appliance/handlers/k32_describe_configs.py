"""DescribeConfigs, API key 32, versions 1 to 4.

1: sources and synonyms. 3: types and documentation. 4: flexible. Resources are topics, groups, this
broker, "" for what is set for all brokers dynamically, loggers, and subscriptions to the metrics of
clients. Values of sensitive settings are null. The topic `penstock:deleted`, a name that no topic
can have, has a setting for each deleted topic that can be brought back; those that begin with
`penstock:deleted:` are for other nodes. The broker `penstock:node` tells which version whoever
answers is.
"""

from typing import Final

from appliance.authorization import needs
from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.config_resources import ConfigResource, check_resource
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values
from appliance.handlers.answer_cache import Told
from appliance.handlers.config_rights import check_described
from appliance.handlers.deleted_topics import (
    DELETED,
    explain_deleted,
    explain_kept,
    one_name,
)
from appliance.handlers.described_configs import described
from appliance.handlers.this_node import NODE, explain_node
from appliance.metadata import effective, effective_groups
from appliance.metadata.effective import Explained
from appliance.metadata.image import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from appliance.wire.build import response
from appliance.wire.messages import encode_response

_FEW: Final = 100
"""Settings that are named: longer lists are not kept."""


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    """A cache answers a request for this broker alone, which most clients send."""
    situation, resources = context.situation, request.resources
    own = (BROKER, str(situation.node_id))
    one = resources[0] if len(resources) == 1 else None
    if (
        one is None
        or (one.resource_type, one.resource_name) != own
        or len(one.configuration_keys or ()) > _FEW
        or context.rights.refusal(needs.DESCRIBE_CLUSTER_CONFIGS)
    ):
        return Answer([], _told(request, version, context))
    context.described.explained(situation.image, situation.config, situation.node_id)

    def make_answer() -> Told:
        values = _told(request, version, context)
        return values, encode_response(response(API.key, version, values))

    values, encoded = context.described.answer((version, request), make_answer)
    return Answer([], {**values}, encoded=encoded)


def _told(request: Message, version: int, context: AdminContext) -> Values:
    documentation = version >= 3 and request.include_documentation
    results: list[Values] = []
    # Named twice is answered once: an answer must not be many times as large as all there is.
    for item in dict.fromkeys(request.resources):
        code, text = errors.NONE, ""
        explained: list[Explained] = []
        try:
            resource = ConfigResource(item.resource_type, item.resource_name)
            if resource.kind == TOPIC and resource.name.startswith(one_name("")):
                explained = explain_kept(context, resource.name.removeprefix(one_name("")))
            else:
                check_described(context.rights, resource)
                explained = _explain(context, resource)
        except PeerError as error:
            code, text = error.code, error.message or ""
        asked = frozenset(item.configuration_keys or ())
        results.append(
            {
                "error_code": code,
                "error_message": text,
                "resource_type": item.resource_type,
                "resource_name": item.resource_name,
                "configs": [
                    described(one, synonyms=request.include_synonyms, documentation=documentation)
                    for one in explained
                    if not asked or one.name in asked
                ],
            }
        )
    return {"throttle_time": 0, "results": results}


def _explain(context: AdminContext, resource: ConfigResource) -> list[Explained]:
    situation = context.situation
    image, config = situation.image, situation.config
    if resource == ConfigResource(TOPIC, DELETED):
        return explain_deleted(context)
    if resource == ConfigResource(BROKER, NODE):
        return explain_node(context)
    check_resource(situation, resource, describing=True)
    if resource.kind == TOPIC:
        return effective.explain_topic(image, config, image.config(TOPIC, resource.name))
    if resource.kind == GROUP:
        return effective_groups.explain_group(image, config, resource.name)
    if resource.kind == CLIENT_METRICS:
        return effective_groups.explain_client_metrics(image, resource.name)
    if resource.kind == BROKER_LOGGER:
        assert context.loggers is not None
        return effective_groups.explain_loggers(context.loggers.all())
    if resource.name == "":
        return effective.explain_cluster_default(image)
    return context.described.explained(image, config, situation.node_id)


API = Api(*declared(32), decide, any_node=True)
