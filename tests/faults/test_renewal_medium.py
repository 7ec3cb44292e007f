"""What a failed write-back left in the page cache alone reaches a disk that works again, wherever
the part begins that is held against the medium: Linux keeps a file in folios of up to 2 MiB, and
drops none of which only a part is named.
"""

import os

import pytest
from failing_disk import FailingDisk

from appliance.base.disk import PAGE
from appliance.base.errors import StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.logstore.renewal import restore
from tests.broker_process import KAFKA

pytestmark = pytest.mark.skipif(KAFKA, reason="how a log is brought back is ours")


@pytest.mark.parametrize("position", [0, 3 * PAGE + 7, 207 * PAGE])
def test_it_is_written_again_wherever_it_is_looked_for_from(tmp_path, position):
    with FailingDisk(tmp_path) as failing:
        path, data = str(failing.mount / "segment"), os.urandom((6 << 20) - 5)
        disk = OsDisk()
        file = disk.create(path)
        try:
            file.pwritev([data[:position]], 0)
            file.sync()
            failing.fail()
            for at in range(position, len(data), 3 << 20):
                file.pwritev([data[at : at + (3 << 20)]], at)
            with pytest.raises(StorageFailed):
                file.sync()
            failing.mend()
            restore(disk, path, position)
            failing.evict()
            assert file.pread(len(data), 0) == data
        finally:
            file.close()
