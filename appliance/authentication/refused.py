"""A login that is refused, and what its client is told of it."""


class LoginRefused(Exception):
    """told: what the client may know, None: only that its credentials are not valid, as Apache
    Kafka's SaslException, so that nobody learns which users there are."""

    def __init__(self, told: str | None = None) -> None:
        super().__init__(told or "the credentials are not valid")
        self.told = told
