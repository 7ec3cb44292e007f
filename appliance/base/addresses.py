"""One form of an address, however it was written or reached us.

A socket that serves IPv4 and IPv6 shows IPv4 clients as `::ffff:a.b.c.d` (RFC 4291, 2.5.5.2). Java
turns that into an IPv4 address, so limits, quotas and answers of Apache Kafka know these clients as
`a.b.c.d`; so do ours.
"""

from ipaddress import IPv6Address


def plain_address(address: str) -> str:
    """Returns the dotted form of an IPv4 address, the short form of an IPv6 address (RFC 5952), and
    anything else (a name, "") as it is."""
    if ":" not in address:
        return address
    try:
        found = IPv6Address(address)
    except ValueError:
        return address
    return str(found.ipv4_mapped or found)
