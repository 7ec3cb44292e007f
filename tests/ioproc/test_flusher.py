"""Jobs run on threads and come back with what became of them."""

import select

from appliance.shell.flusher import THREADS, Flusher


def collect(flusher, count):
    done = []
    while len(done) < count:
        select.select([flusher.fd], [], [], 10)
        done += flusher.take()
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
