"""Lets the ranks tell each other a word before their framework has begun.

Rank 0 listens at the run's address, each other rank sends its word, and all
get the list of all words. A line of JSON each way; the name of the run folder
keeps out who belongs to another run.
"""

import json
import os
import socket
import time

PATIENCE = 600  # seconds, for the last rank to have imported its framework


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
    run = os.environ.get("SCALEBENCH_RUN", "")
    if place.rank > 0:
        return _tell(place, {"run": run, "rank": place.rank, "word": word})
    words = {0: word}
    connections = []
    end = time.monotonic() + PATIENCE
    with socket.create_server((place.address, place.port)) as server:
        while len(words) < place.size:
            server.settimeout(max(end - time.monotonic(), 0.001))
            try:
                connection, _ = server.accept()
            except socket.timeout:  # TimeoutError from Python 3.10 on
                missing = sorted(set(range(place.size)) - set(words))
                raise RuntimeError(f"ranks {missing} did not come within"
                                   f" {PATIENCE} s") from None
            try:
                connection.settimeout(10)
                said = json.loads(connection.makefile().readline(4096))
                if said["run"] != run or not 0 < said["rank"] < place.size:
                    raise ValueError("of another run")
            except (OSError, ValueError, KeyError, TypeError):
                connection.close()  # not one of us
                continue
            words[said["rank"]] = said["word"]
            connections.append(connection)
    everything = [words[rank] for rank in range(place.size)]
    for connection in connections:
        with connection:
            connection.sendall(json.dumps(everything).encode() + b"\n")
    return everything


def _tell(place, said):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with socket.create_connection((place.address, place.port),
                                          timeout=5) as connection:
                connection.settimeout(max(end - time.monotonic(), 1))
                connection.sendall(json.dumps(said).encode() + b"\n")
                answer = connection.makefile().readline()
            return json.loads(answer)
        except (OSError, ValueError) as error:
            if time.monotonic() > end:
                raise RuntimeError(
                    f"rank 0 does not answer at {place.address}:{place.port}"
                    f" after {PATIENCE} s: {error}") from None
            time.sleep(0.2)
