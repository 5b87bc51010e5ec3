"""Reports a training run to scalebench.

One file, standard library only, Python 3.6 or later. In a run of
framework = "command" it can be imported as it stands; anywhere else, put it
beside your program: without scalebench every call does nothing.

    import scalebench

    for inputs, targets in batches:
        ...
        scalebench.step(samples=len(inputs))  # at the end of each step
    scalebench.epoch()
    scalebench.evaluate(accuracy=0.75)        # after an evaluation
    scalebench.report("parameters", 1.2e6)    # any other value of the run

Each rank calls step and epoch with its own samples. Where one process speaks
for all of them it says so first: scalebench.begin(everyone=True).

None of these calls ends your training. What cannot be recorded (an accuracy of
NaN, a full disk, a run folder that is gone) is said once, on standard error,
and is then missing from the results.

Underneath, Events writes lines of JSON, appended to a file of each rank's own
in the run folder; their format belongs to scalebench's Go package metrics,
which reads back in its tests what this file writes. Everything is in base
units: seconds, samples, bytes. What was not measured is None and becomes null,
never 0: a zero is a measurement.
"""

import atexit
import contextlib
import functools
import itertools
import json
import math
import os
import re
import signal
import socket
import sys
import threading
import time

FORMAT = 1  # of the events, metrics.FormatVersion
TICK = 1e-6  # seconds per unit of the time columns
STEPS_PER_LINE = 100  # steps that are kept back before a line is written
FLUSH_SECONDS = 1.0  # and the longest that they are kept back
PARTS = ("data_wait", "compute", "communication")
KNOWN = ("parameters", "gradient_bytes", "train_samples", "test_samples",
         "global_batch", "steps_per_epoch")  # counts that begin takes
MAX_SAMPLES = 1 << 32  # of a step, as package metrics reads them
MAX_COUNT = 1 << 53  # of anything else
LIBRARIES = ("site-packages/", "dist-packages/", "/lib/python",
             "/lib64/python", "<")  # in paths that are not the user's
FIGURE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
MAX_TEXT = 100000  # characters of a note or an error

_LOADED = time.monotonic()  # when this module was imported


def run_folder():
    """The folder of this run, which whoever started this program names."""
    try:
        return os.environ["SCALEBENCH_RUN"]
    except KeyError:
        raise RuntimeError("SCALEBENCH_RUN is not set: start this program"
                           " with scalebench run or submit") from None


def event_file(rank, restart):
    """The path of a rank's event file in the run folder."""
    return os.path.join(run_folder(), "events",
                        f"rank-{rank:05d}-{restart}.jsonl")


def process_start():
    """When the system started this process, as a reading of time.monotonic():
    initialisation counts from there, the interpreter's own start and imports
    included. Now, where the system does not say."""
    try:
        with open("/proc/self/stat", "rb") as file:
            # The fields follow the program's name, which is in brackets.
            started = int(file.read().rpartition(b")")[2].split()[19])
        boot = getattr(time, "CLOCK_BOOTTIME", 7)  # it has a name from 3.7 on
        ahead = _ahead(lambda: time.clock_gettime(boot))
        began = started / os.sysconf("SC_CLK_TCK") - ahead
    except Exception:  # other systems and sandboxes raise various errors
        return time.monotonic()
    now = time.monotonic()
    return began if started > 0 and began < now else now


def _ahead(clock):
    """How far a clock is ahead of time.monotonic(), in seconds. On a busy host
    a process may wait between reading the two, and what it waited would be
    taken for a difference of the clocks: they are read until that took less
    than a millisecond, ten times at most."""
    for _ in range(10):
        now = time.monotonic()
        ahead = clock() - now
        if time.monotonic() - now < 0.001:
            break
    return ahead


