"""Looks at a broker that need what its counters told before."""

from console.model.access import certificates
from console.model.asking.link import Link
from console.model.local.local import Facts
from console.model.storage import disk
from console.model.topics.oldest import oldest_ms
from penstock.reach import address_of


def read_certificates(link: Link, facts: Facts | None) -> tuple[certificates.Shown, ...]:
    """Those of all listeners of an appliance of this host, or of where a broker is asked."""
    if facts is not None:
        return tuple(certificates.read_certificate(one) for one in facts.secured)
    if not link.door.uses_tls:
        return ()
    named = (address_of(one) for one in link.bootstrap.split(","))
    return tuple(certificates.read_certificate(certificates.Secured("", *one)) for one in named)


def read_folders(link: Link) -> list[disk.LogFolder]:
    """The log folders with their disks. Raises Failure."""
    return disk.log_folders(link, used=False)


def read_oldest(link: Link, facts: Facts | None) -> dict[str, int]:
    """Topic → time of its oldest record in ms, as far as the log folders can be read. Raises
    Failure."""
    told = facts.topics.items() if facts is not None else ()
    wanted = {
        name: one.partitions for name, one in told if one.records and not name.startswith("__")
    }
    folders = read_folders(link)
    return oldest_ms([one.path for one in folders if not one.problem], wanted)
