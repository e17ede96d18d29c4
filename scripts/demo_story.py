"""The story of scripts/demo.sh. Every caption is checked: what does not hold ends the demo with an error."""

from __future__ import annotations

import shlex
import sys
import time

from sharefslab import BaseCluster, Cluster, Completed, Host, LabError, cli, ssh, wait_until
from sharefslab.environment import PROGRAM, make_environment
from sharefslab.product import CONFIG_PATH, EXPORTS_FILE, SHARE, config_text, mount_lines, write_training

STARTED = time.monotonic()


class DoesNotHold(Exception):
    """A caption that is not true."""


def caption(text: str) -> None:
    bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    print(f"\n{bold}[{time.monotonic() - STARTED:5.1f} s] {text}{plain}", flush=True)


def show(host: Host, command: str, expect: int = 0, user: str | None = None, timeout: float = 60) -> Completed:
    """Runs a command as a person would and prints what that person would see."""
    prompt = f"{user or 'root'}@{host.name}"
    print(f"  {prompt}$ {command}")
    completed = host.run(shlex.split(command), timeout=timeout, user=user)
    for line in (completed.out + completed.err).splitlines():
        print(f"    {line}")
    if completed.returncode != expect:
        raise DoesNotHold(f"`{command}` on {host.name} ended with {completed.returncode}, not {expect}")
    return completed


def holds(what: str, condition: bool) -> None:
    if not condition:
        raise DoesNotHold(what)
    print(f"    ok: {what}")


def greeting_on(node: Host) -> str:
    """As bob reads it: root of a node is nobody on the share, and has no access."""
    return node.run(["cat", f"{SHARE}/greeting"], user="bob", check=True).out


def bring_all_up(lab: BaseCluster) -> None:
    server = lab.server
    caption("One file on one machine says what should be; the nodes are bare, and root gets there by ssh")
    server.write_file(CONFIG_PATH, config_text() + 'nodes: {list: ["node[1-2]"]}\n', mode=0o644)
    for host in lab:
        ssh.start_sshd(host)
    key = ssh.make_key(server)
    for node in lab.nodes:
        ssh.authorize(node, key)
    show(server, "sharefs nodes trust --accept --yes", timeout=300)
    caption("Two commands: this program and the file come to all nodes, and each machine becomes what the file says of it")
    show(server, "sharefs nodes push --yes", timeout=300)
    show(server, "sharefs --on all up --yes", timeout=300)
    show(server, "sharefs --on all up --check", timeout=300)
    lab["node1"].run(f"echo hello >{SHARE}/greeting", user="alice", check=True)
    holds("node2 reads what node1 wrote", greeting_on(lab["node2"]) == "hello\n")
    caption("What a server offers is seen without root and without nfs-common")
    show(lab["node1"], "sharefs probe 10.77.0.1", user="alice")


def share_environment(lab: BaseCluster) -> None:
    caption("A conda environment on the share appears in every home, on both nodes")
    make_environment(lab["node1"], f"{SHARE}/conda/llm_train", user="alice")
    for node in lab.nodes:
        for user in ("alice", "bob"):
            node.run("mkdir -p ~/miniconda3/conda-meta ~/miniconda3/envs", user=user, check=True)
    show(lab.server, "sharefs --on all up --yes", timeout=300)
    for node in lab.nodes:
        link = "/home/bob/miniconda3/envs/llm_train"
        said = node.run([f"{link}/bin/python", "-S", "-c", PROGRAM], user="bob", timeout=60, check=True)
        holds(f"bob's Python on {node.name} runs from the shared environment", said.out == f'[42, "{link}"]\n')


def launch_training(lab: BaseCluster) -> None:
    caption("A training command whose --cache_dir lies on the share: on wish moved to the node's own disk, and nothing else")
    write_training(lab["node1"])
    for node in lab.nodes:
        node.run("mkdir -p -m 1777 /local/cache", check=True)
        ran = show(
            node,
            f"sharefs run --local --cache_dir -- python3 {SHARE}/train.py --cache_dir {SHARE}/cache --output_dir {SHARE}/output",
            user="alice",
        )
        holds(f"the cache lies on {node.name}'s own disk", "cache:  /local/cache/" in ran.out)
    holds("the output of both lies on the share", lab.server.run("ls /srv/share/output").out == "node1\nnode2\n")
    holds("no cache lies on the share", not lab.server.exists("/srv/share/cache"))


def kill_and_recover(lab: BaseCluster) -> None:
    node = lab["node1"]
    caption("The server is killed: nothing hangs, and the failing stage is named")
    lab.kill("server")
    show(node, "sharefs status --timeout 2", expect=1)
    show(node, "sharefs doctor --timeout 2s", expect=1, timeout=90)
    show(node, "sharefs recover --all --yes", expect=1)
    caption("It boots again: one command, and the hung mounts are well")
    lab.reboot("server")
    show(lab.server, "sharefs export --all --yes")
    wait_until(lambda: node.run(["sharefs", "status"], timeout=60).ok, timeout=120, what="the mounts heal")
    show(node, "sharefs status")
    holds("nothing was lost", greeting_on(node) == "hello\n")

    caption("Its file system is made anew: the handles are stale, and recovered")
    lab.remake_filesystem("server")
    show(lab.server, "sharefs export --all --yes")
    wait_until(lambda: "stale" in node.run(["sharefs", "status"], timeout=60).out, what="the client notices")
    show(node, "sharefs recover --all --yes", timeout=90)
    show(node, "sharefs status")


def take_down(lab: BaseCluster) -> None:
    caption("And all of it goes by one command, the clients first")
    show(lab.server, "sharefs nodes resume --list")
    show(lab.server, "sharefs --on all down --yes", timeout=300)
    holds("nothing is mounted, and nothing exported", not any(mount_lines(host) for host in lab) and not lab.server.exists(EXPORTS_FILE))


def play(lab: BaseCluster) -> None:
    caption("A server and two nodes, each with its own network, files and users, on real kernel NFS")
    for chapter in (bring_all_up, share_environment, launch_training, kill_and_recover, take_down):
        chapter(lab)
    caption("All of it held")


def keep() -> int:
    """The story on a cluster that stays up, as `lab up` leaves it."""
    code = cli.up([], prepare=play)
    print("The cluster stays up:")
    print("  tests/lab/lab shell node1                  # enter a host")
    print("  tests/lab/lab run node1 -- sharefs status  # or run one command there")
    print("  tests/lab/lab down                         # end it")
    return code


def main() -> int:
    try:
        if "--keep" in sys.argv[1:]:
            return keep()
        with Cluster() as lab:
            play(lab)
    except (DoesNotHold, LabError, TimeoutError) as broken:
        print(f"\nerror: {broken}", file=sys.stderr)
        return 1
    caption("Nothing is left behind")
    return 0


if __name__ == "__main__":
    sys.exit(main())
