"""What only a real process shows: closed pipes, dispositions of signals, and a machine that has nothing left.

usage: SHAREFS_BIN=... pytest test_process.py
"""

import os
import resource
import signal
import subprocess
import sys
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
    done = subprocess.run([SHAREFS, "config", "schema"], stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_is_an_error() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([SHAREFS, "config", "schema"], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, b"error: standard output could not be written\n")


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


@pytest.mark.skipif(bool(os.environ.get("SHAREFS_SANITIZE")), reason="a sanitizer needs terabytes of address space")
@pytest.mark.parametrize("words", [["status"], ["config", "schema"], ["undo", "--list"], ["run", "--", "true"]])
@pytest.mark.parametrize("megabytes", [12, 16, 20, 24, 32, 48])
def test_little_memory_is_an_error_at_most(words: list[str], megabytes: int) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    done = run(*words, preexec_fn=limit)
    if done.returncode == 127 and "error while loading shared libraries" in done.stderr:
        pytest.skip("not even the libraries fit")
    assert done.returncode >= 0, f"ended by signal {-done.returncode}: {done.stderr}"
    assert "terminate called" not in done.stderr


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
