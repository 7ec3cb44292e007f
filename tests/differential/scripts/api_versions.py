"""ApiVersions."""

from tests.differential.registry import script


@script("ApiVersions")
def api_versions(s):
    s.ask("plain", client_software_name="apache-kafka-java", client_software_version="4.3.1")


@script("ApiVersions", versions=(3, 4))
def api_versions_for_nobody(s):
    s.ask("odd name", client_software_name="odd name!", client_software_version="1")
    s.ask("no version", client_software_name="name", client_software_version="")


@script("ApiVersions", versions=(0, 0))
def api_versions_unknown(s):
    """KIP-511: the answer names the range of this API alone."""
    s.main.send_raw(18, 99, b"\1\1\0", flexible=True)
    s.note("version 99", s.main.receive())
