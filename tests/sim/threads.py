"""Threads whose jobs end when a test wants them to."""

from appliance.shell.flusher import run


class Threads:
    """Jobs that are done at once, or (`held`) when the test says so."""

    def __init__(self):
        self.jobs, self.done, self.held = [], [], False

    def submit(self, tag, job):
        self.jobs.append((tag, job))
        if not self.held:
            self.run()

    def run(self):
        jobs, self.jobs = self.jobs, []
        self.done += [run(*one) for one in jobs]

    def take_ended(self):
        done, self.done = self.done, []
        return done

    def hush(self):
        pass
