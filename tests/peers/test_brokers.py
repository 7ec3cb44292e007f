"""Connections to other brokers: one to each, where it is registered now."""

from peers.other_side import ASK, METADATA, greeted, metadata, server, turns

from appliance.base.clock import OsClock
from appliance.base.errors import NETWORK_EXCEPTION, PeerError
from appliance.peers.brokers import Brokers
from appliance.peers.conversation import NEVER
from benchmarks.kafka import free_port

__all__ = ["server", "turns"]  # fixtures
VERSIONS = range(12, 13)


def brokers_at(turns, where):
    return Brokers(where.get, turns, OsClock(), "node 1")


def one_link(brokers):
    (link,) = brokers.links.values()
    return link


def test_a_broker_is_asked_at_the_address_that_it_registered(turns, server):
    brokers, heard = brokers_at(turns, {2: server.getsockname()}), []
    assert brokers.run_once() == NEVER and not brokers.links
    assert brokers.ask_peer(2, METADATA, VERSIONS, ASK, heard.append, 10_000)
    other = greeted(turns, brokers, server, lambda: one_link(brokers))
    other.answer(other.take(), metadata())
    turns.until(brokers, lambda: heard)
    assert heard[0].controller_id == 2
    assert brokers.ask_raw(2, METADATA, VERSIONS, ASK, heard.append, 10_000)
    brokers.run_once()
    other.answer(other.take(), metadata())
    turns.until(brokers, lambda: len(heard) == 2)
    assert heard[1].version == 12 and len(brokers.links) == 1
    brokers.close()
    other.sock.close()


def test_nobody_is_asked_who_is_not_registered(turns):
    heard = []
    assert not brokers_at(turns, {}).ask_peer(2, METADATA, VERSIONS, ASK, heard.append, 10_000)
    assert not heard


def test_who_registers_elsewhere_is_asked_there(turns, server):
    where = {2: ("127.0.0.1", free_port())}
    brokers, heard = brokers_at(turns, where), []
    brokers.ask_peer(2, METADATA, VERSIONS, ASK, heard.append, 10_000)
    where[2] = server.getsockname()
    brokers.ask_peer(2, METADATA, VERSIONS, ASK, heard.append, 10_000)
    (lost,) = heard
    assert isinstance(lost, PeerError) and lost.code == NETWORK_EXCEPTION
    other = greeted(turns, brokers, server, lambda: one_link(brokers))
    other.answer(other.take(), metadata())
    turns.until(brokers, lambda: len(heard) == 2)
    assert heard[1].controller_id == 2
    brokers.close()
    other.sock.close()