class Events:
    """One rank's event file. Safe for use by several threads.

    Steps are collected and written as columns: every 100 steps, every second,
    and before any other event, so that the order of the lines is the order of
    the calls. Each line goes out in a single write, so that a process killed
    at any moment leaves whole lines, and at most one unfinished one at the
    end.
    """

    def __init__(self, path, framework, rank, world_size, local_rank=0,
                 restart=0, ranks=1, began=None):
        """Makes the file and writes who writes it.

        world_size is what the framework itself says; ranks, how many of them
        from rank on the events are of. The clock began with this process, or
        at a reading of time.monotonic(). A file that is there already is an
        error: another process has this rank.
        """
        self.steps = 0  # recorded so far
        self.epochs = 0
        self._lock = threading.RLock()
        self._kept = []  # the steps kept back, as step has them
        self._torn = False  # whether the last line was written in part
        self._stopped = threading.Event()
        self._file = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        with contextlib.suppress(OSError):  # where folders cannot be synced
            folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        self._began = process_start() if began is None else began
        several = {"ranks": ranks} if ranks > 1 else {}
        self._append({"t": 0, "start": {
            "format": FORMAT, "unix": self._began + _ahead(time.time),
            "writer": "rank", "framework": framework, "rank": rank,
            "world_size": world_size, "local_rank": local_rank,
            "restart": restart, "host": socket.gethostname(),
            "pid": os.getpid(), **several}})
        threading.Thread(target=self._flush_each_second, daemon=True).start()

    def environment(self, **fields):
        """What was found out of where this rank runs: threads, versions, …"""
        self._write("environment", fields)

    def train(self, *, parameters=0, gradient_bytes=0, train_samples=0,
              test_samples=0, global_batch=0, steps_per_epoch=0,
              parameter_sha256="", at=None):
        """Starts the training clock: all is ready and no datum is touched.

        0 is a count that nobody knows. at is the time, as a reading of
        time.monotonic(), where it is not now.
        """
        self._write("train", {
            "parameters": parameters, "gradient_bytes": gradient_bytes,
            "train_samples": train_samples, "test_samples": test_samples,
            "global_batch": global_batch, "steps_per_epoch": steps_per_epoch,
            "parameter_sha256": parameter_sha256}, at)

    def step(self, duration, samples, data_wait=None, compute=None,
             communication=None):
        """Records the next step of this rank, in seconds and samples.

        A step lasts from the end of the one before it, or the start of the
        epoch, to its own end; the parts lie within and may overlap.
        """
        # After a step's computation none of this code is in the CPU's caches,
        # so do as little as possible here: only keep the numbers.
        with self._lock:
            self._kept.append(
                (duration, samples, data_wait, compute, communication))
            self.steps += 1
            if len(self._kept) >= STEPS_PER_LINE:
                self._flush()

    def epoch(self, *, samples, seconds, learning_rate=None, loss=None):
        """Ends an epoch of this rank. loss is its mean over the samples."""
        with self._lock:
            self.epochs += 1
            self._write("epoch", {
                "epoch": self.epochs, "step": self.steps, "samples": samples,
                "seconds": seconds, "loss": _finite(loss),
                "learning_rate": learning_rate})

    def gradients(self, *, epoch, samples, global_samples, steps, own,
                  averaged):
        """Records squared norms of gradients of the mean loss: own over the
        samples that this rank had in a step, averaged over the global ones;
        each entry is the mean over so many consecutive steps of the epoch."""
        with self._lock:
            self._write("gradients", {
                "epoch": epoch, "step": self.steps, "samples": samples,
                "global_samples": global_samples, "steps": steps, "own": own,
                "averaged": averaged})

    def figure(self, name, value, unit="", better=""):
        """Records a value of the whole run."""
        self._write("figure", {"name": name, "value": value, "unit": unit,
                               "better": better})

    def evaluation(self, *, accuracy, seconds, samples=None, loss=None):
        """Records an accuracy (0 to 1) on the test split, over all ranks.

        Only rank 0 calls it.
        """
        self._write("evaluation", {
            "epoch": self.epochs, "step": self.steps, "accuracy": accuracy,
            "loss": _finite(loss), "samples": samples, "seconds": seconds})

    def figure(self, name, value, unit="", note=""):
        """Records one number about the whole run; one rank's counts."""
        self._write("figure", {"name": name, "value": value, "unit": unit,
                               "note": note})

    def note(self, text):
        """Says what the figures really are; scalebench shows it with them."""
        self._write("note", {"text": text})

    def error(self, where, message):
        """Records a failure and its phase: "rendezvous", "data", "train", …"""
        self._write("error", {"where": where, "message": message})

    def stop(self, status, cause="", parameter_sha256=""):
        """Ends the file: "done", "failed" or "interrupted".

        Only the first call counts, and nothing is written after it.
        """
        with self._lock:
            self._flush()
            self._sync()  # what was measured, before it is said to be whole
            self._write("stop", {
                "status": status, "cause": cause, "steps": self.steps,
                "epochs": self.epochs, "parameter_sha256": parameter_sha256})
            self._sync()
            self._stopped.set()

    def _sync(self):
        """Makes what was written outlast a loss of power."""
        if not self._stopped.is_set():
            with contextlib.suppress(OSError):  # a pipe has no disk
                os.fsync(self._file)

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
        kept, self._kept = self._kept, []
        first = self.steps - len(kept)
        # A line for each stretch of steps with the same parts.
        for there, steps in itertools.groupby(
                kept, lambda step: [part is not None for part in step[2:]]):
            duration, samples, *parts = zip(*steps)
            columns = {"duration": _ticks(duration), "samples": samples}
            columns.update((name, _ticks(part)) for name, part, is_there
                           in zip(PARTS, parts, there) if is_there)
            self._append({"t": self._now(), "steps": {
                "first": first, "tick": TICK, **columns}})
            first += len(samples)

    def _write(self, kind, payload, at=None):
        with self._lock:
            self._flush()
            t = self._now() if at is None else at - self._began
            self._append({"t": t, kind: payload})

    def _append(self, event):
        if self._stopped.is_set():
            return
        line = json.dumps(event, allow_nan=False, separators=(",", ":"))
        data = line.encode() + b"\n"
        if self._torn:  # half a line precedes it
            data = b"\n" + data
        self._torn = True
        written = os.write(self._file, data)
        self._torn = 0 < written < len(data)
        if written != len(data):
            raise OSError(f"wrote {written} of {len(data)} bytes of an event:"
                          " is the file system full?")

    def _now(self):
        return time.monotonic() - self._began


