"""A folder whose features are beyond this version is refused in a sentence, and not touched."""

import pytest

from appliance.base.errors import ConfigError
from appliance.control.folder.startup import check_features
from appliance.controller.features import FRESH, LATEST_METADATA_VERSION, SUPPORTED
from appliance.metadata.image import METADATA_VERSION, MetadataImage


def image(**levels):
    made = MetadataImage()
    made.features = FRESH | {name.replace("_", "."): level for name, level in levels.items()}
    return made


@pytest.mark.parametrize("name", [name for name in SUPPORTED if name != METADATA_VERSION])
def test_what_a_newer_version_raised_is_refused(name):
    highest = SUPPORTED[name][1]
    check_features(image(**{name: highest}), "data")
    with pytest.raises(ConfigError, match=f"data has {name} {highest + 1}.*newer"):
        check_features(image(**{name: highest + 1}), "data")


def test_metadata_of_another_time_are_refused():
    with pytest.raises(ConfigError, match="newer"):
        check_features(image(metadata_version=LATEST_METADATA_VERSION + 1), "data")
    with pytest.raises(ConfigError, match="upgrade the cluster with kafka-features first"):
        check_features(image(metadata_version=1), "data")


def test_what_only_apache_kafka_knows_stays():
    check_features(image(share_version=1, streams_version=1), "data")
