"""UpdateFeatures, API key 57, versions 0 to 2; flexible from 0.

1: upgrade types and validate only. 2: no rows for each feature when all went well. All updates of a
request are made or none.
"""

from appliance.base import errors
from appliance.controller.features import (
    SAFE_DOWNGRADE,
    UPGRADE,
    FeatureUpdate,
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


def refused(request: Message, told: Values) -> Values:
    return {**told, "results": []}


API = Api(57, "UpdateFeatures", 0, 2, 0, decide, refused=refused)
