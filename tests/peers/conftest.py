"""What tests of links share: the other side runs in a thread beside the test."""

import threading

import pytest


@pytest.fixture
def beside():
    """Starts a function in a thread that the test waits for; what went wrong there fails it."""
    threads, wrong = [], []

    def start(run):
        def kept():
            try:
                run()
            except BaseException as cause:
                wrong.append(cause)

        threads.append(threading.Thread(target=kept, daemon=True))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not wrong
