"""sharefs stage PATH on one node: what it leaves when it is killed, and what stands in its way."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from sharefslab import Cluster, Host, wait_until
from sharefslab.host import Completed
from sharefslab.product import SHARE, config_text, document, done, export_and_mount, sharefs

DATA = f"{SHARE}/data"
COPIES = "/local/cache/staged/0/%data%share/data"
IMAGES = f"{SHARE}/conda/.images"
_CONFIG = config_text() + f"stage: {{paths: [{SHARE}/bound, {SHARE}/link]}}\n"
# Direct I/O gets no delegation, with which Linux 7.2 gives a file that is read after it was written the time of that.
_WRITE = "dd iflag=fullblock oflag=direct status=none"
_FILL = f"mkdir -p {{0}} && cd {{0}} && for i in $(seq 20); do {_WRITE} if=/dev/urandom of=$i bs=2000 count=1; done"


@pytest.fixture(scope="module")
def cluster(lab_ready: None) -> Iterator[Cluster]:
    with Cluster(hosts=("server", "node1"), memory="1500M") as cluster:
        export_and_mount(cluster, _CONFIG)
        yield cluster


@pytest.fixture
def node(cluster: Cluster) -> Iterator[Host]:
    node = cluster["node1"]
    node.run(_FILL.format(DATA), user="alice", check=True)
    yield node
    for copy in staged(node):
        sharefs(node, "stage", "--drop", copy["path"], "--yes")
    node.run("rm -rf /local/cache/staged", check=True)
    wait_until(lambda: node.run(f"rm -rf {DATA} {SHARE}/conda {SHARE}/link", user="alice").ok, what="nobody reads an image any more")


def staged(node: Host) -> list[dict[str, str]]:
    return document(done(node, "stage", "--list", "--json"))["staged"]


def left(node: Host) -> list[str]:
    return node.run(f"ls -A {COPIES}").out.split()


def images(node: Host) -> list[str]:
    return node.run(f"ls -A {IMAGES}", user="alice").out.split()


def mounts(node: Host) -> list[str]:
    return [line for line in node.read_text("/proc/self/mountinfo").splitlines() if " - squashfs " in line]


def killed(node: Host, where: str, *words: str) -> bool:
    """It is killed at this step; False: it has ended before that."""
    ended = node.run(["env", where, "sharefs", "stage", DATA, "--yes", *words], timeout=120)
    return not ended.ok


def change(node: Host) -> None:
    node.run(f"date +%N | {_WRITE} of={DATA}/1", user="alice", check=True)


def said(completed: Completed) -> str:
    return completed.out + completed.err


def test_a_drop_that_was_killed_is_finished_by_the_next(node: Host) -> None:
    for step in range(20):
        done(node, "stage", DATA, "--yes")
        was_killed = killed(node, f"SHAREFS_TEST_KILL_AT={step}", "--drop")
        assert not was_killed or left(node), step
        done(node, "stage", "--drop", DATA, "--yes")
        assert left(node) == [] and not mounts(node) and staged(node) == [], step
        if not was_killed:
            assert step > 3
            return
    pytest.fail("it is killed at each step")


@pytest.mark.parametrize("where", ["SHAREFS_TEST_KILL_AT=", "SHAREFS_TEST_KILL_AT_TREE="])
def test_what_a_killed_stage_has_left_goes_with_the_next_copy(node: Host, where: str) -> None:
    """Of what the directory holds no more."""
    for step in range(0, 60, 3 if where.endswith("TREE=") else 1):
        was_killed = killed(node, f"{where}{step}")
        change(node)
        done(node, "stage", DATA, "--yes")
        names = left(node)
        copy = {one["copy"].rpartition("/")[2] for one in staged(node) if one["state"] != "cut off"}
        assert len(copy) == (1 if was_killed else 2), names
        assert {name.strip(".").partition(".")[0] for name in names} == copy, step
        done(node, "stage", "--drop", DATA, "--yes")
        assert left(node) == [] and not mounts(node), step
        if not was_killed:
            assert step > 2
            return
    pytest.fail("it is killed at each step")


def test_what_undo_has_left_is_listed_and_dropped(node: Host) -> None:
    done(node, "stage", DATA, "--yes")
    done(node, "undo", "--yes")
    assert not mounts(node)
    assert [(one["path"], one["state"]) for one in staged(node)] == [(DATA, "cut off")]
    done(node, "stage", "--drop", DATA, "--yes")
    assert left(node) == [] and staged(node) == []


def test_what_killed_packings_have_left_goes_once_nobody_writes_it(node: Host) -> None:
    done(node, "stage", DATA, "--yes")
    old, new = "new-abcdefabcdef.sqfs", "new-bcdefabcdefa.sqfs"
    owner = node.run(f"stat -c %U {IMAGES}", user="alice", check=True).out.strip()
    note = f".{old}.json.sharefs-17"
    node.run(f"cd {IMAGES} && echo >{new} && touch -d '2 hours ago' {old} {note}", user=owner, check=True)
    change(node)
    done(node, "stage", DATA, "--yes")
    names = images(node)
    assert old not in names and note not in names and new in names, names


def test_ctrl_c_leaves_no_image_that_was_being_made(node: Host) -> None:
    node.run(f"{_WRITE} if=/dev/urandom of={DATA}/1 bs=6M count=10", user="alice", check=True)
    job = node.start(["sharefs", "stage", DATA, "--yes"])
    wait_until(lambda: images(node), timeout=60, what="an image is being made")
    job.kill(signal.SIGINT)
    assert job.wait(timeout=60).returncode == 130
    assert images(node) == []
    done(node, "stage", DATA, "--yes", timeout=300)


def test_a_directory_that_holds_the_images_is_refused(node: Host) -> None:
    done(node, "stage", DATA, "--yes")
    for path in (SHARE, f"{SHARE}/conda", IMAGES):
        refused = sharefs(node, "stage", path, "--yes")
        assert refused.returncode == 2 and "images of directories lie" in refused.err and "stage.store" in refused.err, refused


def test_a_link_leads_to_its_directory_also_when_it_is_dropped(node: Host) -> None:
    node.run(f"ln -sfn data {SHARE}/link", user="alice", check=True)
    first = done(node, "stage", f"{SHARE}/link", "--yes")
    assert f"{DATA}" in said(first) and "is a link" in said(first), first  # of `stage.paths`, which are no links
    assert [one["path"] for one in staged(node)] == [DATA]
    done(node, "stage", "--drop", f"{SHARE}/link", "--yes")
    assert left(node) == [] and staged(node) == []


def test_a_directory_that_is_gone_holds_up_no_mount(cluster: Cluster, node: Host) -> None:
    bound = f"{SHARE}/bound"
    node.run(_FILL.format(bound), user="alice", check=True)
    done(node, "stage", bound, "--yes")
    done(node, "umount", "--all", "--yes")
    cluster.server.run("rm -rf /srv/share/bound", check=True)
    mounted = done(node, "mount", "--all", "--yes")
    assert f"{bound} is not there any more" in said(mounted) and f"`sharefs stage --drop {bound}`" in said(mounted), mounted
    done(node, "stage", "--drop", bound, "--yes")
    assert staged(node) == []


@pytest.mark.parametrize("what", ["a damaged image", "no loop device"])
def test_a_copy_that_cannot_be_mounted_lies_over_no_directory(node: Host, what: str) -> None:
    """An empty one would: programs would find a dataset without files."""
    bound = f"{SHARE}/bound"
    node.run(_FILL.format(bound), user="alice", check=True)
    names = node.run(f"ls {bound}", user="alice", check=True).out
    done(node, "stage", bound, "--yes")
    done(node, "umount", "--all", "--yes")
    image = node.run("ls /local/cache/staged/0/%data%share/bound/*.sqfs", check=True).out.strip()
    if what == "no loop device":
        node.run("mount --bind /dev/null /dev/loop-control", check=True)
    else:
        node.run(f"printf x | dd of={image} bs=1 seek=2000 conv=notrunc", check=True)
    try:
        mounted = sharefs(node, "mount", "--all", "--yes")
        assert image in said(mounted) and not mounts(node), mounted
        assert node.run(f"ls {bound}", user="alice").out == names, mounted
    finally:
        node.run("umount /dev/loop-control 2>/dev/null; true", check=True)
    done(node, "stage", bound, "--yes")
    assert [one["state"] for one in staged(node)] == ["mounted, in place of the share"]
    done(node, "stage", "--drop", bound, "--yes")
    node.run(f"rm -r {bound}", user="alice", check=True)


def test_a_copy_that_was_cut_off_needs_room_for_what_is_missing(node: Host) -> None:
    node.run(f"{_WRITE} if=/dev/urandom of={DATA}/1 bs=10M count=10", user="alice", check=True)
    done(node, "stage", DATA, "--pack", "--yes", timeout=300)
    node.run("mkdir -p /local/cache && mount -t tmpfs -o size=400m,mode=1777 tmpfs /local/cache", check=True)
    try:
        job = node.start(["sharefs", "stage", DATA, "--yes", "--limit", "5M"])
        wait_until(lambda: node.run(f"test $(stat -c %s {COPIES}/.*.part) -gt 10000000").ok, timeout=120, what="some of it has come")
        job.kill(signal.SIGKILL)
        job.wait()
        done(node, "stage", DATA, "--yes", "--wait", "60s", timeout=300)
        done(node, "stage", "--drop", DATA, "--yes")
    finally:
        node.run("umount --lazy --recursive /local/cache", check=True)


def test_an_image_takes_the_place_of_files_that_lie_over_their_directory(node: Host) -> None:
    """As when a kernel has squashfs again. The newest of both is mounted after a boot."""
    bound = f"{SHARE}/bound"
    node.run(_FILL.format(bound), user="alice", check=True)
    program = node.run("readlink -f $(command -v modprobe)", check=True).out.strip()
    node.run(f"grep -v squashfs /proc/filesystems >/local/list; mount --bind /local/list /proc/filesystems; mount --bind /bin/false {program}", check=True)
    try:
        done(node, "stage", bound, "--yes")
    finally:
        node.run(f"umount /proc/filesystems {program}", check=True)
    assert [one["state"] for one in staged(node)] == ["files, in place of the share"]
    done(node, "stage", bound, "--yes")
    both = ["files", "mounted, in place of the share"]
    assert sorted(one["state"] for one in staged(node)) == both
    done(node, "umount", "--all", "--yes")
    done(node, "mount", "--all", "--yes")
    assert sorted(one["state"] for one in staged(node)) == both
    assert sharefs(node, "mount", "--all", "--check").returncode == 0
    done(node, "stage", "--drop", bound, "--yes")
    node.run(f"rm -r {bound}", user="alice", check=True)


def test_few_large_files_that_all_have_come_are_gone_on_with(node: Host) -> None:
    """Their directories are their owner's by then."""
    model = f"{SHARE}/model"
    node.run(f"mkdir -m 2750 {model} {model}/more && truncate -s 70M {model}/more/weights"
             f" && touch -d '1 hour ago' {model}/more/weights", user="alice", check=True)  # fmt: skip
    done(node, "stage", model, "--pack", "--yes")
    assert not node.run(["env", "SHAREFS_TEST_KILL_AT=0", "sharefs", "stage", model, "--yes"], timeout=120).ok
    assert [one["state"] for one in staged(node)] == ["cut off"]
    assert " 0 B copied" in said(done(node, "stage", model, "--yes"))
    assert [one["state"] for one in staged(node)] == ["files"]
    copy = staged(node)[0]["copy"]
    node.run(f"printf x | dd of={copy}/more/weights bs=1 seek=5000 conv=notrunc", check=True)
    assert " 70 MiB copied" in said(done(node, "stage", model, "--yes"))
    node.run(f"cmp {copy}/more/weights {model}/more/weights", user="alice", check=True)
    done(node, "stage", "--drop", model, "--yes")
    node.run(f"rm -r {model}", user="alice", check=True)


