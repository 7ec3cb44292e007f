"""ApiVersions, API key 18, versions 0 to 4.

3: flexible request with the client's software name and version, features in the answer. 4: features
whose lowest level is 0 may be listed (KAFKA-17011). The response header is always version 0. A
version we do not know is answered in version 0 with error 35 and the range of this API alone
(KIP-511). GetTelemetrySubscriptions and PushTelemetry are told of only while somebody is subscribed
to clients' metrics.
"""

import re
from collections.abc import Iterable

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.controller.features import SUPPORTED
from appliance.handlers import gather
from appliance.handlers.client_metrics import offered
from appliance.handlers.exchange import Exchange, Handler, Host, never
from appliance.wire.build import response
from appliance.wire.messages import encode_response

KEY = 18
LOWEST, HIGHEST = declared(KEY)[2:]
TELEMETRY = (71, 72)
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

_NOTHING = {
    "api_keys": [],
    "throttle_time": 0,
    "supported_features": [],
    "finalized_features_epoch": -1,
    "finalized_features": [],
    "zk_migration_ready": False,
}
"""An answer that tells of an error tells nothing else."""

Range = tuple[int, int, int]  # API key, lowest and highest version


def unsupported() -> bytes:
    """The version 0 body for a version outside our range."""
    keys = [{"api_key": KEY, "min_version": LOWEST, "max_version": HIGHEST}]
    return encode_response(
        response(KEY, 0, {"error_code": errors.UNSUPPORTED_VERSION, "api_keys": keys})
    )


def handler(ranges: Iterable[Range]) -> Handler:
    """The handler that advertises `ranges`."""
    every = [
        {"api_key": key, "min_version": low, "max_version": high}
        for key, low, high in sorted(ranges)
    ]
    usual = [one for one in every if one["api_key"] not in TELEMETRY]

    known: dict[int, tuple[int, bytes]] = {}  # by version: (metadata that it tells of, answer)

    def begin_api_versions(host: Host, x: Exchange) -> None:
        request, version = gather.decode(host, x), x.version
        if version >= 3:
            name, number = request.client_software_name, request.client_software_version
            if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(number)):
                gather.reply(host, x, {**_NOTHING, "error_code": errors.INVALID_REQUEST})
                return
            host.software(x, name, number)
        offset = host.image.applied_offset
        before, body = known.get(version, (None, b""))
        if before != offset:
            keys = every if offered(host.image) else usual
            told = {**_features(host, version), "api_keys": keys, "error_code": errors.NONE}
            body = encode_response(response(KEY, version, told))
            known[version] = offset, body
        host.finish(x, [body])

    return Handler(*declared(KEY), begin_api_versions, never)


def _features(host: Host, version: int) -> dict[str, object]:
    image = host.image
    levels = image.features | {"kraft.version": host.kraft_version}
    finalized = [
        {"name": name, "max_version_level": level, "min_version_level": level}
        for name, level in sorted(levels.items())
        if level > 0 and name in SUPPORTED  # a folder of Apache Kafka may have finalized more
    ]
    supported = [
        {"name": name, "min_version": low, "max_version": high}
        for name, low, high in image.supported_features()
        if low > 0 or version >= 4
    ]
    return {
        "throttle_time": 0,
        "supported_features": supported,
        "finalized_features_epoch": image.applied_offset,
        "finalized_features": finalized,
        "zk_migration_ready": False,
    }
