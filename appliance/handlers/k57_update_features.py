"""UpdateFeatures, API key 57, versions 0 to 2; flexible from 0.

1: upgrade types and validate only. 2: no rows for each feature when all went well. All updates of a
request are made or none.
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.decision import Record, Result
from appliance.controller.features import (
    KRAFT_VERSION,
    SAFE_DOWNGRADE,
    UPGRADE,
    FeatureUpdate,
    level_of,
    update_features,
)
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    wanted = []
    for item in request.feature_updates:
        if version == 0:
            kind = SAFE_DOWNGRADE if item.allow_downgrade else UPGRADE
        else:
            kind = item.upgrade_type
        wanted.append(FeatureUpdate(item.feature, item.max_version_level, kind))
    records, results = update_features(context.situation, wanted)
    wrong = next(((name, bad) for name, bad in results if bad.code != errors.NONE), None)
    if wrong is None:
        try:
            records = [*_dynamic(context, wanted), *records]
        except PeerError as error:
            wrong = KRAFT_VERSION, Result(error.code, error.message)
    code, text = errors.NONE, None
    rows = []
    if wrong is not None:
        code = wrong[1].code
        text = (
            "The update failed for all features since the following feature had an error:"
            f" {wrong[1].message}"
        )
    elif version < 2:
        # The text "NONE" is Kafka's; every name of the request has its row.
        rows = [
            {"feature": one.name, "error_code": errors.NONE, "error_message": "NONE"}
            for one in wanted
        ]
    values = {"throttle_time": 0, "error_code": code, "error_message": text, "results": rows}
    return Answer([] if getattr(request, "validate_only", False) else records, values)


def _dynamic(context: AdminContext, wanted: list[FeatureUpdate]) -> list[Record]:
    """The same voters by the log, where that is asked for. Raises PeerError."""
    levels = [one.level for one in wanted if one.name == KRAFT_VERSION]
    if not levels or levels[-1] == level_of(context.situation, KRAFT_VERSION):
        return []
    if context.electing is None:  # who leads decides; the answer only shows its shape
        return []
    return [context.electing.dynamic_from(levels[-1])]


def refused(request: Message, told: Values) -> Values:
    return {**told, "results": []}


API = Api(*declared(57), decide, refused=refused)
