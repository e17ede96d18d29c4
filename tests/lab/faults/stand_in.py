"""What answers on the server's port 2049 in place of nfsd."""

from __future__ import annotations

from sharefslab import wait_until
from sharefslab.product import SHARE

from .bench import Bench

_PROGRAM = """
import os, signal, socket, struct, sys
listener = socket.create_server(("0.0.0.0", 2049), backlog=64)
print("listening", flush=True)
kept = []
while True:
    client, _ = listener.accept()
    if sys.argv[1] == "silent":
        kept.append(client)
        continue
    if sys.argv[1] == "reset":
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    else:
        client.recv(4096)
        client.sendall(b"HTTP/1.1 400 Bad Request\\r\\nConnection: close\\r\\n\\r\\n")
    client.close()
"""


def replace_nfsd(bench: Bench, how: str) -> None:
    """`how`: silent (accepts, and never answers), reset, or other (speaks another protocol)."""
    bench.server.run("rpc.nfsd 0", check=True)
    program = bench.server.start(["/usr/bin/python3", "-c", _PROGRAM, how])
    wait_until(lambda: b"listening" in program.stdout(), what=f"port 2049 has its stand-in: {program.stderr()!r}")
    bench.notes["stand-in"] = program


def withdraw(bench: Bench) -> None:
    bench.notes["stand-in"].kill()
    bench.notes["stand-in"].wait_or_kill()
    bench.serve()
    # The kernel counts for as long as the mount lasts what was sent in vain.
    bench.wait_for("healthy")
    bench.node.run(f"umount {SHARE} && sharefs mount --all --yes", check=True, timeout=90)
