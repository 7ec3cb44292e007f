"""What `test_system_calls.py` tries a slice of, by a thousand seeds."""

import pytest
from test_system_calls import suffered

from tests.broker_process import KAFKA

pytestmark = [
    pytest.mark.timeout(7200),
    pytest.mark.skipif(KAFKA, reason="its calls are not ours"),
]
RUNS, FIRST = 1000, 10_000


def test_any_call_may_fail_a_thousand_times(tmp_path):
    torture = suffered(tmp_path, range(FIRST, FIRST + RUNS))
    assert len(torture.hits) > 30, torture.report()