def test_a_large_file_that_changes_after_its_list_was_made_is_not_taken(node: Host) -> None:
    """By `--on NODES`, which has the list made first."""
    model = f"{SHARE}/model"
    node.run(f"mkdir -m 2750 {model} && truncate -s 70M {model}/weights", user="alice", check=True)
    packed = document(done(node, "stage", model, "--pack", "--yes", "--json"))["packed"]
    node.run(f"printf x | dd of={model}/weights bs=1 seek=5000 conv=notrunc", user="alice", check=True)
    refused = sharefs(node, "stage", model, "--packed", packed, "--yes")
    assert refused.returncode == 1 and "run the command again" in refused.err, refused
    done(node, "stage", model, "--yes")
    node.run(f"cmp {staged(node)[0]['copy']}/weights {model}/weights", user="alice", check=True)
    done(node, "stage", "--drop", model, "--yes")
    node.run(f"rm -r {model}", user="alice", check=True)


def test_a_path_may_be_long(node: Host) -> None:
    deep = f"{DATA}/" + "/".join([letter * 100 for letter in "abcde"])
    for path in (deep, f"{DATA}/{'n' * 250}"):
        node.run(_FILL.format(path), user="alice", check=True)
        done(node, "stage", path, "--yes")
        assert [(one["path"], one["state"]) for one in staged(node)] == [(path, "mounted")]
        done(node, "stage", "--drop", path, "--yes")
        assert staged(node) == []


