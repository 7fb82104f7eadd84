"""ddplaunch --events: what happens as lines of JSON, and what is in their way."""
import json
import os
import signal
import subprocess
import time
import unittest

from launcher_harness import DDPLAUNCH, Job, alive_with, wait_until


class EventsJob(Job):
    def __init__(self, *actions, path="{folder}/events", options=(), **more):
        super().__init__(*actions, options=[f"--events={path}", *options], **more)
        self.events_path = path.replace("{folder}", self.folder)

    def events(self):
        with open(self.events_path, "rb") as file:
            text = file.read()
        assert text == b"" or text.endswith(b"\n"), text[-200:]
        return [json.loads(line) for line in text.splitlines()]


def named(events, name):
    return [event for event in events if event["event"] == name]


class Events(unittest.TestCase):
    def check_order(self, events):
        times = [event["time"] for event in events]
        self.assertEqual(times, sorted(times))
        self.assertLess(abs(times[-1] - time.time()), 60)
        self.assertEqual(events[0]["event"], "launched")
        self.assertEqual(events[-1]["event"], "verdict")

    def test_a_job_that_succeeds(self):
        with EventsJob("report={report}:ready", "exit=0") as job:
            self.assertEqual(job.wait(), 0)
            pids = {int(rank): int(pid) for rank, pid in job.expect("ready", 2)}
            events = job.events()
        self.check_order(events)
        self.assertEqual([event["event"] for event in events],
                         ["launched", "store_opened", "workers_started", "worker_exited", "worker_exited", "round_over",
                          "verdict"])
        self.assertEqual(named(events, "workers_started")[0]["pids"], [pids[0], pids[1]])
        self.assertEqual({event["rank"]: event["pid"] for event in named(events, "worker_exited")}, pids)
        self.assertEqual(events[-1]["exit_code"], 0)

    def test_the_story_of_restarts(self):
        with EventsJob("only-rank=1", "exit=3", "wait", options=["--max-restarts=5"]) as job:
            self.assertEqual(job.wait(), 3)
            events = job.events()
        self.check_order(events)
        self.assertEqual([event["restart_count"] for event in named(events, "restart")], [1, 2, 3, 4, 5])
        for number in range(1, 7):
            story = [event["event"] for event in events if event.get("round") == number and event["event"] != "restart"]
            self.assertEqual(story, ["store_opened", "workers_started", "worker_exited", "death_published", "stopping",
                                     "worker_exited", "round_over"])
        # The first three restarts come at once, then there are pauses, which double.
        pauses = [event["seconds"] for event in named(events, "waiting") if event["pausing"]]
        self.assertEqual([round(pause, 1) for pause in pauses], [0.1, 0.2])
        over = {event["round"]: event["time"] for event in named(events, "round_over")}
        begun = {event["round"]: event["time"] for event in named(events, "restart")}
        self.assertGreater(begun[5] - over[4], 0.09)
        self.assertGreater(begun[6] - over[5], 0.19)
        verdict = events[-1]
        self.assertEqual((verdict["exit_code"], verdict["restarts_used"], verdict["failure"]["rank"]), (3, 5, 1))

    def test_without_a_restart_delay_there_are_no_pauses(self):
        with EventsJob("only-rank=1", "exit=3", "wait", options=["--max-restarts=6", "--restart-delay=0"]) as job:
            self.assertEqual(job.wait(), 3)
            events = job.events()
        self.assertEqual(len(named(events, "restart")), 6)
        self.assertEqual(named(events, "waiting"), [])

    def test_signals_and_suspension(self):
        with EventsJob("report-on=10:{report}:got", "ignore=15", "report={report}:ready", "wait",
                       options=["--shutdown-timeout=0"], preexec=os.setpgrp) as job:
            job.expect("ready", 2)
            job.process.send_signal(signal.SIGUSR1)
            job.expect("got", 2)
            os.kill(job.guardian, signal.SIGTSTP)
            os.waitpid(job.guardian, os.WUNTRACED)
            os.kill(job.guardian, signal.SIGCONT)
            wait_until(lambda: named(job.events(), "resumed"), "an event")
            job.process.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait(), 143)
            events = job.events()
        self.check_order(events)
        self.assertEqual([event.get("signal_name", event["event"]) for event in events
                          if event["event"] in ("signal", "suspended", "resumed", "stopping", "worker_killed")],
                         ["SIGUSR1", "SIGTSTP", "suspended", "SIGCONT", "resumed", "SIGTERM", "stopping",
                          "worker_killed", "worker_killed"])

    def test_an_existing_file_is_added_to(self):
        with Job("exit=0") as other, EventsJob("exit=0", path=os.path.join(other.folder, "events")) as first:
            self.assertEqual(first.wait(), 0)
            with EventsJob("exit=0", path=first.events_path) as second:
                self.assertEqual(second.wait(), 0)
                self.assertEqual(len(named(second.events(), "launched")), 2)


class InTheWay(unittest.TestCase):
    def test_a_file_that_cannot_be_opened_is_a_usage_error(self):
        with Job("exit=0") as job:
            link = os.path.join(job.folder, "link")
            os.symlink(os.path.join(job.folder, "elsewhere"), link)
            for path, why in ((job.folder, "directory"), (os.path.join(job.folder, "no", "events"), "No such file"),
                              (link, "symbolic link")):
                program = ["--no-python", "touch", os.path.join(job.folder, "ran")]
                done = subprocess.run([DDPLAUNCH, f"--events={path}", *program], capture_output=True, text=True,
                                      check=False)
                self.assertEqual(done.returncode, 2)
                self.assertIn(why, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)
                self.assertFalse(os.path.exists(os.path.join(job.folder, "ran")))

    def test_a_full_disk_is_said_once_and_costs_nothing(self):
        with EventsJob("exit=3", path="/dev/full", options=["--max-restarts=2"]) as job:
            self.assertEqual(job.wait(), 3)
            self.assertEqual(job.stderr().count("--events"), 1)
            self.assertIn("lines are lost: No space left on device", job.stderr())

    def test_a_pipe_that_nobody_reads_holds_up_nothing(self):
        with Job("exit=0") as other:
            pipe = os.path.join(other.folder, "events")
            os.mkfifo(pipe)
            # More than fits into a pipe: a line for each of many workers, several times.
            with EventsJob("exit=3", path=pipe, workers=32, options=["--max-restarts=40", "--restart-delay=0"]) as job:
                self.assertEqual(job.wait(), 3)
                self.assertEqual(job.stderr().count("--events"), 1)
                self.assertEqual(alive_with(job.mark), [])

    def test_a_pipe_that_somebody_reads_late_gets_all(self):
        with Job("exit=0") as other:
            pipe = os.path.join(other.folder, "events")
            os.mkfifo(pipe)
            with EventsJob("report={report}:ready", "wait-for={folder}/go", path=pipe) as job:
                job.expect("ready", 2)
                with open(pipe, "rb") as reader:
                    job.touch("go")
                    self.assertEqual(job.wait(), 0)
                    events = [json.loads(line) for line in reader.read().splitlines()]
                self.assertEqual((events[0]["event"], events[-1]["event"]), ("launched", "verdict"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
