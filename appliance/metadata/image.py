"""The state that replaying the cluster's metadata records gives.

Invariant: nothing but `apply` changes an image, so two images that saw the same records in the same
order are equal. Records between BeginTransactionRecord and EndTransactionRecord (KIP-868) count
together or not at all. Control owns two images (`control/quorum/images.py`), the network and I/O
processes each follow the log into their own; they read the public attributes and act on the changes
that `apply` returns.
"""

from appliance.metadata.changes import BrokerChanged as BrokerChanged
from appliance.metadata.changes import Change
from appliance.metadata.changes import ConfigChanged as ConfigChanged
from appliance.metadata.changes import FeatureChanged as FeatureChanged
from appliance.metadata.changes import PartitionAdded as PartitionAdded
from appliance.metadata.changes import PartitionChanged as PartitionChanged
from appliance.metadata.changes import QuotaChanged as QuotaChanged
from appliance.metadata.changes import TopicAdded as TopicAdded
from appliance.metadata.changes import TopicRemoved as TopicRemoved
from appliance.metadata.image_state import BROKER as BROKER
from appliance.metadata.image_state import BROKER_LOGGER as BROKER_LOGGER
from appliance.metadata.image_state import CLIENT_METRICS as CLIENT_METRICS
from appliance.metadata.image_state import GROUP as GROUP
from appliance.metadata.image_state import METADATA_VERSION as METADATA_VERSION
from appliance.metadata.image_state import TOPIC as TOPIC
from appliance.metadata.image_state import Entity as Entity
from appliance.metadata.image_state import ImageState
from appliance.metadata.parts import BrokerImage as BrokerImage
from appliance.metadata.parts import ControllerImage as ControllerImage
from appliance.metadata.parts import Endpoint as Endpoint
from appliance.metadata.parts import Feature as Feature
from appliance.metadata.parts import PartitionImage as PartitionImage
from appliance.metadata.parts import TopicImage as TopicImage
from appliance.metadata.replay import OnFault, replay


class MetadataImage(ImageState):
    """The replayed cluster: `ImageState` says what is in it."""

    def copy(self) -> "MetadataImage":
        """This image as it is now, for a second one that goes its own way: 100,000 topics take
        some 10 ms, partitions nothing."""
        view = MetadataImage()
        self.share_with(view)
        return view

    def apply(self, offset: int, record: object, on_fault: OnFault | None = None) -> list[Change]:
        """Replay one record of the metadata log and say what changed.

        offset: of the record in the log. A record of an unknown type is counted in `skipped` and
        changes nothing. on_fault: takes a record that contradicts the image, and that is skipped;
        without it ReplayFailed is raised.
        """
        changes = replay(self, record, on_fault)
        self.applied_offset = offset
        return changes