def test_what_cannot_be_staged_is_named_with_its_cause(node: Host) -> None:
    node.run(f"mkdir -m 700 {DATA}/closed && ln -s nowhere {DATA}/dangling", user="alice", check=True)
    cases = {
        f"{DATA}/1": (2, "is no directory"),
        f"{DATA}/none": (1, "there is no directory"),
        f"{DATA}/dangling": (1, "there is no directory"),
        "/": (2, "own disk already"),
        "/etc": (2, "own disk already"),
    }
    for path, (code, text) in cases.items():
        refused = sharefs(node, "stage", path, "--yes")
        assert refused.returncode == code and text in refused.err, refused
    for limit in ("0", "-5", "5X", "", "1e99", "nan", "99999999999999999999"):
        refused = sharefs(node, "stage", DATA, "--yes", f"--limit={limit}")
        assert refused.returncode == 2 and "--limit" in refused.err, refused
    node.run(f"rm -r {DATA}/closed {DATA}/dangling && mkdir {DATA}/bobs && chmod 2770 {DATA}/bobs", user="alice", check=True)
    node.run(f"mkdir -m 700 {DATA}/bobs/closed", user="bob", check=True)
    refused = sharefs(node, "stage", DATA, "--yes", user="alice")
    assert refused.returncode == 1 and f"{DATA}/bobs/closed" in refused.err and "hint: " in refused.err, refused
    node.run(f"rmdir {DATA}/bobs/closed", user="bob", check=True)
