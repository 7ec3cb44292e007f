"""What an I/O process has spent for a request is on its connection's bill, and is no answer."""

from types import SimpleNamespace

import pytest

from appliance.authorization.rights import OURSELVES
from appliance.handlers.exchange import Exchange, Handler, never
from appliance.netproc.connections.request_time import Account, Stopwatch
from appliance.netproc.in_flight.exchanges import NO_NUMBER, Exchanges
from appliance.netproc.requests.completions import Completions
from appliance.ring.messages import APPENDED, SPENT, Message
from appliance.ring.process_table import IOPROC, Peer

pytestmark = pytest.mark.interpreted("completions without a host")
HOME = Peer(IOPROC, 0)


def message(op, token, a=0):
    return Message(op, 1, 0, token, a, 0, 0, 0, 0, 0, 0, 0, 0, 0)


def test_a_bill_comes_before_the_answer_and_is_no_answer():
    told = []
    exchanges = Exchanges()
    watch = Stopwatch(SimpleNamespace(monotonic_ns=lambda: 5))
    completions = Completions(None, exchanges, None, watch)
    connection = SimpleNamespace(closed=False, account=Account())
    handler = Handler(0, "Produce", 3, 13, never, lambda *answer: told.append(answer[2]))
    x = Exchange(NO_NUMBER, handler, 12, 7, OURSELVES, 0, 0, connection)
    exchanges.number_exchange(x)
    x.pending |= {3: 0, 4: 0}
    token = x.number << 32
    completions.handle(HOME, [message(SPENT, token | 3, 70), message(SPENT, token | 4, 5)])
    assert not told and x.pending.keys() == {3, 4}
    completions.handle(HOME, [message(SPENT, token | 3, 700), message(APPENDED, token | 3)])
    assert told == [3] and x.pending.keys() == {4}
    assert watch.bill(connection.account) == 775
    assert watch.bill(connection.account) == 0
    completions.handle(HOME, [message(SPENT, (x.number + 1) << 32, 9)])  # who has gone
    assert not told[1:]
