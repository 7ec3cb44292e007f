"""Jobs run on threads and come back with what became of them."""

import os
import resource
import threading
from threading import Thread

from appliance.shell.flusher import THREADS, Flusher
from tests.descriptors import readable


def collect(flusher, count):
    done = []
    while len(done) < count:
        assert readable(flusher.fd, 10)
        done += flusher.take_ended()
    return done


def test_every_job_comes_back_with_its_tag_and_its_failure():
    flusher = Flusher()
    ran = []
    for number in range(20):

        def job(number=number):
            if number % 5 == 0:
                raise OSError(number)
            ran.append(number)

        flusher.submit(number, job)
    done = collect(flusher, 20)
    assert flusher.outstanding() == 0
    assert sorted(ran) == [n for n in range(20) if n % 5]
    assert {d.tag: d.failure is None for d in done} == {n: n % 5 != 0 for n in range(20)}
    assert all(d.took_ns >= 0 for d in done)
    flusher.close()


def test_one_job_after_the_other_needs_one_thread():
    flusher = Flusher()
    for number in range(THREADS + 2):
        flusher.submit(number, lambda: None)
        collect(flusher, 1)
    assert flusher.threads() == 1
    flusher.close()


def test_where_no_thread_can_be_started_jobs_run_here_and_later_ones_on_threads(monkeypatch):
    flusher, ran = Flusher(2), []
    with monkeypatch.context() as planted:
        planted.setattr(Thread, "start", no_more)
        for number in range(3):
            flusher.submit((number,), lambda: ran.append(threading.current_thread()))
        assert [done.tag for done in collect(flusher, 3)] == [(0,), (1,), (2,)]
        assert set(ran) == {threading.main_thread()} and flusher.threads() == 0
    flusher.submit((3,), lambda: ran.append(threading.current_thread()))
    assert [done.tag for done in collect(flusher, 1)] == [(3,)]
    assert ran[-1] is not threading.main_thread() and flusher.threads() == 1
    flusher.close()


def no_more(self):
    raise RuntimeError("can't start new thread")


def test_it_waits_also_where_many_files_are_open():
    """A descriptor above 1,023, of which `select` knows nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    opened = []
    try:
        while not opened or opened[-1] < 1100:
            opened.append(os.dup(0))
        flusher = Flusher(1)
        assert flusher.fd > 1023
        flusher.submit((1,), lambda: None)
        flusher.wait()
        assert [done.tag for done in flusher.take_ended()] == [(1,)]
        flusher.close()
    finally:
        for fd in opened:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
