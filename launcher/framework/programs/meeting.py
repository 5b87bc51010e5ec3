"""Lets the ranks tell each other a word before their framework has begun.

Rank 0 listens at the run's address, each other rank sends its word, and all
get the list of all words, a line of JSON each way. Before that both ends prove
that they know the run's nonce; strangers cost rank 0 a thread each for a few
seconds, and keep no rank waiting.
"""

import collections
import json
import selectors
import socket
import threading
import time

import handshake
import scalebench

PATIENCE = 600  # seconds, for the last rank to have imported its framework

_PURPOSE = "meeting"
_LONGEST = 4096  # bytes of a rank's word, as it is sent
_UNPROVEN = 256  # callers held at once; the oldest is dropped for the next


class Port:
    """A free port of this host on the interface to the other ranks, kept
    until the with statement ends."""

    def __init__(self, place):
        self._socket = socket.socket()
        self._socket.bind((place.own_address(), 0))
        self.address = "{}:{}".format(*self._socket.getsockname())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()


def exchange(place, word):
    """The words of all ranks, in their order."""
    nonce = handshake.run_nonce(scalebench.run_folder())
    if place.rank > 0:
        return _tell(place, nonce, word)
    return _Table(place, nonce, word).meet()


class _Table:
    """Where rank 0 gathers the words."""

    def __init__(self, place, nonce, word):
        self._place, self._nonce = place, nonce
        self._lock = threading.Lock()
        self._words = {0: word}
        self._connections = {}  # by rank
        self._unproven = []  # connections, the oldest first
        self._refused = collections.deque(maxlen=8)
        self._problem = None  # that ends the meeting
        # A thread that has changed something wakes the meeting.
        self._woken, self._wake = socket.socketpair()

    def meet(self):
        with self._woken, self._wake:
            try:
                self._gather()
                everything = [self._words[rank]
                              for rank in range(self._place.size)]
                line = json.dumps(everything).encode() + b"\n"
                for rank, connection in self._connections.items():
                    try:
                        connection.settimeout(handshake.PATIENCE)
                        connection.sendall(line)
                    except OSError as error:
                        raise RuntimeError(f"rank {rank} is gone: {error}"
                                           ) from None
                return everything
            finally:
                with self._lock:
                    for connection in self._unproven:
                        _hang_up(connection)
                for connection in self._connections.values():
                    connection.close()

    def _gather(self):
        end = time.monotonic() + PATIENCE
        failed, pause = None, 0.01
        family = socket.AF_INET6 if ":" in self._place.address \
            else socket.AF_INET
        with socket.create_server((self._place.address, self._place.port),
                                  family=family, backlog=1024) as server, \
                selectors.DefaultSelector() as selector:
            server.setblocking(False)
            selector.register(server, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                with self._lock:
                    if self._problem:
                        raise RuntimeError(self._problem)
                    self._forget_lost()
                    if len(self._words) == self._place.size:
                        return
                left = end - time.monotonic()
                if left <= 0:
                    raise RuntimeError(self._missing(failed))
                ready = [key.fileobj for key, _ in selector.select(left)]
                if self._woken in ready:
                    self._woken.recv(4096)
                if server not in ready:
                    continue
                try:
                    connection, address = server.accept()
                    threading.Thread(target=self._hear, daemon=True,
                                     args=(connection, address)).start()
                    pause = 0.01
                except BlockingIOError:
                    pass  # it has gone again
                except (OSError, RuntimeError) as error:
                    # Out of file descriptors or threads, for a while.
                    failed = error
                    self._drop_oldest()
                    time.sleep(pause)
                    pause = min(2 * pause, 0.5)

    def _forget_lost(self):
        """A rank that has hung up comes again, and must be waited for."""
        if len(self._words) < self._place.size:
            return
        for rank, connection in list(self._connections.items()):
            if _closed(connection):
                connection.close()
                del self._connections[rank], self._words[rank]

    def _missing(self, failed):
        missing = sorted(set(range(self._place.size)) - set(self._words))
        text = (f"heard nothing from rank {', '.join(map(str, missing))}"
                f" within {PATIENCE} s; see their logs")
        if failed:
            text += ("; accepting connections failed, most recently with:"
                     f" {failed}")
        if self._refused:
            text += "; refused: " + "; ".join(self._refused)
        return text

    def _drop_oldest(self):
        with self._lock:
            if self._unproven:
                _hang_up(self._unproven.pop(0))

    def _hear(self, connection, address):
        """One caller, in a thread of its own."""
        with self._lock:
            if len(self._unproven) >= _UNPROVEN:
                _hang_up(self._unproven.pop(0))
            self._unproven.append(connection)
        try:
            handshake.answer(connection, self._nonce, _PURPOSE)
            with self._lock:
                if connection not in self._unproven:
                    raise handshake.Stranger(
                        "was dropped to make room for later callers")
                self._unproven.remove(connection)
            handshake.welcome(connection)
            line = _line(connection, _LONGEST,
                         time.monotonic() + handshake.PATIENCE)
            rank, word = _said(line, self._place.size)
            self._take(rank, word, connection)
        except (OSError, ValueError, handshake.Stranger) as error:
            with self._lock:
                if connection in self._unproven:
                    self._unproven.remove(connection)
                self._refused.append("{}:{} {}".format(*address[:2], error))
            connection.close()

    def _take(self, rank, word, connection):
        with self._lock:
            self._forget_lost()
            if len(self._words) == self._place.size or self._problem:
                raise ValueError("connected after all ranks were there")
            if _closed(connection):
                raise ValueError("hung up")
            earlier = self._connections.get(rank)
            if earlier and not _closed(earlier):
                self._problem = f"two processes have rank {rank}"
            else:  # it comes for the first time, or has lost its connection
                self._words[rank] = word
                self._connections[rank] = connection
                if earlier:
                    earlier.close()
            self._wake.send(b"!")


def _hang_up(connection):
    """Ends what its thread waits for, which then closes it."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # the other end was faster


def _closed(connection):
    connection.setblocking(False)
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _line(connection, longest, end):
    """A line of so many bytes at most, by that time."""
    data = b""
    while not data.endswith(b"\n"):
        if len(data) >= longest:
            raise ValueError(f"sent a line of more than {longest} bytes")
        data += handshake.receive_some(connection, longest - len(data), end)
    return data


def _parsed(line):
    """Whatever is wrong with a line of JSON is a ValueError."""
    try:
        return json.loads(line.decode())
    except RecursionError:
        raise ValueError("sent JSON that is nested too deeply") from None


def _said(line, size):
    """The rank and the word in what a rank has sent."""
    said = _parsed(line)
    rank = said.get("rank") if isinstance(said, dict) else None
    if type(rank) is not int or not 0 < rank < size \
            or not isinstance(said.get("word"), str):
        raise ValueError("sent something other than a rank and its word")
    return rank, said["word"]


def _tell(place, nonce, word):
    end = time.monotonic() + PATIENCE
    line = json.dumps({"rank": place.rank, "word": word}).encode() + b"\n"
    while True:
        try:
            with socket.create_connection((place.address, place.port),
                                          timeout=5) as connection:
                handshake.call(connection, nonce, _PURPOSE)
                connection.sendall(line)
                words = _parsed(_line(connection, place.size * _LONGEST, end))
            if not isinstance(words, list) or len(words) != place.size \
                    or not all(isinstance(word, str) for word in words):
                raise ValueError("rank 0 has not sent the words of all ranks")
            return words
        except (OSError, ValueError, handshake.Stranger) as error:
            if time.monotonic() > end:
                whoever = isinstance(error, handshake.Stranger)
                raise RuntimeError(
                    f"rank 0 does not answer at {place.address}:{place.port}"
                    f" after {PATIENCE} s: "
                    + ("the process listening there " if whoever else "")
                    + str(error)) from None
            time.sleep(0.2)
