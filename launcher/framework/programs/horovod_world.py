"""Brings ranks together as Horovod's, over gloo and without horovodrun.

Horovod left to itself under srun says "assuming single process execution" and
runs as many independent copies as there are ranks. horovodrun reaches other
hosts by ssh, which many clusters forbid. So the environment that it would set
is set here, and rank 0 holds the list of addresses that it would hold.
"""

import os
import socket
import time

PATIENCE = 600  # seconds, for the last rank to have imported its framework


def join(hvd, place):
    """Initialises Horovod's module for a framework; returns the server of the
    list of addresses, which must live until the others have joined.

    place is a world.World. Horovod's rank and size are for the caller to
    check, see check.
    """
    nodes = max(place.size // place.local_size, 1)
    interface = place.carrier()
    variables = {
        "CONTROLLER": "gloo", "CPU_OPERATIONS": "gloo",
        "HOSTNAME": socket.gethostname(),
        "RANK": place.rank, "SIZE": place.size,
        "LOCAL_RANK": place.local_rank, "LOCAL_SIZE": place.local_size,
        "CROSS_RANK": place.rank // place.local_size, "CROSS_SIZE": nodes,
        "GLOO_RENDEZVOUS_ADDR": place.address,
        "GLOO_RENDEZVOUS_PORT": place.port,
        "GLOO_TIMEOUT_SECONDS": PATIENCE,
    }
    if interface:
        variables["GLOO_IFACE"] = interface
    for name, value in variables.items():
        os.environ["HOROVOD_" + name] = str(value)
    server = None
    if place.rank == 0:
        server = _serve(place.address, place.port)
    else:
        _await(place.address, place.port)
    hvd.init()
    return server


def check(hvd, place, workers):
    """Horovod's size; an error unless this is the rank that was planned."""
    size, rank, local = hvd.size(), hvd.rank(), hvd.local_rank()
    if (size, rank, local) != (workers, place.rank, place.local_rank):
        raise RuntimeError(
            f"Horovod has rank {rank} of {size}, local rank {local} here; the"
            f" plan has rank {place.rank} of {workers}, local rank"
            f" {place.local_rank}")
    return size


def _serve(address, port):
    from horovod.runner.http.http_server import (RendezvousHandler,
                                                 RendezvousHTTPServer)
    from horovod.runner.util.threads import in_thread

    server = RendezvousHTTPServer((address, port), RendezvousHandler, 0)
    in_thread(target=server.serve_forever)
    return server


def _await(address, port):
    """Waits for rank 0: Horovod's own client gives up after three tries."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with socket.create_connection((address, port), timeout=5):
                return
        except OSError as error:
            if time.monotonic() > end:
                raise RuntimeError(
                    f"rank 0 does not answer at {address}:{port} after"
                    f" {PATIENCE} s: {error}") from None
            time.sleep(0.2)
