"""Finds out which paths lie on shared storage, and where their caches are built instead.

The mount table shows the paths on this host's own file systems. About all others sharefs is asked, which knows whether
they are shared. A path on the share is never touched for that.
"""

import collections
import json
import os
import re
import shutil
import stat
import sys

# File systems whose files lie on this host. sharefs is asked about all others, because it knows the shared ones.
LOCAL = frozenset(
    "ext2 ext3 ext4 xfs btrfs bcachefs zfs f2fs jfs reiserfs nilfs2 vfat exfat ntfs ntfs3 fuseblk tmpfs ramfs rootfs "
    "devtmpfs overlay aufs squashfs erofs iso9660 udf fuse.squashfuse fuse.squashfuse_ll fuse.fuse-overlayfs "
    "fuse.lxcfs fuse.bindfs".split()
)

PLACES = "SHAREFS_GUARD_PLACES"  # the answers of sharefs, for the children of this process
MOST_PLACES = 50  # the length of an environment variable is limited
# The settings of sharefs.yaml in an answer, and their variables. A variable that is set already counts more.
SETTINGS = {"build": "SHAREFS_GUARD_BUILD", "when": "SHAREFS_GUARD_WHEN", "keep": "SHAREFS_GUARD_KEEP"}
PLACE_DEADLINE = 10.0  # seconds


# Messages

_reported = set()


def report(text):
    """Writes one line to stderr, once in a process. Not by the buffer of Python's own stderr: a line that cannot be
    written stays in it, and makes 120 of the program's exit code."""
    if text in _reported or sys.stderr is None:
        return
    _reported.add(text)
    line = "sharefs: %s\n" % text.replace("\n", "\\n")
    try:
        if sys.stderr is sys.__stderr__:
            os.write(sys.stderr.fileno(), line.encode(sys.stderr.encoding, "backslashreplace"))
        else:
            sys.stderr.write(line)
            sys.stderr.flush()
    except (OSError, ValueError):
        pass


def warn(problem):
    report("warning: %s" % problem)


def pass_on(problem):
    """Raises the problem again if a signal handler of the program has raised it: the program waits for that, as for a
    failure of its own."""
    import signal

    codes = set()
    for number in range(1, signal.NSIG):
        handler = signal.getsignal(number)
        handler = getattr(handler, "func", handler)  # of a functools.partial
        code = getattr(handler, "__code__", None) or getattr(getattr(handler, "__call__", None), "__code__", None)
        codes.add(getattr(getattr(handler, "__func__", None), "__code__", code))
    trace = problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            raise problem
        trace = trace.tb_next


def read_table():
    """Returns the rows of caches.txt."""
    with open(os.path.join(os.path.dirname(__file__), "caches.txt"), encoding="utf-8") as file:
        return re.sub(r"\n +", " ", file.read()).splitlines()


def speaks():
    """True if this process reports for its whole job: it is rank 0 of node 0."""
    ranks = next(row for row in read_table() if row.startswith("words ranks | "))
    return not any(re.search("[1-9]", os.environ.get(name, "")) for name in ranks.split()[3:])


# The mount table

Mount = collections.namedtuple("Mount", "type options")


def _unescape(text):
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


def _read_mounts():
    """Reads /proc/self/mountinfo. Returns the mount at each target. Of several there, one that may be shared counts,
    because sharefs knows which one is on top."""
    mounts = {}
    with open("/proc/self/mountinfo", errors="surrogateescape") as table:
        for line in table:
            left, _, right = line.rstrip("\n").partition(" - ")
            target = _unescape(left.split(" ")[4])
            kind, _, options = (right.split(" ") + ["", ""])[:3]
            if kind not in LOCAL or target not in mounts or mounts[target].type in LOCAL:
                mounts[target] = Mount(kind, options)
    return mounts


def _is_below(path, directory):
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _resolve(path):
    """Returns the mount of a path, and the path after the symbolic links on local file systems. Stops at the first file
    system that may be shared, because its files must not be touched."""
    mounts = _read_mounts()
    top = mounts.get("/", Mount("rootfs", ""))
    rest = [part for part in os.path.abspath(path).split("/") if part]
    done, links, mount = "/", 0, top
    while rest:
        step = os.path.join(done, rest.pop(0))
        mount = mounts.get(step, mount)
        if mount.type not in LOCAL:
            return mount, os.path.join(step, *rest)
        try:
            target = os.readlink(step)
        except OSError:
            done = step
            continue
        links += 1
        if links > 40:
            break
        whole = os.path.normpath(os.path.join(done, target))
        rest = [part for part in whole.split("/") if part] + rest
        done, mount = "/", top
    return mount, os.path.join(done, *rest)


# Where a cache is built

# share: the cache's own directory, as the program names it. kind: local, unique or leave. directory: for local only.
# excludes: file locks exclude other hosts. is_version3: NFS version 3, where a mapped file may vanish under its reader.
Place = collections.namedtuple("Place", "share kind directory reason excludes is_version3")


def _build_mode():
    mode = os.environ.get("SHAREFS_GUARD_BUILD", "publish")
    return mode if mode in ("publish", "unique", "local") else "publish"


def publishes():
    return _build_mode() != "local"


def keeps(variable):
    """True if the user wants this variable to stay as it is."""
    return variable in os.environ.get("SHAREFS_GUARD_KEEP", "").split(":")


