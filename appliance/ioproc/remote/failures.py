"""Kinds of failures of a question to the remote store, and the line that is no question.

A module of its own, so that an I/O process does not load what only the process beside it needs.
"""

from typing import Final

THREADS: Final = "threads"
"""A line that changes how many threads there are, and has no answer."""

STORE: Final = "store"
"""The store refuses."""
MISSING: Final = "missing"
"""It does not have the bytes that the metadata says."""
LOCAL: Final = "local"
"""A file of this host cannot be read or written."""
FAULT: Final = "fault"
"""An exception that nobody expected."""
PROCESS: Final = "process"
"""The process ended."""
GARBAGE: Final = "garbage"
"""The store has other bytes than were written."""
FENCED: Final = "fenced"
"""A newer leader has claimed the partition in the store."""
