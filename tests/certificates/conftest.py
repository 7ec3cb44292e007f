import os

import pytest

from tests.certificates.shown import Place


@pytest.fixture
def place(tmp_path):
    """A listener's files, and a log that can be read."""
    read_fd, write_fd = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(read_fd, False)
    with open(read_fd, "rb", buffering=0) as read, open(write_fd, "wb", buffering=0):
        yield Place(tmp_path, read, write_fd)
