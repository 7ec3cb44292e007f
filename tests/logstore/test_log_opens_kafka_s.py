"""A folder that Kafka wrote is opened as it is, and goes on."""

import shutil
from pathlib import Path
from random import Random

import pytest
from twin import small_batch, stage, stored

from appliance.base.os_disk import OsDisk
from appliance.config.log_config import LogConfig
from appliance.logstore.log import PartitionLog

WRITTEN = Path(__file__).parent.parent / "control" / "written_by_kafka"


@pytest.mark.parametrize("which", ["static", "standalone"])
@pytest.mark.parametrize("clean", [True, False])
def test_every_batch_is_there_and_appends_follow(tmp_path, which, clean):
    folder = tmp_path / "t-0"
    shutil.copytree(WRITTEN / which / "__cluster_metadata-0", folder)
    kafka = (folder / f"{0:020d}.log").read_bytes()

    def opened(recovery_point: int, *, clean: bool) -> PartitionLog:
        return PartitionLog.open_folder(
            OsDisk(),
            str(folder),
            LogConfig(),
            recovery_point=recovery_point,
            log_start_offset=0,
            clean=clean,
            machine_lived=False,
            now_ms=0,
        )

    log = opened(0, clean=clean)
    assert b"".join(stored(log)) == kafka
    end = log.end_offset
    assert log.epoch_end(1) == (1, end)
    new = stage(log, small_batch(Random(1), 5), 2, 0)
    log.commit()
    log.close()
    log = opened(log.recovery_point, clean=True)
    assert b"".join(stored(log)) == kafka + new
    assert log.epoch_end(1) == (1, end)
    log.close()