def _this_host():
    """Returns a name of this host, boot and user. Answers count for no other, and an environment may come from another
    host."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
    except OSError:
        boot = ""
    return "%s:%s:%d" % (os.uname()[1], boot, os.geteuid())


def _inherited_places():
    try:
        inherited = json.loads(os.environ.get(PLACES, "{}"))
        if inherited["host"] == _this_host():
            return {share: Place(*place) for share, place in inherited["places"].items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    return {}


_places = _inherited_places()  # share -> Place
_former_places = []  # whose directories could not be written any more; datasets may have been read from there


def _remember(place):
    if place.share in _places:
        _former_places.append(_places[place.share])
    _places[place.share] = place
    newest = dict(list(_places.items())[-MOST_PLACES:])
    os.environ[PLACES] = json.dumps({"host": _this_host(), "places": newest})


def _program():
    """Returns the sharefs that belongs to this guard: PREFIX/bin/sharefs or PREFIX/sharefs for
    PREFIX/share/sharefs/guard."""
    prefix = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../../.."))
    ours = [os.environ.get("SHAREFS_BIN"), os.path.join(prefix, "bin/sharefs"), os.path.join(prefix, "sharefs")]
    found = [path for path in ours if path and os.access(path, os.X_OK) and os.path.isfile(path)]
    return found[0] if found else shutil.which("sharefs") or "/usr/bin/sharefs"


def _ask_sharefs(path):
    """Returns the answer of `sharefs cache place PATH --json`; without one `unique`, with the reason."""
    import subprocess

    try:
        child = subprocess.Popen(
            [_program(), "cache", "place", path, "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            close_fds=True,
        )
        out, _ = child.communicate(timeout=PLACE_DEADLINE)
        answer = json.loads(out.decode("utf-8", "replace"))
        if child.returncode == 0 and answer.get("place") in ("local", "unique", "leave"):
            return answer
        reason = "sharefs found no place"
    except OSError as problem:
        pass_on(problem)
        reason = "sharefs cannot be started (%s)" % problem.strerror
    except subprocess.TimeoutExpired:
        child.kill()  # not waited for, because it may hang in the kernel
        reason = "sharefs did not answer within %d s" % PLACE_DEADLINE
    except (ValueError, AttributeError) as problem:
        pass_on(problem)
        reason = "the answer of sharefs cannot be read"
    return {"place": "unique", "reason": reason}


def _is_own(directory):
    """True if the directory is this user's, and nobody else can write to it: what sharefs demands of one that it makes.
    In a place for all users another one may make the name anew once it was removed, by systemd-tmpfiles for example."""
    try:
        status = os.lstat(directory)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _find_place(path):
    """Returns the Place of a directory of caches; None if it lies on a local file system."""
    mount, resolved = _resolve(path)
    if mount.type in LOCAL:
        return None
    known = _places.get(path)
    if known and (
        known.kind != "local" or (_is_own(known.directory) and os.access(known.directory, os.W_OK | os.X_OK))
    ):
        return known
    answer = _ask_sharefs(resolved)
    for key, name in SETTINGS.items():
        if isinstance(answer.get(key), str):
            os.environ.setdefault(name, answer[key])
    kind, directory = answer["place"], answer.get("directory") or ""
    if kind == "local" and not (os.path.isabs(directory) and _is_own(directory)):
        kind, directory = "unique", ""
    if kind == "local" and _build_mode() == "unique":
        kind = "unique"
    is_version3 = mount.type == "nfs" and "vers=4" not in mount.options
    place = Place(path, kind, directory, answer.get("reason", ""), bool(answer.get("excludes")), is_version3)
    _remember(place)
    return place


def place_of(path, for_maps=False):
    """Returns the Place of a directory of caches, or None if the program uses it as without the guard. `for_maps`:
    programs map the files in it and replace them."""
    if "://" in path:
        return None  # no file system
    path = os.path.normpath(os.path.abspath(os.path.expanduser(path)))
    place = _find_place(path)
    if place is None or place.kind == "leave":
        return None
    only_racy = os.environ.get("SHAREFS_GUARD_WHEN") == "racy"
    if only_racy and place.excludes and not (for_maps and place.is_version3):
        return None
    return place


def place_around(directory):
    """Returns the Place for files in `directory`: that of the nearest known cache above it, or its own."""
    if "://" in directory:
        return None
    directory = os.path.normpath(os.path.abspath(directory))
    above = [share for share in _places if _is_below(directory, share)]
    return place_of(max(above, key=len) if above else directory, for_maps=True)


def place_by_directory(directory):
    """Returns the Place whose local directory contains this one, or None."""
    directory = os.path.normpath(os.path.abspath(directory))
    for place in list(_places.values()) + _former_places:
        if place.kind == "local" and _is_below(directory, place.directory):
            return place
    return None


def moved(path, old, new):
    """Returns the path in `new` that corresponds to `path` in `old`."""
    rest = os.path.relpath(path, old)
    if rest.startswith(".."):
        raise ValueError("%s does not lie in %s" % (path, old))
    return os.path.normpath(os.path.join(new, rest))


def announce(place):
    """Reports where a cache is built, in one line for each cache of a job."""
    if not speaks():
        return
    said = os.environ.get("SHAREFS_GUARD_SAID", "")
    if ":%s:" % place.share in ":%s:" % said:  # not by parts: a path may contain a colon
        return
    os.environ["SHAREFS_GUARD_SAID"] = ":".join(said.split(":")[-MOST_PLACES:] + [place.share])
    if place.kind == "unique":
        why = " (%s)" % place.reason if place.reason else ""
        report("datasets of %s are built there under a name of this host's own%s" % (place.share, why))
    else:
        published = " and published" if publishes() else ""
        report("datasets of %s are built in %s%s" % (place.share, place.directory, published))
