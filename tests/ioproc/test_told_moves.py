"""What an I/O process tells the others of its moves between folders."""

from types import SimpleNamespace

import pytest

from appliance.ioproc.main import IoProcess
from appliance.ring.process_table import IOPROC, Peer, ProcessTable

pytestmark = pytest.mark.interpreted("a shell without its parts is not of the compiled classes")


def test_whether_it_moves_something_is_told_while_it_does():
    memory = memoryview(bytearray(ProcessTable.bytes_needed(2, 1)))
    table = ProcessTable(memory, ioprocs=2, netprocs=1)
    process = IoProcess.__new__(IoProcess)
    moves = SimpleNamespace(under_way=False)
    process._me, process._processes, process._moving = Peer(IOPROC, 1), table, False
    process._parts = SimpleNamespace(moves=moves)
    told = []
    for moves.under_way in (False, True, True, False):
        process._tell_moves()
        told.append(table.moving)
    assert told == [0, 1, 1, 0]
