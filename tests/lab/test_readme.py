"""The README's first hour, as it is printed: its sharefs.yaml and its commands, on a server and two nodes. What it shows of
their output is what they print, but for numbers, and without the contents of files. SHAREFS_README_UPDATE=1 writes the output anew; read the diff."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from sharefslab import Host, KernelCluster
from sharefslab.environment import make_environment
from sharefslab.product import configure, document, done, sharefs, write_training

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"^```console\n(.*?)^```\n", re.M | re.S)
DIFF = re.compile(r"^ {4,}(---|\+\+\+|@@|\+|-| ).*\n", re.M)
PROMPT = re.compile(r"^(?:(?P<user>\w+)@)?(?P<host>\w+)(?P<mark>[#$]) (?P<command>.*)$")
HOSTS = {"storage1": ("server", "192.168.16.1"), "gpu1": ("node1", "192.168.16.11"), "gpu2": ("node2", "192.168.16.12")}
ENVIRONMENT = "llm_train"


@pytest.fixture
def cluster(boot_lab: KernelCluster) -> KernelCluster:
    """The README's machines: their addresses, the server's disk at /mnt/share, and two users who have conda."""
    lab = boot_lab
    lab.start_nfs_server(exports=None)
    for name, address in HOSTS.values():
        lab[name].run(f"ip address add {address}/24 dev $(ip -o -4 addr show scope global | awk '{{print $2; exit}}')", check=True)
    for node in lab.nodes:
        node.run("mkdir -p /local/var-cache && mount --bind /local/var-cache /var/cache", check=True)  # a disk
    server = lab.server
    server.run("mkdir -p /mnt/share && mount $(findmnt -no SOURCE /srv/share) /mnt/share && umount /srv/share", check=True)
    for node in lab.nodes:
        for user in ("alice", "bob"):
            node.run("mkdir -p ~/miniconda3/conda-meta ~/miniconda3/envs && chmod 700 ~", user=user, check=True)
    make_environment(lab["node1"], f"/home/alice/miniconda3/envs/{ENVIRONMENT}", user="alice")
    configure(lab, README.read_text().split("```yaml\n")[1].split("```")[0])
    return lab


def run(cluster: KernelCluster, prompt: re.Match[str]) -> str:
    """The command that stands behind a prompt, as its user types it on its host."""
    host = cluster[HOSTS[prompt["host"]][0]]
    if "train.py" in prompt["command"]:
        write_training(host)
    ended = host.run(prompt["command"], user=prompt["user"], timeout=400)
    assert ended.returncode == 0, ended
    if prompt["host"] == "gpu1" and not prompt["user"]:  # "and the same on gpu2"
        cluster["node2"].run(prompt["command"], timeout=400, check=True)
    return DIFF.sub("", ended.out + ended.err)


def without_numbers(text: str) -> str:
    return re.sub(r" +", " ", re.sub(r"\d[\d.,]*( [KMG]iB)?|\b[0-9a-f]{12}\b", "N", text))


def is_green(host: Host, user: str | None = None) -> None:
    ended = sharefs(host, "doctor", "--json", user=user, timeout=300)
    found = [one for one in document(ended)["diagnoses"] if one["severity"] != "info"]
    if host.name == "server":  # the lab's has no disk but the one that it exports
        found = [one for one in found if one["code"] not in ("SF405", "SF414")]
    assert ended.returncode == 0 and not found, f"{user or 'root'}@{host.name}: {ended}"


@pytest.mark.lab_hosts("server", "node1", "node2")
def test_the_first_hour_is_as_it_is_printed(cluster: KernelCluster) -> None:
    text = README.read_text()
    printed: list[tuple[str, str]] = []
    for block in BLOCK.findall(text):
        renewed = ""
        for line in block.splitlines(keepends=True):
            if prompt := PROMPT.match(line):
                renewed += line + run(cluster, prompt)
        printed.append((block, renewed))
    assert len(printed) >= 4
    if os.environ.get("SHAREFS_README_UPDATE"):
        for block, renewed in printed:
            text = text.replace(block, renewed)
        README.write_text(text)
    else:
        for block, renewed in printed:
            assert without_numbers(renewed) == without_numbers(block)

    one, other = cluster.nodes
    change = ["conda", "update", ENVIRONMENT, "--yes", "--", "sh", "-c", "echo 'answer = 43' >$CONDA_PREFIX/lib/python3.11/site-packages/new.py"]
    done(one, *change, timeout=400)
    assert done(other, "conda", "run", ENVIRONMENT, "--", "python", "-S", "-c", "print(6 * 7)", user="bob").out == "42\n"
    done(one, "conda", "rollback", ENVIRONMENT, "--yes")
    assert done(one, "conda", "list", ENVIRONMENT)
    for host in cluster:
        is_green(host)
        is_green(host, "alice")
