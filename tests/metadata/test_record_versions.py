"""A metadata record is written in a version that every node of the metadata.version reads."""

import pytest

from appliance.metadata.record_versions import encode
from appliance.wire import kraft_records as kraft

ID = bytes(16)
RECORDS = (
    kraft.RegisterBrokerRecord(
        broker_id=1, incarnation_id=ID, broker_epoch=0, end_points=(), features=(), rack=None
    ),
    kraft.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=0),
    kraft.PartitionRecord(topic_id=ID, replicas=(1,), isr=(1,)),
    kraft.PartitionChangeRecord(topic_id=ID),
    kraft.TopicRecord(name="t", topic_id=ID),
)


@pytest.mark.parametrize(
    ("level", "versions"),
    [
        (17, [3, 2, 1, 1, 0]),  # 3.7-IV2
        (22, [3, 2, 1, 1, 0]),
        (23, [3, 2, 2, 2, 0]),  # 4.0-IV1
        (29, [3, 2, 2, 2, 0]),
        (30, [4, 3, 2, 2, 0]),  # 4.3-IV0
    ],
)
def test_versions_follow_the_metadata_version(level, versions):
    written = [kraft.decode_versioned(encode(one, level)) for one in RECORDS]
    assert written == list(zip(RECORDS, versions, strict=True))
