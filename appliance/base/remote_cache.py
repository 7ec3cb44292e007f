"""Where an I/O process keeps what it fetched from a remote store, for it and for the network
processes that send from there: a folder for each I/O process, a file for each number."""

from typing import Final

FOLDER: Final = "penstock.remote-cache"
"""In the data folder. All of it can be fetched again: it is emptied at each start, and is no part
of a backup."""

SUFFIX: Final = ".log"
"""Of every file, so that a chunk of a segment is opened as a segment is."""


def cache_folder(data_dir: str, ioproc: int) -> str:
    """The folder of an I/O process."""
    return f"{data_dir}/{FOLDER}/{ioproc}"


def cached_stem(folder: str, number: int) -> str:
    """The path of a file in that folder, without its suffix."""
    return f"{folder}/{number:020d}"
