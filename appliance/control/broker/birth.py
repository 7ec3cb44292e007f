"""The registration of a node: one start of it, as broker and as controller.

Called by `shell.py`, for `node.py`.
"""

from typing import Final

from appliance.base.dataclass import dataclass
from appliance.config.between_nodes import NUMBERS
from appliance.control.broker.addresses import own_controllers
from appliance.controller.registration import Incarnation
from appliance.metadata.identity import Identity
from appliance.metadata.image import MetadataImage
from appliance.metadata.log_dirs import LogDirs
from appliance.metadata.parts import Endpoint
from appliance.shell.seat import Seat

_UNKNOWN: Final = -1


@dataclass(slots=True, frozen=True, kw_only=True)
class Birth:
    """controllers: where this node's controller is reached. log_dirs: ids of the folders that are
    there. previous_epoch: the broker's before, if it ended in order and everything is on the disk
    that it had then, else -1."""

    identity: Identity
    incarnation: Incarnation
    controllers: tuple[Endpoint, ...]
    log_dirs: tuple[bytes, ...]
    previous_epoch: int

    @staticmethod
    def of(
        seat: Seat,
        identity: Identity,
        dirs: LogDirs,
        incarnation: Incarnation,
        image: MetadataImage,
    ) -> "Birth":
        """image: what is committed as far as this node knows when it starts."""
        before = image.brokers.get(identity.node_id)
        protocols = seat.config.protocols()
        return Birth(
            identity=identity,
            incarnation=incarnation,
            controllers=tuple(
                Endpoint(
                    name=one.name,
                    host=one.host,
                    port=one.port,
                    security_protocol=NUMBERS.get(protocols.get(one.name, ""), 0),
                )
                for one in own_controllers(seat.config, identity.node_id)
            ),
            log_dirs=tuple(one for one in dirs.ids if one is not None),
            previous_epoch=before.epoch if before is not None and seat.clean else _UNKNOWN,
        )
