"""Sockets of a node's connections to the other nodes of its cluster.

The core's mesh (crates/io/net) has connections of its own for each direction: an endpoint makes
some to each peer, to send, and accepts as many from it. Each is a socket of its process.
"""

DESCRIPTORS = 1024
"""The default limit of open files and sockets of a process (getrlimit(2)). Ray raises that of the
process that directs a job, not that of the nodes' workers."""
SOCKETS_PER_CONNECTION = 2
"""One sends, and one receives."""


def sockets(connections: int) -> int:
    """The sockets of a node with so many connections to all others together."""
    return SOCKETS_PER_CONNECTION * connections


def most_connections(descriptors: int) -> int:
    """The most connections of a node whose process may open so many sockets."""
    return descriptors // SOCKETS_PER_CONNECTION
