"""A call of the operating system that fails while files are opened and read costs no process, no
acknowledged record, and tells clients nothing but codes that mean it."""

import pytest
from system_calls import Torture, compiled

from tests.broker_process import KAFKA

pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(KAFKA, reason="its calls are not ours")]
CALLS, ERRORS = ("open", "pread"), ("EIO", "EMFILE", "ENOMEM")
FAULTS = 12


def test_opening_and_reading_may_fail(tmp_path):
    library = compiled(tmp_path)
    if library is None:
        pytest.skip("there is no cc to make the library with")
    torture = Torture(tmp_path, library, CALLS, ERRORS)
    with torture.broker:
        torture.learn()
        seed = 500
        while sum(torture.hits.values()) < FAULTS:
            assert seed < 600, f"faults do not come about: {torture.report()}"
            torture.run(seed)
            seed += 1
    assert not torture.failures, torture.failures
    assert not any(cost.startswith("process") for cost in torture.costs), torture.costs
