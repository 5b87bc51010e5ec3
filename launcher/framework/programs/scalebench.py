"""Reports one rank of a training run to scalebench.

One file, standard library only: put it beside any training program. Events are
lines of JSON, appended to a file of their own in the run folder; their format
belongs to scalebench's Go package metrics, which reads back in its tests what
this file writes. Everything is in base units: seconds, samples, bytes. What
was not measured is None and becomes null, never 0: a zero is a measurement.

    events = scalebench.Events(path, framework="mine", rank=0, world_size=2)
    events.train(parameters=…, gradient_bytes=…, …)
    for …:
        events.step(duration, samples, data_wait=…)
    events.stop("done")
"""

import contextlib
import json
import math
import os
import signal
import socket
import threading
import time

FORMAT = 1  # of the events, metrics.FormatVersion
TICK = 1e-6  # seconds that one unit of the time columns stands for
STEPS_PER_LINE = 100  # steps that are kept back before a line is written
FLUSH_SECONDS = 1.0  # and the longest that they are kept back
PARTS = ("data_wait", "compute", "communication")


def run_folder():
    """The folder of this run, which whoever started this program names."""
    try:
        return os.environ["SCALEBENCH_RUN"]
    except KeyError:
        raise RuntimeError("SCALEBENCH_RUN is not set: this program is"
                           " started by scalebench run or submit") from None


def event_file(rank, restart):
    """The path of a rank's event file in the run folder."""
    return os.path.join(run_folder(), "events",
                        f"rank-{rank:05d}-{restart}.jsonl")