def _ticks(column):
    """Seconds in units of TICK."""
    return [int(seconds / TICK) for seconds in column]


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


class Place:
    """A process's rank, from whichever launcher started it."""

    # Variables of PyTorch (scalebench's launchers and torchrun), Open MPI,
    # MPICH and its derivatives, and Horovod.
    LAUNCHERS = (
        ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
         "OMPI_COMM_WORLD_LOCAL_RANK"),
        ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
        ("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK"),
    )

    def __init__(self, environ, everyone=False):
        def count(name, default):
            return int(environ.get(name) or default)

        self.restart = count("SCALEBENCH_RESTART", 0)
        self.ranks = 1
        for rank, size, local_rank in self.LAUNCHERS:
            if environ.get(rank) and environ.get(size):
                self.rank, self.size = count(rank, 0), count(size, 1)
                self.local_rank = count(local_rank, 0)
                break
        else:
            # No launcher has set a rank: one process per node, which drives
            # all workers of its node.
            self.size = count("WORLD_SIZE", 1)
            self.ranks = count("LOCAL_WORLD_SIZE", 1)
            self.rank = count("SCALEBENCH_NODE", 0) * self.ranks
            self.local_rank = 0
        self.silent = everyone and self.rank > 0
        if everyone:
            self.ranks = self.size


class TwoOfOneRank(RuntimeError):
    """Two processes report as one rank: neither's figures would be right, so
    that this one error ends the program."""


def _number(value):
    """A finite number of whatever library as Python's own; None if it is not
    one, or a text, which would only look like one."""
    if value is None or isinstance(value, (str, bytes)):
        return None
    try:
        return _finite(float(value))
    except Exception:  # a library's type may raise anything
        return None


def _said(name, value):
    """_number of what may be left out; of anything else it is said."""
    number = _number(value)
    if number is None and value is not None:
        _warn(f"{name} of {value!r}: not a finite number; it is left out")
    return number


_warned = set()  # kinds of warnings that were given


def _warn(text):
    """Says once what is wrong, and whether it was this time; whatever it is,
    the training goes on."""
    kind = text.split(" of ")[0].split(":")[0]
    if kind not in _warned:
        _warned.add(kind)
        with contextlib.suppress(Exception):  # standard error may be closed
            print("scalebench: " + text[:500], file=sys.stderr, flush=True)
        return True
    return False


def _harmless(call):
    """Keeps what goes wrong in a call from ending the training."""
    @functools.wraps(call)
    def harmless(*args, **kwargs):
        try:
            return call(*args, **kwargs)
        except TwoOfOneRank:
            raise
        except Exception as error:
            _warn(f"recording fails: {type(error).__name__}: {error}; what is"
                  " not recorded is missing from the results")
    return harmless


