"""A store with an environment that rattler has installed, as `sharefs conda share` leaves it."""

from __future__ import annotations

import grp
import json
import os
import select
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from environmentslab.environment import Workshop, let_others_through

USER = "nobody"  # to whom the store of some tests belongs


@dataclass(frozen=True)
class Store:
    workshop: Workshop
    path: Path
    config: Path

    @property
    def env(self) -> Path:
        return self.path / "llm"

    def generation(self, number: int) -> Path:
        return self.path / f".generations/llm/{number:04}"

    def sharefs(self, *words: str | Path, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        return self.workshop.sharefs("--config", self.config, *words, expect=expect)

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        command = [os.environ["SHAREFS_BIN"], "--config", str(self.config), *map(str, words)]
        return subprocess.Popen(
            command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )

    def update(self, script: str, *options: str, expect: int | None = 0) -> str:
        done = self.sharefs("conda", "update", *options, "--yes", "llm", "bash", "-ec", script, expect=expect)
        return done.stdout + done.stderr

    def generations(self) -> list[dict]:
        return json.loads(self.sharefs("conda", "generations", "llm", "--json").stdout)["generations"]

    def current(self) -> int:
        return int(os.readlink(self.env).rpartition("/")[2])

    def leftovers(self) -> list[str]:
        names = sorted(path.name for path in (self.path / ".generations/llm").iterdir())
        return [name for name in names if name.startswith(("new-", "old-", "lock"))]


def make_store(workshop: Workshop, place: Path) -> Store:
    """With the environment `llm`, generation 1."""
    path = place / "store"
    workshop.install(path / "llm")
    made = Store(workshop, path, place / "sharefs.yaml")
    made.generation(1).parent.mkdir(parents=True)
    (path / ".generations/llm/uses").mkdir()
    # Copied: modes and owners of what is linked to the package cache would be those of the next test's environment.
    subprocess.run(["cp", "-a", path / "llm", made.generation(1)], check=True)
    shutil.rmtree(path / "llm")
    (made.generation(1) / "conda-meta/frozen").write_text("{}")
    record = {"sharefs": 1, "number": 1, "parent": 0, "created": 1, "user": "alice", "host": "node1", "command": "", "message": ""}
    record |= {"prefix": str(made.env), "python": "3.11", "files": 1, "bytes": 1, "own_bytes": 1, "packages": []}
    (path / ".generations/llm/0001.json").write_text(json.dumps(record))
    subprocess.run(["chmod", "-R", "a-w", made.generation(1)], check=True)
    made.env.symlink_to(".generations/llm/0001")
    made.config.write_text(f"version: 1\nconda:\n  store: {path}\n  envs: [llm]\n")
    made.config.chmod(0o644)
    return made


def state(tree: Path) -> dict[str, tuple]:
    """All that a generation is: modes, times, owners, contents."""
    found = {}
    for path in sorted(tree.rglob("*")):
        status = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(tree))] = (status.st_mode, status.st_uid, status.st_mtime_ns, content)
    return found


def imports(env: Path) -> str:
    return subprocess.run([env / "bin/python", "-c", "import json, sys; print(sys.prefix)"], capture_output=True, text=True, timeout=60).stdout


def as_user(store: Store, *words: str | Path, group: str = "games", expect: int | None = 0) -> subprocess.CompletedProcess[str]:
    """sharefs as USER, who has the group of the store beside an own one."""
    place = store.path.parent
    binary = place / "sharefs"
    shutil.copy(os.environ["SHAREFS_BIN"], binary)
    binary.chmod(0o755)
    home = place / "home"
    home.mkdir(exist_ok=True)
    shutil.chown(home, USER, group)
    command = ["setpriv", f"--reuid={USER}", "--regid=nogroup", f"--groups={grp.getgrnam(group).gr_gid}", "env", f"HOME={home}"]
    done = subprocess.run([*command, binary, "--config", store.config, *words], capture_output=True, text=True, timeout=300, cwd="/")
    assert expect is None or done.returncode == expect, done.stderr
    return done


def give_to(store: Store, user: str, group: str) -> None:
    """The store as README's `access: {group: ml}` makes it."""
    let_others_through(store.path)
    subprocess.run(["chown", "-Rh", f"{user}:{group}", store.path], check=True)
    subprocess.run(["chmod", "-R", "g=u,o=", store.generation(1)], check=True)  # as `share` leaves it there
    for directory in (store.path, store.path / ".generations", store.path / ".generations/llm"):
        directory.chmod(0o2770)


def read_until(terminal: int, end: str | None) -> str:
    """None: until nobody has it open any more."""
    said = ""
    while end is None or end not in said:
        assert select.select([terminal], [], [], 60)[0], said
        try:
            said += os.read(terminal, 4096).decode()
        except OSError:
            break
    return said
