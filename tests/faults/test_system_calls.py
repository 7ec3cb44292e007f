"""A call of the operating system that fails costs no process, no acknowledged record, and tells
clients nothing but codes that mean it: a slice of all calls."""

import pytest
from system_calls import CALLS, ERRORS, Torture, compiled

from tests.broker_process import KAFKA

pytestmark = pytest.mark.skipif(KAFKA, reason="its calls are not ours")
SLICE, SLICE_FROM = 35, 500


def suffered(folder, seeds):
    """The torture of these seeds, after which nothing has failed."""
    library = compiled(folder)
    if library is None:
        pytest.skip("there is no cc to make the library with")
    torture = Torture(folder, library, CALLS, ERRORS)
    with torture.broker:
        torture.learn()
        for seed in seeds:
            torture.run(seed)
    assert not torture.failures, torture.failures
    return torture


@pytest.mark.timeout(300)
def test_any_call_may_fail(tmp_path):
    torture = suffered(tmp_path, range(SLICE_FROM, SLICE_FROM + SLICE))
    assert sum(torture.hits.values()) > SLICE // 6, f"faults do not come about: {torture.report()}"