class Training:
    """The account of a training loop by the clock: what step, epoch and
    evaluate say is timed from call to call."""

    def __init__(self, place, clock, known):
        self._place, self._pid = place, os.getpid()
        self._failure = None
        self._parts = {}
        self._samples, self._seconds = 0, 0.0  # of the epoch
        self._last = clock  # when the last step or evaluation ended
        if place.silent:
            return
        try:
            self._events = Events(
                event_file(place.rank, place.restart), "command", place.rank,
                place.size, place.local_rank, place.restart, place.ranks,
                began=min(process_start(), clock))
        except FileExistsError as error:
            raise TwoOfOneRank(
                f"another process reports as rank {place.rank} of this run"
                f" ({error.filename} exists): give each rank its own RANK in"
                " the environment, or let one process report for all with"
                " scalebench.begin(everyone=True)") from None
        self._events.train(at=clock, **known)
        self._before = sys.excepthook
        sys.excepthook = self._failed
        atexit.register(self._stop)

    def quiet(self):
        """Whether nothing is to be written: another process reports for this
        one, or this one was forked off it, to load data perhaps."""
        return self._place.silent or self._pid != os.getpid()

    def step(self, samples, parts):
        if self.quiet():
            return
        now = time.monotonic()
        duration, self._last = now - self._last, now
        count = _number(samples)
        if count is None or not 0 <= count <= MAX_SAMPLES or count % 1:
            _warn(f"a step of {samples!r} samples: want a whole number, 0 or"
                  " more; it is recorded as 0")
            count = 0
        self._parts.update(parts)
        times = {}
        for name, seconds in self._parts.items():
            value = _number(seconds)
            if value is None or value < 0:
                _warn(f"{name} of {seconds!r}: want seconds, 0 or more; it is"
                      " left out")
            else:
                times[name] = value
        self._parts = {}
        self._events.step(duration, int(count), **times)
        self._samples += int(count)
        self._seconds += duration

    @contextlib.contextmanager
    def part(self, name):
        begin = time.monotonic()
        try:
            yield
        finally:
            spent = time.monotonic() - begin
            self._parts[name] = self._parts.get(name, 0.0) + spent

    def epoch(self, learning_rate, loss):
        if self.quiet():
            return
        self._events.epoch(samples=self._samples, seconds=self._seconds,
                           learning_rate=_said("a learning rate",
                                               learning_rate),
                           loss=_said("a loss", loss))
        self._samples, self._seconds = 0, 0.0

    def evaluate(self, accuracy, loss, samples):
        if self.quiet():
            return
        now = time.monotonic()
        seconds, self._last = now - self._last, now
        fraction = _number(accuracy)
        if fraction is None or not 0 <= fraction <= 1:
            text = (f"an accuracy of {accuracy!r}: it is a fraction, from 0 to"
                    " 1; 75 % is 0.75. The evaluation is left out")
            if _warn(text):
                self.note(text)
            return
        if self._place.rank == 0:
            count = _said("the number of samples evaluated", samples)
            if count is not None and not 0 <= count <= MAX_COUNT:
                count = None
            self._events.evaluation(
                accuracy=fraction, seconds=seconds, loss=_said("a loss", loss),
                samples=None if count is None else int(count))

    def report(self, name, value, unit, better):
        if self.quiet() or self._place.rank != 0:
            return
        number = _number(value)
        if number is None:
            _warn(f"{name} of {value!r}: not a finite number; it is left out")
        elif not isinstance(name, str) or not FIGURE_NAME.match(name):
            _warn(f"report of the name {name!r}: want letters, digits and"
                  " underscores, a letter first; it is left out")
        elif better not in ("", "higher", "lower"):
            _warn(f"{name} of better={better!r}: want \"higher\", \"lower\" or"
                  " nothing; it is left out")
        else:
            self._events.figure(name, number, str(unit), better)

    def note(self, text):
        if not self.quiet():
            self._events.note(str(text)[:MAX_TEXT])

    def _failed(self, kind, error, traceback):
        self._failure = kind.__name__
        with contextlib.suppress(Exception):  # an error that cannot be told
            text = str(error)[:MAX_TEXT]
            if text:
                self._failure += ": " + text
            self._failure += _place(traceback)
        self._before(kind, error, traceback)

    @_harmless
    def _stop(self):
        if self.quiet():
            return
        if self._failure is None:
            self._events.stop("done")
        else:
            self._events.error("train", self._failure)
            self._events.stop("failed", self._failure)


