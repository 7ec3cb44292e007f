"""Checks that the settings of tiered storage fit together: the broker's at a start, a topic's when
they change (KIP-405, KIP-950)."""

from collections.abc import Iterator
from typing import Final

from appliance.base.errors import ConfigError
from appliance.base.object_store import names_credentials
from appliance.config.broker import BrokerConfig
from appliance.config.log_config import LogConfig

ENABLED: Final = "remote.log.storage.system.enable"
STORE_URL: Final = "penstock.remote.storage.url"
_FOLLOWS: Final = -2
_FORMS: Final = "file:///FOLDER or s3://BUCKET/PREFIX"


def check_store(config: BrokerConfig) -> Iterator[str]:
    """Warnings of the broker's settings. Raises ConfigError."""
    url = config.get_value(STORE_URL)
    if url is not None and names_credentials(str(url)):
        raise ConfigError(
            f"{STORE_URL}: it has neither user nor query, because everybody who reads the settings"
            " sees it; credentials come by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or the"
            " host's role"
        )
    if url is not None and not is_store_url(str(url)):
        raise ConfigError(f"{STORE_URL}: {str(url)[:200]} is not {_FORMS}")
    if not config.bool(ENABLED):
        return
    if url is None:
        raise ConfigError(f"{ENABLED}: {STORE_URL} is not set; set it to {_FORMS}")
    if len(config.list("log.dirs")) > 1:
        raise ConfigError(
            f"{ENABLED}: tiered storage needs all logs in one folder, and log.dirs has several;"
            " name one"
        )
    if config.several:
        raise ConfigError(
            f"{ENABLED}: tiered storage is for one node alone, and controller.quorum.voters or"
            " controller.quorum.bootstrap.servers name others; unset it on the nodes of a cluster"
        )
    yield from ()


def is_store_url(url: str) -> bool:
    """True if a store can have this URL."""
    scheme, _, place = url.partition("://")
    folder = place.strip("/") if scheme == "file" and place.startswith("/") else ""
    bucket = place.partition("/")[0] if scheme == "s3" else ""
    return bool(folder or bucket)


def check_tiered_topic(rules: LogConfig, was_tiered: bool, enabled: bool, brokers: int) -> None:
    """Checks a topic's settings as they would be. was_tiered: whether it has remote segments so
    far. enabled: whether this node has a store. brokers: how many the cluster has. Raises
    ConfigError, in Kafka's words where it has them."""
    if not rules.remote_storage_enable:
        if was_tiered and not rules.remote_log_delete_on_disable:
            raise ConfigError(
                "It is invalid to disable remote storage without deleting remote data. If you want"
                " to keep the remote data and turn to read only, please set"
                " `remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable"
                " remote storage and delete all remote data, please set"
                " `remote.storage.enable=false,remote.log.delete.on.disable=true`."
            )
        return
    if not enabled:
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured"
            " with remote log storage."
        )
    if brokers > 1:
        raise ConfigError(
            "remote.storage.enable: tiered storage is for one node alone, and this cluster has"
            f" {brokers} brokers, which do not share what is known of remote segments; keep the"
            " topic local"
        )
    if rules.compact:
        raise ConfigError(
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy"
            " being an empty list."
        )
    pairs = (
        ("bytes", rules.local_retention_bytes, rules.retention_bytes),
        ("ms", rules.local_retention_ms, rules.retention_ms),
    )
    for unit, local, whole in pairs:
        _check_local(unit, local, whole)
        if rules.remote_log_copy_disable and local not in (_FOLLOWS, whole):
            raise ConfigError(
                f"When `remote.log.copy.disable` is set to true, the `local.retention.{unit}` and"
                f" `retention.{unit}` must be set to the identical value because there will be no"
                " more logs copied to the remote storage."
            )


def _check_local(unit: str, local: int, whole: int) -> None:
    """Local retention is no longer than that of the whole log. Raises ConfigError."""
    if whole == -1 or local == _FOLLOWS:
        return
    begins = f"Invalid value {local} for configuration local.retention.{unit}: Value must not be"
    if local == -1:
        raise ConfigError(f"{begins} -1 as retention.{unit} value is set as {whole}.")
    if local > whole:
        raise ConfigError(f"{begins} more than retention.{unit} property value: {whole}")
