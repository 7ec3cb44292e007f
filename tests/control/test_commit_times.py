"""What a commit of the metadata log took, one followed at a time."""

from appliance.control.quorum.commit_times import CommitTimes


def test_a_commit_is_timed_from_when_it_was_seen_to_when_it_was_agreed():
    times = CommitTimes()
    times.record_commits(True, 5, 5, 10)
    times.record_commits(True, 5, 8, 100)
    times.record_commits(True, 6, 9, 150)
    times.record_commits(True, 8, 9, 400)
    assert times.take_totals() == (1, 300)
    times.record_commits(True, 9, 9, 450)
    assert times.take_totals() == (1, 50), "the next one was followed from the end of the first"
    assert times.take_totals() == (0, 0), "told once"


def test_what_a_leader_did_not_see_agreed_is_not_timed():
    times = CommitTimes()
    times.record_commits(True, 5, 8, 100)
    times.record_commits(False, 5, 8, 200)
    times.record_commits(False, 8, 8, 300)
    times.record_commits(True, 8, 8, 400)
    assert times.take_totals() == (0, 0)