def _place(traceback):
    """Where in the user's files a traceback ends: " (train.py:31)"."""
    own = last = ""
    while traceback is not None:
        path = traceback.tb_frame.f_code.co_filename
        last = f" ({os.path.basename(path)}:{traceback.tb_lineno})"
        if not any(part in path for part in LIBRARIES):
            own = last
        traceback = traceback.tb_next
    return own or last


class Lost:
    """A Training whose file cannot be made: nothing is recorded."""

    def step(self, samples, parts):
        pass

    def part(self, name):
        return _nothing()

    def epoch(self, learning_rate, loss):
        pass

    def evaluate(self, accuracy, loss, samples):
        pass

    def report(self, name, value, unit, better):
        pass

    def note(self, text):
        pass


_training = None  # of this process, from the first call on


@_harmless
def begin(everyone=False, **known):
    """Starts the training clock; call it when all is ready, before the loop.

    Without it the clock starts when this module is imported, so that setting
    up counts as training. everyone: this process, where its rank is 0, reports
    for all ranks, with their samples together, and what others report is left
    out. known are counts, where you have them: parameters, gradient_bytes,
    train_samples, test_samples, global_batch, steps_per_epoch.
    """
    _begin(time.monotonic(), everyone, known)


def _begin(clock, everyone=False, known=None):
    global _training
    if "SCALEBENCH_RUN" not in os.environ:
        return
    if _training is not None:
        _warn("scalebench.begin(): call it once, before any other function;"
              " this call has no effect")
        return
    counts = {}
    for name, value in (known or {}).items():
        number = _said(name, value) or 0
        if name not in KNOWN:
            _warn(f"{name}: scalebench.begin() does not take it; valid: "
                  + ", ".join(KNOWN))
        elif not 0 <= number <= MAX_COUNT:
            _warn(f"{name} of {value!r}: want a count; it is left out")
        else:
            counts[name] = int(number)
    try:
        _training = Training(Place(os.environ, everyone), clock, counts)
    except TwoOfOneRank:
        raise
    except Exception:
        _training = Lost()
        raise


def _begun():
    """The account of this process; None outside scalebench."""
    if _training is None and "SCALEBENCH_RUN" in os.environ:
        _begin(_LOADED)
        _training.note("the training clock starts when the program imports"
                       " scalebench.py and includes its setup:"
                       " scalebench.begin() was not called")
    return _training


@_harmless
def step(samples, data_wait=None, compute=None, communication=None):
    """Ends a training step of this rank on so many samples.

    It began when the step before it, or the evaluation since, ended. The parts
    of it that you measure are in seconds; see part as well.
    """
    training = _begun()
    if training is not None:
        given = zip(PARTS, (data_wait, compute, communication))
        training.step(samples, {k: v for k, v in given if v is not None})


def part(name):
    """Times a part of the step: with scalebench.part("communication"): …

    The parts are "data_wait", "compute" and "communication".
    """
    return _part(name) or _nothing()


@_harmless
def _part(name):
    if name not in PARTS:
        _warn(f"part: a step has no part {name!r}; valid: "
              + ", ".join(PARTS))
        return None
    training = _begun()
    return None if training is None else training.part(name)


@contextlib.contextmanager
def _nothing():
    yield


@_harmless
def epoch(learning_rate=None, loss=None):
    """Ends an epoch; loss is its mean over this rank's samples."""
    training = _begun()
    if training is not None:
        training.epoch(learning_rate, loss)


@_harmless
def evaluate(accuracy, loss=None, samples=None):
    """Ends an evaluation: an accuracy from 0 to 1 over all ranks.

    It took the time since the last step. Rank 0's counts; the others may call
    it, too. samples is how many were evaluated.
    """
    training = _begun()
    if training is not None:
        training.evaluate(accuracy, loss, samples)


@_harmless
def report(name, value, unit="", better=""):
    """Reports a value of the whole run, such as a figure of your own.

    unit is a base unit: "s", "B", "tokens/s"; nothing for a count or a
    fraction. better is "higher" or "lower". Rank 0's counts; the others may
    call it, too.
    """
    training = _begun()
    if training is not None:
        training.report(name, value, unit, better)


@_harmless
def note(text):
    """Says what the figures really are, to be shown with them."""
    training = _begun()
    if training is not None:
        training.note(text)