class Events:
    """One rank's event file. Safe for use by several threads.

    Steps are collected and written as columns: every 100 steps, every second,
    and before any other event, so that the order of the lines is the order of
    the calls. Each line goes out in a single write, so that a process killed
    at any moment leaves whole lines, and at most one unfinished one at the
    end.
    """

    def __init__(self, path, framework, rank, world_size, local_rank=0,
                 restart=0):
        """Makes the file and writes who writes it; the clock begins now.

        world_size is what the framework itself says. A file that is there
        already is an error: another process has this rank.
        """
        self.steps = 0  # recorded so far
        self.epochs = 0
        self._lock = threading.RLock()
        self._columns = None  # of the steps kept back
        self._first = 0  # index of the first of them
        self._stopped = threading.Event()
        self._file = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        self._began = time.monotonic()
        self._append({"t": 0, "start": {
            "format": FORMAT, "unix": time.time(), "writer": "rank",
            "framework": framework, "rank": rank, "world_size": world_size,
            "local_rank": local_rank, "restart": restart,
            "host": socket.gethostname(), "pid": os.getpid()}})
        threading.Thread(target=self._flush_each_second, daemon=True).start()

    def environment(self, **fields):
        """What was found out of where this rank runs: threads, versions, …"""
        self._write("environment", fields)

    def train(self, *, parameters, gradient_bytes, train_samples, test_samples,
              global_batch, steps_per_epoch, parameter_sha256):
        """Starts the training clock: all is ready and no datum is touched."""
        self._write("train", {
            "parameters": parameters, "gradient_bytes": gradient_bytes,
            "train_samples": train_samples, "test_samples": test_samples,
            "global_batch": global_batch, "steps_per_epoch": steps_per_epoch,
            "parameter_sha256": parameter_sha256})

    def step(self, duration, samples, data_wait=None, compute=None,
             communication=None):
        """Records the next step of this rank, in seconds and samples.

        A step lasts from the end of the one before it, or the start of the
        epoch, to its own end; the parts lie within and may overlap.
        """
        parts = dict(zip(PARTS, (data_wait, compute, communication)))
        with self._lock:
            names = ["duration", "samples"]
            names += [part for part in PARTS if parts[part] is not None]
            if self._columns is not None and names != list(self._columns):
                self._flush()
            if self._columns is None:
                self._first = self.steps
                self._columns = {name: [] for name in names}
            self.steps += 1
            for name, column in self._columns.items():
                if name == "samples":
                    column.append(samples)
                else:
                    seconds = duration if name == "duration" else parts[name]
                    column.append(int(seconds / TICK))
            if len(self._columns["duration"]) >= STEPS_PER_LINE:
                self._flush()

    def epoch(self, *, samples, seconds, learning_rate, loss=None):
        """Ends an epoch of this rank. loss is its mean over the samples."""
        with self._lock:
            self.epochs += 1
            self._write("epoch", {
                "epoch": self.epochs, "step": self.steps, "samples": samples,
                "seconds": seconds, "loss": _finite(loss),
                "learning_rate": learning_rate})

    def evaluation(self, *, accuracy, samples, seconds, loss=None):
        """Records an accuracy (0 to 1) on the test split, over all ranks.

        Only rank 0 calls it.
        """
        self._write("evaluation", {
            "epoch": self.epochs, "step": self.steps, "accuracy": accuracy,
            "loss": _finite(loss), "samples": samples, "seconds": seconds})

    def error(self, where, message):
        """Records a failure and its phase: "rendezvous", "data", "train", …"""
        self._write("error", {"where": where, "message": message})

    def stop(self, status, cause="", parameter_sha256=""):
        """Ends the file: "done", "failed" or "interrupted".

        Only the first call counts, and nothing is written after it.
        """
        with self._lock:
            self._write("stop", {
                "status": status, "cause": cause, "steps": self.steps,
                "epochs": self.epochs, "parameter_sha256": parameter_sha256})
            self._stopped.set()

    def flush(self):
        """Writes the steps kept back."""
        with self._lock:
            self._flush()

    def _flush_each_second(self):
        while not self._stopped.wait(FLUSH_SECONDS):
            # A failed write is raised again where the program reports.
            with contextlib.suppress(OSError):
                self.flush()

    def _flush(self):
        if self._columns is None:
            return
        columns, self._columns = self._columns, None
        self._append({"t": self._now(), "steps": {
            "first": self._first, "tick": TICK, **columns}})

    def _write(self, kind, payload):
        with self._lock:
            self._flush()
            self._append({"t": self._now(), kind: payload})

    def _append(self, event):
        if self._stopped.is_set():
            return
        line = json.dumps(event, allow_nan=False, separators=(",", ":"))
        data = line.encode() + b"\n"
        written = os.write(self._file, data)
        if written != len(data):
            raise OSError(f"wrote {written} of {len(data)} bytes of an event:"
                          " is the file system full?")

    def _now(self):
        return time.monotonic() - self._began


def _finite(number):
    """The number; None if it is NaN or infinite, which JSON cannot say."""
    if number is None or not math.isfinite(number):
        return None
    return number


class Interruption:
    """Hears the signals that ask a run to end: SIGTERM, SIGUSR1, SIGINT.

    The program looks at cause after each step, and ends in order with
    events.stop("interrupted", cause). A program that cannot, for its step
    waits on a rank that is gone, is ended after a grace, with what was
    measured kept.
    """

    def __init__(self, grace=15.0):
        """Is made in the main thread, before the first signal may come."""
        self.cause = None  # in words, once there is one
        self.events = None  # told how the run ended when the grace is over
        self._grace = grace
        # Handlers written in Python wait for the main thread, which may be
        # within a collective for minutes. The wake-up pipe does not.
        self._pipe, wake = os.pipe()
        os.set_blocking(wake, False)
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        number = os.read(self._pipe, 1)[0]
        cause = f"signal {signal.Signals(number).name[3:]}"
        if number == signal.SIGUSR1:
            cause += ": the job's time limit is near"
        self.cause = cause
        time.sleep(self._grace)
        if self.events is not None:
            with contextlib.suppress(OSError):
                self.events.stop("interrupted", cause)
        os._exit(1)
