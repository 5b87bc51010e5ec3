"""Both ends of a connection prove that they know the run's nonce.

The same, byte for byte, as launcher/world/handshake.go, which explains it:

    caller              listener
    magic, version, random -->
       <-- magic, version, random, proof
    proof -->
       <-- welcome

A proof is an HMAC-SHA256 under the nonce over the role, the purpose, both
random values and both addresses. Nothing of it is of use to who overhears,
reflects or relays it. What follows is neither encrypted nor signed.
"""

import hashlib
import hmac
import os
import socket
import stat
import struct
import time

PATIENCE = 5  # seconds, for the other end to prove itself

_MAGIC = b"scalehs\n"
_VERSION = struct.pack(">H", 1)
_RANDOM = _PROOF = 32
_WELCOME = b"\x01"
_LONGEST_NONCE = 4096  # bytes


class Stranger(Exception):
    """The other end has not proven that it knows the nonce. The words follow
    its address."""


def run_nonce(folder):
    """The nonce of a run folder, which only its user can have written and not
    everybody can read."""
    path = os.path.join(folder, "nonce")
    # A pipe would wait for its writer.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise RuntimeError(f"{path} is not a regular file")
        if found.st_uid not in (0, os.geteuid()):
            raise RuntimeError(f"{path} belongs to user {found.st_uid}")
        if found.st_mode & 0o006:
            raise RuntimeError(f"{path} can be read or written by every user;"
                               " start the run again: a new attempt gets a"
                               " new one")
        text = file.read(_LONGEST_NONCE + 1)
    if len(text) > _LONGEST_NONCE:
        raise RuntimeError(f"{path} has more than {_LONGEST_NONCE} bytes")
    nonce = text.decode("ascii", "replace").strip()
    if not nonce:
        raise RuntimeError(f"{path} is empty; it must hold the run's nonce")
    return nonce


def call(connection, nonce, purpose):
    """Proves this end to the listener, once it has proven itself."""
    end = time.monotonic() + PATIENCE
    addresses = connection.getsockname(), connection.getpeername()
    own = os.urandom(_RANDOM)
    connection.settimeout(PATIENCE)
    connection.sendall(_MAGIC + _VERSION + own)
    theirs = _greeting(connection, end)
    shown = receive(connection, _PROOF, end)
    values = own, theirs
    if not hmac.compare_digest(
            shown, _proof(nonce, purpose, b"server", values, addresses)):
        connection.sendall(bytes(_PROOF))  # it need not wait for a proof
        raise Stranger("does not know this run's nonce;"
                       " another program may hold the port")
    connection.sendall(_proof(nonce, purpose, b"client", values, addresses))
    if receive(connection, 1, end) != _WELCOME:
        raise Stranger("knows this run's nonce, but sent no welcome")


def answer(connection, nonce, purpose):
    """Proves this end to a caller, and has it prove itself; then welcome lets
    it know."""
    end = time.monotonic() + PATIENCE
    addresses = connection.getpeername(), connection.getsockname()
    theirs = _greeting(connection, end)
    own = os.urandom(_RANDOM)
    values = theirs, own
    connection.settimeout(PATIENCE)
    connection.sendall(
        _MAGIC + _VERSION + own
        + _proof(nonce, purpose, b"server", values, addresses))
    shown = receive(connection, _PROOF, end)
    if not hmac.compare_digest(
            shown, _proof(nonce, purpose, b"client", values, addresses)):
        raise Stranger("wrong nonce: it belongs to another run, or to another"
                       " attempt at this one")


def welcome(connection):
    """Tells a caller, after answer, that it is let in."""
    connection.sendall(_WELCOME)


def receive(connection, count, end):
    """So many bytes, by that time, however few come at once."""
    data = b""
    while len(data) < count:
        data += receive_some(connection, count - len(data), end)
    return data


def receive_some(connection, most, end):
    """One byte at least, by that time."""
    left = end - time.monotonic()
    try:
        if left <= 0:
            raise socket.timeout()
        connection.settimeout(left)
        data = connection.recv(most)
    except socket.timeout:  # TimeoutError from Python 3.10 on
        raise Stranger("did not send in time what was expected") from None
    if not data:
        raise Stranger("hung up before sending what was expected")
    return data


def _greeting(connection, end):
    data = receive(connection, len(_MAGIC) + len(_VERSION) + _RANDOM, end)
    if not data.startswith(_MAGIC + _VERSION):
        raise Stranger("is not a rank of a scalebench run of this version;"
                       " another program may hold the port")
    return data[-_RANDOM:]


def _proof(nonce, purpose, role, values, addresses):
    mac = hmac.new(nonce.encode(), digestmod=hashlib.sha256)
    for field in (_MAGIC, _VERSION, role, purpose.encode(), *values,
                  *map(_end, addresses)):
        mac.update(struct.pack(">H", len(field)) + field)
    return mac.digest()


def _end(address):
    """An IP address, mapped to IPv6, and the port."""
    host, port = address[0].partition("%")[0], address[1]
    if ":" in host:
        ip = socket.inet_pton(socket.AF_INET6, host)
    else:
        ip = bytes(10) + b"\xff\xff" + socket.inet_aton(host)
    return ip + struct.pack(">H", port)
