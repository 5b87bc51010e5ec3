"""This process's place in the run, from the environment."""

import fcntl
import os
import socket
import struct

_SIOCGIFADDR = 0x8915  # netdevice(7): the IPv4 address of an interface


class World:
    """Rank, size and rendezvous. They are what was planned: a program asserts
    that its framework says the same."""

    def __init__(self, environ=os.environ):
        wrong = []

        def count(name):
            text = environ.get(name, "")
            if text.isdecimal():
                return int(text)
            wrong.append(f'{name} = "{text}" is not a count' if text
                         else f"{name} is not set")
            return 0

        self.rank = count("RANK")
        self.size = count("WORLD_SIZE")
        self.local_rank = count("LOCAL_RANK")
        self.local_size = count("LOCAL_WORLD_SIZE")
        self.port = count("MASTER_PORT")
        self.restart = count("SCALEBENCH_RESTART")
        self.address = environ.get("MASTER_ADDR", "")
        self.interface = environ.get("SCALEBENCH_INTERFACE", "")
        if not self.address:
            wrong.append("MASTER_ADDR is not set")
        if wrong:
            raise RuntimeError(
                "this process's place in the run is not known: "
                + "; ".join(wrong) + "; start it with scalebench run or submit"
            )

    def own_address(self):
        """This host's IPv4 address on the way to rank 0."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            if self.interface:
                request = struct.pack("256s", self.interface.encode())
                answer = fcntl.ioctl(s.fileno(), _SIOCGIFADDR, request)
                return socket.inet_ntoa(answer[20:24])
            s.connect((self.address, 9))  # sends nothing
            return s.getsockname()[0]

    def carrier(self):
        """The interface on which the other ranks are reached.

        The configured one, else the one with the route to rank 0; "" where
        that is not known. Libraries left to themselves take what the host's
        own name resolves to, which may be loopback.
        """
        if self.interface:
            return self.interface
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            try:
                s.connect((self.address, 9))  # sends nothing
                own = s.getsockname()[0]
            except OSError:
                return ""
            for _, name in socket.if_nameindex():
                request = struct.pack("256s", name.encode())
                try:
                    answer = fcntl.ioctl(s.fileno(), _SIOCGIFADDR, request)
                except OSError:
                    continue  # it has no IPv4 address
                if socket.inet_ntoa(answer[20:24]) == own:
                    return name
        return ""
