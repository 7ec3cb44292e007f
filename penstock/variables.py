"""The variables of the environment by which programs find out where their broker is.

Kafka's clients read none; frameworks and the twelve-factor habit do. Used by `penstock run` and by
the fixtures.
"""

from typing import Final

NAMES: Final = {
    "PENSTOCK_BOOTSTRAP": "penstock's own commands and Python client",
    "BOOTSTRAP_SERVERS": "what programs call it that read one variable; Kafka Connect's images",
    "KAFKA_BOOTSTRAP_SERVERS": "Quarkus, Micronaut, SmallRye (kafka.bootstrap.servers)",
    "KAFKA_BROKERS": "what programs of Go and JavaScript call it",
    "RPK_BROKERS": "rpk",
    "SPRING_KAFKA_BOOTSTRAPSERVERS": "Spring Boot (spring.kafka.bootstrap-servers)",
    "SPRING_KAFKA_BOOTSTRAP_SERVERS": "Spring Boot, as most write it",
    "SPRING_CLOUD_STREAM_KAFKA_BINDER_BROKERS": "Spring Cloud Stream",
}
"""Name → who reads it."""


def variables(bootstrap: str) -> dict[str, str]:
    """Each of them with HOST:PORT."""
    return dict.fromkeys(NAMES, bootstrap)
