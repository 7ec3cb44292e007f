"""The JAAS file that Apache Kafka takes logins from, `-Djava.security.auth.login.config=FILE` in
KAFKA_OPTS. It is not read; a start that would need it says so."""

import re
from collections.abc import Mapping
from typing import Final

from appliance.config.broker import BrokerConfig
from appliance.config.logins import PROTOCOLS

_NAMED: Final = re.compile(r"-Djava\.security\.auth\.login\.config=(\S+)")


def jaas_warnings(config: BrokerConfig, environ: Mapping[str, str]) -> list[str]:
    """Returns the warning about a JAAS file that is named, where a listener asks for a login."""
    protocols = config.protocols()
    names = [one.name for one in config.opened() if protocols.get(one.name) in PROTOCOLS]
    found = _NAMED.search(environ.get("KAFKA_OPTS", ""))
    if found is None or not names:
        return []
    key = f"listener.name.{names[0].lower()}.MECHANISM.sasl.jaas.config"
    return [
        f"KAFKA_OPTS names the JAAS file {found[1]} (java.security.auth.login.config), which is not"
        f" read: write the login of its section KafkaServer as {key}=MODULE required …;"
    ]
