"""What only a real process shows: closed pipes, dispositions of signals, and a machine that has nothing left.

usage: SHAREFS_BIN=... pytest test_process.py
"""

import contextlib
import fcntl
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SHAREFS = os.environ["SHAREFS_BIN"]
# Without SigQ, which counts the queued signals of all processes of the user.
SIGNALS_OF_SELF = [
    sys.executable, "-c", "print([l for l in open('/proc/self/status') if l.startswith(('SigP', 'SigB', 'SigI', 'SigC'))])"
]


def run(*words: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SHAREFS, *words], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, **options)


def test_a_closed_reader_ends_it_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([SHAREFS, "config", "keys"], stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_is_an_error() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([SHAREFS, "config", "keys"], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, b"error: standard output could not be written\n")


def test_a_limit_of_file_sizes_is_an_error(tmp_path: Path) -> None:
    done = run("--root", str(tmp_path), "init", "--output", "/copy.yaml", "--yes",
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert done.returncode == 1 and "File too large" in done.stderr, done
    assert not (tmp_path / "copy.yaml").exists()


CLOSED = {0: "<&-", 1: ">&-", 2: "2>&-"}


def run_closed(*words: str, closed: tuple[int, ...] = (0, 1, 2)) -> subprocess.CompletedProcess[str]:
    """With these of the standard descriptors closed."""
    shell = 'exec "$@" ' + " ".join(CLOSED[number] for number in closed)
    return subprocess.run(["sh", "-c", shell, "sh", *words], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_closed_descriptors_take_no_file_of_ours(closed: tuple[int, ...], tmp_path: Path) -> None:
    """What is said would go into the lock of the host, the journal, or the file that is written."""
    change = [SHAREFS, "--root", str(tmp_path), "init", "--output", "/copy.yaml", "--yes", "--verbose"]
    subprocess.run(change, capture_output=True, timeout=60, check=True)
    (tmp_path / "copy.yaml").unlink()
    lock = tmp_path / "var/lib/sharefs/lock"
    with lock.open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.truncate(0)
        shell = 'exec "$@" ' + " ".join(CLOSED[number] for number in closed)
        waiting = subprocess.Popen(["sh", "-c", shell, "sh", *change], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        def opened() -> dict[int, str]:
            found = {}
            for number in os.listdir(f"/proc/{waiting.pid}/fd"):
                with contextlib.suppress(OSError):
                    found[int(number)] = os.readlink(f"/proc/{waiting.pid}/fd/{number}")
            return found

        while str(lock) not in opened().values():  # it waits for the lock, and says so
            assert waiting.poll() is None
        files = opened()  # a listing may have begun before 0 was opened, and ended behind the lock
        assert all(not files[number].startswith(str(tmp_path)) for number in range(3)), files
        assert lock.read_text() == ""
    waiting.communicate(timeout=60)
    assert "\nversion: 1\n" in (tmp_path / "copy.yaml").read_text()
    for line in (tmp_path / "var/lib/sharefs/journal/2/steps.jsonl").read_text().splitlines():
        json.loads(line)


def test_closed_output_is_an_error_and_nobody_elses_file() -> None:
    done = run_closed(SHAREFS, "config", "keys", closed=(1,))
    assert (done.returncode, done.stderr) == (1, "error: standard output could not be written\n")
    assert run_closed(SHAREFS, "config", "keys", closed=(0, 1, 2)).returncode == 1


def test_run_hands_on_closed_descriptors() -> None:
    show = ["sh", "-c", "for n in 0 1 2; do [ -e /proc/self/fd/$n ] || exit $((10 + n)); done"]
    for number in (0, 1, 2):
        plain, ours = (run_closed(*words, *show, closed=(number,)) for words in ([], [SHAREFS, "run", "--"]))
        assert (ours.returncode, ours.stdout, ours.stderr) == (plain.returncode, plain.stdout, plain.stderr)
        assert plain.returncode == 10 + number


@pytest.mark.parametrize("disposition", [signal.SIG_DFL, signal.SIG_IGN])
def test_run_hands_on_the_signals_that_it_got(disposition: signal.Handlers) -> None:
    def prepare() -> None:
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, disposition)

    options = {"preexec_fn": prepare, "restore_signals": False, "capture_output": True, "text": True, "timeout": 60}
    plain = subprocess.run(["env", *SIGNALS_OF_SELF], **options)
    ours = subprocess.run([SHAREFS, "run", "--", *SIGNALS_OF_SELF], **options)
    assert plain.stdout and (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout, "", 0)


@pytest.mark.parametrize("root", ["/nonexistent", "relative", __file__])
def test_a_root_that_is_no_directory_is_an_error(root: str, tmp_path: Path) -> None:
    done = run("--root", root, "status", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == f"error: --root: there is no directory {os.path.join(tmp_path, root)}\n"


def test_a_root_may_be_relative(tmp_path: Path) -> None:
    (tmp_path / "image").mkdir()
    assert run("--root", "image", "undo", "--list", cwd=tmp_path).returncode == 0


def memory(megabytes: int) -> Callable[[], None]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return limit


@pytest.mark.skipif(bool(os.environ.get("SHAREFS_SANITIZE")), reason="a sanitizer needs terabytes of address space")
@pytest.mark.parametrize("words", [["status"], ["config", "keys"], ["undo", "--list"], ["run", "--", "true"]])
# (Not 20: there the libraries fit, but not what yaml-cpp allocates before main(), which ends the process.)
@pytest.mark.parametrize("megabytes", [16, 24, 28, 32, 48])
def test_little_memory_is_an_error_at_most(words: list[str], megabytes: int, tmp_path: Path) -> None:
    own = ["--root", str(tmp_path)] if words[0] == "undo" else []  # the journal of this machine is as long as it is
    done = run(*own, *words, preexec_fn=memory(megabytes))
    if done.returncode == 127 and "error while loading shared libraries" in done.stderr:
        pytest.skip("not even the libraries fit")
    assert done.returncode >= 0, f"ended by signal {-done.returncode}: {done.stderr}"
    assert "terminate called" not in done.stderr


@pytest.mark.skipif(bool(os.environ.get("SHAREFS_SANITIZE")), reason="a sanitizer needs terabytes of address space")
def test_a_long_journal_is_listed_in_little_memory(tmp_path: Path) -> None:
    """An entry holds whole files; sixty take hardly more than two."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/exports").write_text("".join(f"/srv/{number} host(rw)\n" for number in range(1_000)))
    change = ["init", "--output", "/copy.yaml", "--yes"]
    assert run("--root", str(tmp_path), *change).returncode == 0
    journal = tmp_path / "var/lib/sharefs/journal"
    shutil.copytree(journal / "1", journal / "2")
    listed = ("--root", str(tmp_path), "undo", "--list")
    enough = next(megabytes for megabytes in range(8, 128) if run(*listed, preexec_fn=memory(megabytes)).returncode == 0)
    for number in range(3, 61):
        shutil.copytree(journal / "1", journal / str(number))
    done = run(*listed, preexec_fn=memory(enough + 1))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 61


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up root")
def test_no_more_processes_are_an_error_at_most() -> None:
    def limit() -> None:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))

    for words in (["status"], ["run", "--", "true"], ["config", "check", "/nonexistent"]):
        done = run(*words, preexec_fn=limit)
        assert done.returncode >= 0 and "terminate called" not in done.stderr, done.stderr


@pytest.mark.parametrize("descriptors", [4, 6, 8, 16])
def test_few_descriptors_are_an_error_at_most(descriptors: int) -> None:
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))  # noqa: E731
    for words in (["status"], ["run", "--", "true"]):
        done = run(*words, preexec_fn=limit)
        assert done.returncode >= 0 and "terminate called" not in done.stderr, done.stderr


def shared_environment(tmp_path: Path) -> dict[str, str]:
    """Two generations of `llm`, the first is the present one; the environment that names its sharefs.yaml."""
    for number in ("0001", "0002"):
        generation = tmp_path / "store/.generations/llm" / number
        for name in ("bin", "conda-meta", "etc/conda/activate.d"):
            (generation / name).mkdir(parents=True)
        (generation / "bin/python").symlink_to(sys.executable)
        (generation / "late.py").write_text(f"number = {number!r}\n")
        tool = generation / "bin/tool"
        tool.write_text(f"#!{tmp_path}/store/llm/bin/python\nimport sys\nprint(sys.executable)\n")
        tool.chmod(0o755)
    (tmp_path / "store/llm").symlink_to(".generations/llm/0001")
    (tmp_path / "sharefs.yaml").write_text(f"version: 1\nconda: {{store: {tmp_path}/store}}\n")
    return {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SHAREFS_CONFIG": str(tmp_path / "sharefs.yaml")}


def test_requirement_4_a_command_stays_in_its_generation(tmp_path: Path) -> None:
    environment = shared_environment(tmp_path)
    script = (
        f"import os, sys\nos.symlink('.generations/llm/0002', '{tmp_path}/store/new')\n"
        f"os.rename('{tmp_path}/store/new', '{tmp_path}/store/llm')\n"
        "sys.path.insert(0, os.environ['CONDA_PREFIX'])\nimport late\nprint(late.number, sys.executable)"
    )
    first = tmp_path / "store/.generations/llm/0001"
    done = run("conda", "run", "llm", "python", "-c", script, env=environment)
    assert (done.stderr, done.stdout) == ("", f"0001 {first}/bin/python\n")
    uses = os.listdir(tmp_path / "store/.generations/llm/uses")
    assert len(uses) == 1 and uses[0].endswith(".0001")
    second = tmp_path / "store/.generations/llm/0002"
    for words in (("tool",), (f"{tmp_path}/store/llm/bin/tool",), (SHAREFS, "run", "--", "tool")):
        done = run("conda", "run", "llm", "--", *words, env=environment)
        assert (done.stderr, done.stdout) == ("", f"{second}/bin/python\n")
    for _ in range(6):
        run("conda", "run", "llm", "true", env=environment)
    left = os.listdir(tmp_path / "store/.generations/llm/uses")
    assert 0 < len(left) < 8, "uses of processes that have ended go before there are many"


def test_conda_run_sources_the_scripts_of_activation(tmp_path: Path) -> None:
    environment = shared_environment(tmp_path)
    scripts = tmp_path / "store/.generations/llm/0001/etc/conda/activate.d"
    (scripts / "a.sh").write_text("export FIRST='a b\nc'; OWN=1; echo said; unset GONE\n")
    (scripts / "b.sh").write_text('export SECOND="$FIRST!"; cd /\n')
    (scripts / "c.fish").write_text("exit 3\n")
    show = "import os; print([os.environ.get(n) for n in ('FIRST', 'SECOND', 'OWN', 'GONE')], os.getcwd())"
    done = run("conda", "run", "llm", "--", "python", "-c", show, env={**environment, "GONE": "1"}, cwd=tmp_path)
    assert done.stdout == f"['a b\\nc', 'a b\\nc!', None, None] {tmp_path}\n"
    assert done.stderr == "said\n"
    (scripts / "d.sh").write_text("exit 7\n")
    done = run("conda", "run", "llm", "--", "true", env=environment)
    assert done.returncode == 125 and "a script has ended the shell (exit code 7)" in done.stderr


def test_conda_run_becomes_its_command(tmp_path: Path) -> None:
    environment = shared_environment(tmp_path)
    assert run("conda", "run", "llm", "--", "sh", "-c", "exit 9", env=environment).returncode == 9
    assert run("conda", "run", "llm", "--", "sh", "-c", "kill -TERM $$", env=environment).returncode == -signal.SIGTERM
    assert run("conda", "run", "llm", "--", "nowhere", env=environment).returncode == 127
    assert run("conda", "run", "llm", "--", str(tmp_path), env=environment).returncode == 126
    assert run("conda", "run", "lm", "--", "true", env=environment).returncode == 125


def test_a_staged_copy_is_run_until_the_next_generation(tmp_path: Path) -> None:
    environment = shared_environment(tmp_path)
    (tmp_path / "sharefs.yaml").write_text(f"version: 1\nconda: {{store: {tmp_path}/store, stage: {tmp_path}/stage}}\n")
    tmp_path.chmod(0o755)
    show = "import os; print(os.environ['CONDA_PREFIX'], os.environ['SHAREFS_CONDA_GENERATION'])"
    first, second = (f"{tmp_path}/store/.generations/llm/{number}" for number in ("0001", "0002"))
    copies = f"{tmp_path}/stage/{os.getuid()}/{str(tmp_path / 'store').replace('/', '%')}/llm"
    done = run("conda", "stage", "llm", "--yes", env=environment)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert run("conda", "run", "llm", "python", "-c", show, env=environment).stdout == f"{copies}/0001 {first}\n"
    assert run("conda", "run", "llm", "tool", env=environment).stdout == f"{copies}/0001/bin/python\n"
    (tmp_path / "store/llm").unlink()
    (tmp_path / "store/llm").symlink_to(".generations/llm/0002")
    assert run("conda", "run", "llm", "python", "-c", show, env=environment).stdout == f"{second} {second}\n"
    assert run("conda", "stage", "llm", "--yes", env=environment).returncode == 0
    assert sorted(os.listdir(copies)) == ["0002", "0002.complete", "uses"]
    assert run("conda", "run", "llm", "tool", env=environment).stdout == f"{copies}/0002/bin/python\n"
    (tmp_path / "stage").chmod(0o777)  # somebody else could have made it
    assert run("conda", "run", "llm", "python", "-c", show, env=environment).stdout == f"{second} {second}\n"
    (tmp_path / "stage").chmod(0o755)
    assert run("conda", "stage", "llm", "--remove", "--yes", env=environment).returncode == 0
    assert os.listdir(copies) == ["uses"]


def test_the_daemon_tells_systemd(tmp_path: Path) -> None:
    """READY and WATCHDOG while it lives, RELOADING at SIGHUP; and it ends by SIGTERM."""
    config = tmp_path / "sharefs.yaml"
    config.write_text("version: 1\nwatch: {recover: never}\n", encoding="utf-8")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"}
        daemon = subprocess.Popen([SHAREFS, "watch", "--config", config], stderr=subprocess.PIPE, env=environment)
        seen: list[str] = []

        def wait_for(text: str, times: int = 1) -> None:
            while sum(text in message for message in seen) < times:
                seen.append(manager.recv(4096).decode())

        try:
            wait_for("READY=1")
            wait_for("STATUS=0 mounts well")
            wait_for("WATCHDOG=1", times=4)
            second = run("watch", "--config", str(config))
            assert second.returncode == 1 and "another sharefs" in second.stderr and f"pid {daemon.pid}" in second.stderr
            while select.select([manager], [], [], 0)[0]:  # nothing is said to a socket that is full
                seen.append(manager.recv(4096).decode())
            daemon.send_signal(signal.SIGHUP)
            wait_for("RELOADING=1\nMONOTONIC_USEC=")
            wait_for("READY=1", times=2)
            daemon.send_signal(signal.SIGTERM)
            wait_for("STOPPING=1")
            assert daemon.wait(60) == 0
        finally:
            daemon.kill()
            said = daemon.communicate()[1].decode()
        assert "looking after the mounts every 30s, recover: never" in said and said.endswith(" stopped\n")
