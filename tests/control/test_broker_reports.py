"""What I/O processes report to the controller: many in one request, the newest of each."""

from types import SimpleNamespace
from uuid import UUID

import pytest

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.control.broker.lifecycle import UNKNOWN
from appliance.control.broker.reports import (
    ALTER_PARTITION,
    ASSIGN_REPLICAS,
    MOST,
    Proposal,
    Report,
    folders,
    new_isrs,
    not_done,
)
from appliance.replication.isr_change import IsrChange
from appliance.wire.build import build
from appliance.wire.messages import decode_request, encode_request, request_type

A, B = (bytes([n]) * 16 for n in (1, 2))
BROKER, EPOCH = 3, 40


class Controller:
    def __init__(self):
        self.known = True
        self.asked = []

    def ask_controller(self, api_key, values, done, timeout_ms):
        version = {ALTER_PARTITION: 3, ASSIGN_REPLICAS: 0}[api_key]
        body = encode_request(build(request_type(api_key, version), values))
        self.asked.append((decode_request(api_key, version, body), done))


@pytest.fixture
def controller():
    return Controller()


def proposal(topic_id=A, partition=0, epoch=1, isr=None):
    return Proposal(0, 7, IsrChange(topic_id, partition, 5, epoch, isr or {3: 40, 1: -1}))


def put(report, *proposals):
    for one in proposals:
        report.add_report((one.change.topic_id, one.change.partition), one)


def test_all_that_came_goes_in_one_request_the_newest_of_each_partition(controller):
    report = Report(ALTER_PARTITION, BROKER, controller, new_isrs)
    put(report, proposal(A, 0, 1), proposal(A, 1, 1), proposal(B, 0, 1), proposal(A, 0, 2))
    report.send_report(EPOCH)
    [(request, done)] = controller.asked
    assert (request.broker_id, request.broker_epoch) == (BROKER, EPOCH)
    found = {
        (topic.topic_id.bytes, row.partition_index): row.partition_epoch
        for topic in request.topics
        for row in topic.partitions
    }
    assert found == {(A, 0): 2, (A, 1): 1, (B, 0): 1}
    row = request.topics[0].partitions[0]
    assert row.leader_epoch == 5
    isr = [(one.broker_id, one.broker_epoch) for one in row.new_isr_with_epochs]
    assert isr == [(3, 40), (1, -1)]
    put(report, proposal(B, 1, 1))
    report.send_report(EPOCH)
    assert len(controller.asked) == 1, "one request at a time"
    done(PeerError(errors.NETWORK_EXCEPTION, ""))
    report.send_report(EPOCH)
    assert len(controller.asked) == 2
    report.send_report(EPOCH)
    assert len(controller.asked[1][0].topics) == 1, "nothing is asked twice"


def test_thousands_go_in_several_requests_one_after_the_other(controller):
    report = Report(ALTER_PARTITION, BROKER, controller, new_isrs)
    put(report, *(proposal(A, at, 1) for at in range(2 * MOST + 1)))
    sizes = []
    for at in range(3):
        report.send_report(EPOCH)
        report.send_report(EPOCH)
        assert len(controller.asked) == at + 1
        request, done = controller.asked[at]
        sizes.append(sum(len(topic.partitions) for topic in request.topics))
        done(PeerError(errors.NETWORK_EXCEPTION, ""))
    assert sizes == [MOST, MOST, 1]


@pytest.mark.parametrize(("epoch", "known"), [(UNKNOWN, True), (EPOCH, False)])
def test_who_is_not_registered_or_knows_no_controller_waits(controller, epoch, known):
    report = Report(ALTER_PARTITION, BROKER, controller, new_isrs)
    put(report, proposal())
    controller.known = known
    report.send_report(epoch)
    assert not controller.asked
    controller.known = True
    report.send_report(EPOCH)
    assert len(controller.asked) == 1


def test_a_home_is_told_what_is_out_of_the_question_and_nothing_else():
    codes = (errors.NONE, errors.INELIGIBLE_REPLICA, errors.INVALID_UPDATE_VERSION,
             errors.OPERATION_NOT_ATTEMPTED, errors.FENCED_LEADER_EPOCH)  # fmt: skip
    proposals = {(A, at): proposal(A, at) for at in range(len(codes))}
    rows = [SimpleNamespace(partition_index=at, error_code=c) for at, c in enumerate(codes)]
    topic = SimpleNamespace(topic_id=UUID(bytes=A), partitions=rows)
    answer = SimpleNamespace(error_code=errors.NONE, topics=[topic])
    told = [(one.change.partition, code) for one, code in not_done(proposals, answer)]
    assert told == [(1, errors.INELIGIBLE_REPLICA), (3, errors.OPERATION_NOT_ATTEMPTED)]
    refused = SimpleNamespace(error_code=errors.STALE_BROKER_EPOCH, topics=[])
    assert not list(not_done(proposals, refused))
    assert not list(not_done(proposals, PeerError(errors.NETWORK_EXCEPTION, "")))


def test_folders_are_said_by_folder(controller):
    report = Report(ASSIGN_REPLICAS, BROKER, controller, folders)
    one, other = b"x" * 16, b"y" * 16
    for key, folder in (((A, 0), one), ((A, 1), other), ((B, 0), one), ((A, 0), other)):
        report.add_report(key, folder)
    report.send_report(EPOCH)
    [(request, _)] = controller.asked
    found = {
        (folder.id_.bytes, topic.topic_id.bytes, row.partition_index)
        for folder in request.directories
        for topic in folder.topics
        for row in topic.partitions
    }
    assert found == {(other, A, 0), (other, A, 1), (one, B, 0)}
