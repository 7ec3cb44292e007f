"""The authorizer of a process: made of the settings, and kept at what the metadata say.

Every process that decides has its own (`Seat.authorizer`), and follows the metadata log with it: a
rule that is gone is unknown to all of them before one of them decides over newer metadata.
"""

from collections.abc import Iterable
from typing import Final

from appliance.authorization.authorizer import AllowAll, AllowClients, Authorizer, NodePrincipals
from appliance.authorization.standard import StandardAuthorizer
from appliance.base.owner import SUPER_USER
from appliance.config import acl_checks
from appliance.controller.acls import rule_of
from appliance.metadata.changes import Change, KeptChanged
from appliance.metadata.image import MetadataImage
from appliance.wire.kraft_records import AccessControlEntryRecord

_ACL: Final = "acl"


def authorizer_of(config: object) -> Authorizer:
    """As the settings say; without `authorizer.class.name` everybody may do everything, except act
    as a node where `penstock.node.principals` says who does. Raises ConfigError."""
    nodes = NodePrincipals(*acl_checks.nodes(config))
    if acl_checks.is_secured(config):
        users = (*acl_checks.super_users(config), SUPER_USER)
        is_open = acl_checks.is_open(config)
        return StandardAuthorizer(users, open_unnamed=is_open, nodes=nodes)
    return AllowClients(nodes) if nodes.principals else AllowAll()


class ProcessAuthorizer:
    """Brings rules from an image to the authorizer. Without ACLs it does nothing."""

    __slots__ = ("_standard",)

    def __init__(self, authorizer: Authorizer) -> None:
        self._standard = authorizer if isinstance(authorizer, StandardAuthorizer) else None

    def load(self, image: MetadataImage) -> None:
        """All rules are in this image: from now on it is decided by them."""
        if self._standard is not None:
            self._standard.load(
                {
                    key[1]: rule_of(record)
                    for key, record in image.kept.items()
                    if isinstance(record, AccessControlEntryRecord)
                }
            )

    def follow(self, changes: Iterable[Change], image: MetadataImage) -> None:
        """So the image has changed."""
        if self._standard is None:
            return
        for change in changes:
            if isinstance(change, KeptChanged) and change.identity[0] == _ACL:
                record = image.kept.get(change.identity)
                if isinstance(record, AccessControlEntryRecord):
                    self._standard.add(change.identity[1], rule_of(record))
                else:
                    self._standard.drop(change.identity[1])
