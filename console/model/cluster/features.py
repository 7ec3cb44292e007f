"""Feature levels of a cluster (KIP-584): what is finalized, and raising one.

Kafka's own requests: ApiVersions tells the finalized levels, UpdateFeatures raises one where every
node supports it.
"""

from typing import Final

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check

ELR: Final = "eligible.leader.replicas.version"
KRAFT: Final = "kraft.version"
_API_VERSIONS: Final = (18, 3)
_UPDATE: Final = (57, 1)
_UPGRADE: Final = 1
_WAIT_MS: Final = 10_000
_ASKING: Final = {"client_software_name": "penstock", "client_software_version": "1"}


def level(link: Link, name: str) -> int:
    """The finalized level, 0 for none. Raises Failure."""
    answer = ask_server(link, *_API_VERSIONS, _ASKING)
    check(int(answer.error_code), None, "its features")
    levels = {str(one.name): int(one.max_version_level) for one in answer.finalized_features}
    return levels.get(name, 0)


def refusal(link: Link, name: str, wanted: int) -> str:
    """Why the cluster would not raise the feature to this level, "" when it would. Raises Failure
    when nobody answers."""
    try:
        _update(link, name, wanted, only_look=True)
    except Failure as refused:
        if refused.kafka_code is None:
            raise
        return refused.message
    return ""


def raise_to(link: Link, name: str, wanted: int) -> None:
    """Raises Failure."""
    _update(link, name, wanted, only_look=False)


def _update(link: Link, name: str, wanted: int, *, only_look: bool) -> None:
    update = {"feature": name, "max_version_level": wanted, "upgrade_type": _UPGRADE}
    values = {"timeout": _WAIT_MS, "feature_updates": [update], "validate_only": only_look}
    answer = ask_server(link, *_UPDATE, values)
    about = f"{name}={wanted}"
    check(int(answer.error_code), answer.error_message, about)
    for one in answer.results:
        check(int(one.error_code), one.error_message, about)
