"""Notifies the parts of control that follow the metadata and the settings file: of committed
changes and of reloads. Tells the supervisor how many nodes are away.
"""

from collections.abc import Sequence
from typing import Protocol

from appliance.control.quorum.metadata_quorum import MetadataQuorum
from appliance.metadata.changes import Change
from appliance.metadata.image import MetadataImage
from appliance.shell.process_authorizer import ProcessAuthorizer
from appliance.shell.seat import Seat


class ImageFollower(Protocol):
    def follow(self, changes: Sequence[Change], image: MetadataImage) -> None:
        """The image is this one by now."""
        ...


class Followers:
    """All of them, in their order."""

    def __init__(self, seat: Seat, quorum: MetadataQuorum, *followers: ImageFollower) -> None:
        self._processes = seat.processes
        self._guarding = ProcessAuthorizer(seat.authorizer)
        self._followers = (self._guarding, *followers)
        self._begun = False
        seat.rereading.then(lambda changes: self.follow(changes, quorum.images.committed))

    def follow(self, changes: Sequence[Change], image: MetadataImage) -> None:
        """Tell each. Nobody but super users may do anything before `admit`."""
        for one in self._followers:
            one.follow(changes, image)
        brokers = image.brokers.values()
        self._processes.set_nodes(len(brokers), sum(one.fenced for one in brokers))

    def admit(self, image: MetadataImage) -> None:
        """The image holds all that is agreed: from now on it is decided by its rules."""
        if not self._begun:
            self._begun = True
            self._guarding.load(image)
