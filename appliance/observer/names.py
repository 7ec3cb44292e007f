"""Names of what is counted by number: API keys and error codes."""


def api_name(key: int) -> str:
    """As Kafka calls an API key."""
    from kio.schema.index import api_key_map

    words = str(api_key_map.get(key, f"api_{key}"))
    return "".join(word.capitalize() for word in words.split("_"))


def error_name(code: int) -> str:
    """As Kafka calls an error code; its number when Kafka does not know it."""
    from kio.schema.errors import ErrorCode

    try:
        return ErrorCode(code).name.upper()
    except ValueError:
        return str(code)
