"""Which paths lie on shared storage, where their caches are built instead, and how a finished one gets to the share.

Two rules: whether a path is shared is decided by the mount table, without touching the path; and what lies on the
share under its final name is complete, made by one rename or link, and never replaced.
"""

import collections
import errno
import json
import os
import re
import shutil
import sys
import uuid

# The rows of src/sys/mounts/shared_storage.cpp. A test compares them.
SHARED = frozenset(
    "nfs nfs4 lustre gpfs ceph beegfs beegfs_nodev fhgfs cifs smb3 smbfs 9p afs ocfs2 gfs2 acfs pvfs2 panfs coda "
    "virtiofs autofs wekafs".split()
)
SHARED_FUSE = frozenset(
    "mountpoint-s3 mount-s3 blobfuse blobfuse2 gcsfuse geesefs tigrisfs goofys juicefs daos dfuse davfs davfs2 rclone "
    "s3fs ossfs ossfs2 obsfs cosfs alluxio alluxio-fuse sshfs smbnetfs curlftpfs glusterfs ceph-fuse mfs moosefs "
    "saunafs lizardfs seaweedfs curvefs cubefs chubaofs quobyte fuse_dfs cvmfs2 xtreemfs orangefs hf3fs objectivefs "
    "oneclient".split()
)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")  # S3's rules for names

PLACES = "SHAREFS_GUARD_PLACES"  # what sharefs answered, for the children of this process
MOST_PLACES = 50  # an environment variable has a limit
# What sharefs.yaml says, by the names in an answer. It counts where the environment does not say it, which is so in
# shared environments that have the guard.
SETTINGS = {"build": "SHAREFS_GUARD_BUILD", "when": "SHAREFS_GUARD_WHEN", "keep": "SHAREFS_GUARD_KEEP"}
PLACE_DEADLINE = 10.0  # seconds
ANOTHER_IS_AT_IT = 60.0  # seconds since it wrote last
LEFT_BEHIND = 3600.0  # seconds since its dead owner wrote last
SPARE_ROOM = 1 << 30  # bytes that a node's disk keeps when caches of known size are put on it
INFO = "dataset_info.json"  # datasets writes it last: with it, a dataset is complete
PUBLISHED = ".sharefs-published"  # beside it on the node's disk: the share has had this dataset

_HOST = re.sub(r"[^A-Za-z0-9_.-]", "_", os.uname()[1]) or "host"
_OWN_NAME = re.compile(r"\.(?P<final>.+)\.sharefs-(?P<host>.+)-(?P<pid>[0-9]+)-[0-9a-f]{8}(?:[._].*)?\Z")


# Messages

_reported = set()


def report(text):
    """One line on stderr, once in a process."""
    if text not in _reported and sys.stderr is not None:
        _reported.add(text)
        try:
            sys.stderr.write("sharefs: %s\n" % text)
            sys.stderr.flush()
        except (OSError, ValueError):
            pass


def warn(problem):
    report("warning: %s" % problem)


def speaks():
    """Is this the process of its job that speaks for all, rank 0 of node 0?"""
    ranks = (
        "RANK LOCAL_RANK GROUP_RANK NODE_RANK SLURM_PROCID SLURM_LOCALID SLURM_NODEID OMPI_COMM_WORLD_RANK "
        "OMPI_COMM_WORLD_LOCAL_RANK PMI_RANK PMIX_RANK MPI_LOCALRANKID MV2_COMM_WORLD_RANK"
    ).split()
    return all(os.environ.get(name, "0") == "0" for name in ranks)


# The mount table

Mount = collections.namedtuple("Mount", "id parent target type source options")


def _unescape(text):
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


def read_mounts():
    """/proc/self/mountinfo, by the number of the mount that each lies on."""
    children = collections.defaultdict(list)
    with open("/proc/self/mountinfo", errors="surrogateescape") as table:
        for line in table:
            left, _, right = line.rstrip("\n").partition(" - ")
            number, parent, _, _, target = left.split(" ")[:5]
            kind, source, options = (right.split(" ") + ["", ""])[:3]
            children[parent].append(Mount(number, parent, _unescape(target), kind, _unescape(source), options))
    return children


def _is_below(path, directory):
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def mount_of(path, mounts):
    """The mount that the lookup of this absolute path ends in, as the kernel goes from mount to mount."""
    numbers = {mount.id for group in mounts.values() for mount in group}
    found = None
    next_ones = [mount for parent, group in mounts.items() if parent not in numbers for mount in group]
    while True:
        next_ones = [mount for mount in next_ones if _is_below(path, mount.target) and mount is not found]
        if not next_ones:
            return found
        found = min(next_ones, key=lambda mount: len(mount.target))
        next_ones = mounts.get(found.id, [])


def is_shared(mount):
    """Do other hosts see the files of this mount? As sharefs decides it."""
    kind, _, subtype = mount.type.partition(".")
    if kind not in ("fuse", "fuseblk"):
        return mount.type in SHARED
    if subtype:
        return subtype in SHARED_FUSE or subtype == "ceph" or "://" in mount.source
    if mount.source.startswith("/"):
        return False
    if "#" in mount.source:
        return mount.source.partition("#")[0] in SHARED_FUSE
    is_bucket = _BUCKET.match(mount.source) and mount.source not in ("none", "fuse")
    return mount.source in SHARED_FUSE or ":" in mount.source or bool(is_bucket)


def _resolve(path):
    """The mount of a path, and the path itself with the symbolic links of local file systems followed. Stops at the
    first network or FUSE file system: what lies there is never touched."""
    mounts = read_mounts()
    rest = [part for part in os.path.abspath(path).split("/") if part]
    done, links = "/", 0
    mount = mount_of("/", mounts)
    while rest:
        step = os.path.join(done, rest.pop(0))
        mount = mount_of(step, mounts)
        if mount is None or is_shared(mount) or mount.type.startswith("fuse"):
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
        done = "/"
    return mount, os.path.join(done, *rest)


# Where a cache is built

# share: the cache's own directory, as the program names it. kind: local, unique or leave. directory: of local.
# excludes: a lock of one host excludes all others. is_version3: files that are mapped may vanish under their readers.
Place = collections.namedtuple("Place", "share kind directory reason excludes is_version3")

_places = None  # by share


def _build_mode():
    mode = os.environ.get("SHAREFS_GUARD_BUILD", "publish")
    return mode if mode in ("publish", "unique", "local") else "publish"


def publishes():
    return _build_mode() != "local"


def keeps(variable):
    """Is this one that somebody wants to stay where it is?"""
    return variable in os.environ.get("SHAREFS_GUARD_KEEP", "").split(":")


def _this_host():
    """Answers are good for this host and user only; an environment may come from elsewhere."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
    except OSError:
        boot = ""
    return "%s:%s:%d" % (os.uname()[1], boot, os.geteuid())


def _known_places():
    global _places
    if _places is None:
        _places = {}
        try:
            inherited = json.loads(os.environ.get(PLACES, "{}"))
            if inherited.get("host") == _this_host():
                _places = {share: Place(*place) for share, place in inherited["places"].items()}
        except (ValueError, TypeError, KeyError, AttributeError):
            _places = {}
    return _places


def _remember(place):
    places = _known_places()
    places[place.share] = place
    newest = dict(list(places.items())[-MOST_PLACES:])
    os.environ[PLACES] = json.dumps({"host": _this_host(), "places": newest})


def _program():
    named = os.environ.get("SHAREFS_BIN")
    return named or shutil.which("sharefs") or "/usr/bin/sharefs"


def _ask_sharefs(path):
    """The answer of `sharefs cache place PATH --json`, or why there is none."""
    import subprocess

    try:
        child = subprocess.Popen(
            [_program(), "cache", "place", path, "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            close_fds=True,
        )
    except OSError as problem:
        return {"place": "unique", "reason": "sharefs cannot be started (%s)" % problem.strerror}
    try:
        out, _ = child.communicate(timeout=PLACE_DEADLINE)
        answer = json.loads(out.decode("utf-8", "replace"))
        if child.returncode == 0 and answer.get("place") in ("local", "unique", "leave"):
            return answer
        return {"place": "unique", "reason": "sharefs found no place"}
    except subprocess.TimeoutExpired:
        child.kill()
        return {"place": "unique", "reason": "sharefs did not answer within %d s" % PLACE_DEADLINE}
    except (ValueError, AttributeError):
        return {"place": "unique", "reason": "the answer of sharefs cannot be read"}


def _find_place(path):
    """The Place of a directory of caches on shared storage; None where it does not lie on such storage."""
    mount, resolved = _resolve(path)
    if mount is None or not is_shared(mount):
        return None
    known = _known_places().get(path)
    if known and (known.kind != "local" or os.access(known.directory, os.W_OK | os.X_OK)):
        return known
    answer = _ask_sharefs(resolved)
    for key, name in SETTINGS.items():
        if isinstance(answer.get(key), str):
            os.environ.setdefault(name, answer[key])
    kind, directory = answer["place"], answer.get("directory") or ""
    if kind == "local" and not (os.path.isabs(directory) and os.path.isdir(directory)):
        kind, directory = "unique", ""
    if kind == "local" and _build_mode() == "unique":
        kind = "unique"
    is_version3 = mount.type == "nfs" and "vers=4" not in mount.options
    place = Place(path, kind, directory, answer.get("reason", ""), bool(answer.get("excludes")), is_version3)
    _remember(place)
    return place


def place_of(path, for_maps=False):
    """The Place of a directory of caches, or None where the program goes on as without the guard. `for_maps`: the
    directory is one whose files programs map and replace."""
    path = os.path.normpath(os.path.abspath(os.path.expanduser(path)))
    place = _find_place(path)
    if place is None or place.kind == "leave":
        return None
    only_racy = os.environ.get("SHAREFS_GUARD_WHEN") == "racy"
    if only_racy and place.excludes and not (for_maps and place.is_version3):
        return None
    return place


def place_around(directory):
    """The Place of files that are made in `directory`: that of a cache above it that is known, or its own."""
    directory = os.path.normpath(os.path.abspath(directory))
    above = [share for share in _known_places() if _is_below(directory, share)]
    return place_of(max(above, key=len) if above else directory, for_maps=True)


def place_by_directory(directory):
    """The Place whose local directory holds this one, or None."""
    directory = os.path.normpath(os.path.abspath(directory))
    for place in _known_places().values():
        if place.kind == "local" and _is_below(directory, place.directory):
            return place
    return None


def moved(path, old, new):
    """`path`, which lies in `old`, as it is called in `new`."""
    rest = os.path.relpath(path, old)
    if rest.startswith(".."):
        raise ValueError("%s does not lie in %s" % (path, old))
    return os.path.normpath(os.path.join(new, rest))


def announce(place):
    """One line for each cache of a job."""
    if not speaks():
        return
    said = os.environ.get("SHAREFS_GUARD_SAID", "").split(":")
    if place.share in said:
        return
    os.environ["SHAREFS_GUARD_SAID"] = ":".join([name for name in said if name][-MOST_PLACES:] + [place.share])
    if place.kind == "unique":
        why = " (%s)" % place.reason if place.reason else ""
        report("datasets of %s are built there under a name of this host's own%s" % (place.share, why))
    else:
        published = " and published" if publishes() else ""
        report("datasets of %s are built in %s%s" % (place.share, place.directory, published))


# Files that are made of datasets: cache-FINGERPRINT.arrow beside the dataset, or what stands for it

_FOR_FILES = "files"  # in the names of directories on the share of processes without room on the node's disk
_own_directories = {}  # of this process on the share: by the directory that each stands for


def _has_room(place, size):
    found = os.statvfs(place.directory)
    return found.f_bavail * found.f_frsize >= size + SPARE_ROOM


def directory_for_files(directory, size):
    """For a directory of the share in which files of about `size` bytes would be made: the one to make them in, the
    share's, and the Place. None where they can be made in the directory itself."""
    found = share_of_files(directory)
    if found is not None:
        share, place = found
        return directory, share, place
    place = place_around(directory)
    if place is None:
        return None
    if place.kind == "local" and _has_room(place, size):
        return moved(directory, place.share, place.directory), directory, place
    if directory not in _own_directories:
        own = own_name(os.path.join(directory, _FOR_FILES))
        os.mkdir(own)
        remove_leftovers(directory, os.lstat(own).st_mtime)
        at_exit(remove_own, own)
        _own_directories[directory] = own
    return _own_directories[directory], directory, place._replace(kind="unique")


def share_of_files(directory):
    """Of a directory that the guard has put in the place of another: that one and the Place. None of any other."""
    for share, own in _own_directories.items():
        if directory == own:
            return share, place_around(share)._replace(kind="unique")
    place = place_by_directory(directory)
    return (moved(directory, place.directory, place.share), place) if place else None


# Complete datasets


def is_complete(directory):
    return os.path.exists(os.path.join(directory, INFO))


def prefers_local(local, share):
    """Is the node's own copy the one to be read? The newer one counts. A copy of what somebody has removed from the
    share since then is removed as well."""
    if not is_complete(local):
        return False
    if is_complete(share):
        newest = os.stat(os.path.join(share, INFO)).st_mtime
        return os.stat(os.path.join(local, INFO)).st_mtime >= newest
    if os.path.exists(os.path.join(local, PUBLISHED)):
        shutil.rmtree(local, ignore_errors=True)
        return False
    return True


# Names of our own on the share: .FINAL.sharefs-HOST-PID-RANDOM, beside what they become. Hidden, because datasets takes
# every other directory there for a dataset.


def own_name(final):
    directory, name = os.path.split(final)
    return os.path.join(directory, ".%s.sharefs-%s-%d-%s" % (name, _HOST, os.getpid(), uuid.uuid4().hex[:8]))


def _last_write(path):
    """Of a file, or of a directory and the files right in it."""
    newest = os.lstat(path).st_mtime
    if os.path.isdir(path) and not os.path.islink(path):
        with os.scandir(path) as entries:
            newest = max([newest] + [entry.stat(follow_symlinks=False).st_mtime for entry in entries])
    return newest


def _is_alive(pid):
    return os.path.exists("/proc/%d" % pid)


def _remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        try:
            os.unlink(path)
        except OSError:
            pass


def remove_leftovers(directory, now):
    """What processes of this host and user left that are dead. `now` is the server's time."""
    for name in os.listdir(directory):
        match = _OWN_NAME.match(name)
        if not match or match.group("host") != _HOST or _is_alive(int(match.group("pid"))):
            continue
        path = os.path.join(directory, name)
        try:
            if os.lstat(path).st_uid == os.geteuid() and now - _last_write(path) > LEFT_BEHIND:
                _remove(path)
        except OSError:
            pass


def _another_publishes(own, final):
    """Does another process copy the same to the share? One copy is enough: of two that begin together the one whose
    name comes first goes on."""
    directory, name = os.path.split(own)
    now = os.lstat(own).st_mtime
    for other in os.listdir(directory):
        match = _OWN_NAME.match(other)
        if not match or other == name or match.group("final") != os.path.basename(final):
            continue
        path = os.path.join(directory, other)
        try:
            has_content = bool(os.listdir(path)) if os.path.isdir(path) else os.lstat(path).st_size > 0
            if now - _last_write(path) < ANOTHER_IS_AT_IT and (has_content or other < name):
                return True
        except OSError:
            pass
    return False


# Publishing


class HoldsLocalPaths(Exception):
    """What was to be published names files of this node's disk, and would be of no use elsewhere."""


def _sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _copy_file(source, target, forbidden):
    """Copies a file and syncs it. Raises HoldsLocalPaths where it contains these bytes."""
    overlap = len(forbidden) - 1
    with open(source, "rb") as reader, open(target, "wb") as writer:
        tail = b""
        while True:
            block = reader.read(1 << 24)
            if not block:
                break
            if forbidden in tail + block:
                raise HoldsLocalPaths()
            tail = block[-overlap:]
            writer.write(block)
        writer.flush()
        os.fsync(writer.fileno())
    times = os.stat(source)
    os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))


def _files_of_dataset(directory):
    """What datasets made, without what is made of it later and without locks. The info comes last."""
    names = []
    for root, _, files in os.walk(directory):
        for name in files:
            path = os.path.join(root, name)
            is_its_own = not name.startswith(("cache-", "tmp", ".")) and not name.endswith((".lock", ".incomplete"))
            if is_its_own and not os.path.islink(path):
                names.append(os.path.relpath(path, directory))
    return sorted(names, key=lambda name: (name == INFO, name))


def _check_room(directory, size):
    found = os.statvfs(directory)
    if found.f_blocks and found.f_bavail * found.f_frsize < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def publish_dataset(local, share, place):
    """Copies a complete dataset of this node to the share, unless one lies there. Returns whether one does now."""
    if not is_complete(share):
        os.makedirs(os.path.dirname(share), exist_ok=True)
        own = own_name(share)
        os.mkdir(own)
        _publish(local, _files_of_dataset(local), own, share, place, rename_to_nothing)
    if not is_complete(share):
        return False
    _mark(local)
    return True


def publish_file(local, share, place):
    """The same of one file beside a dataset, by link(2), which replaces nothing."""
    if os.path.exists(share) or not os.path.isdir(os.path.dirname(share)):
        return
    if place.kind == "unique":
        _link_to_nothing(local, share)
        return
    own = own_name(share)
    with open(own, "xb"):
        pass
    _publish(local, [""], own, share, place, _link_to_nothing)


def _publish(local, names, own, share, place, put_in_place):
    """Copies these files of `local` to `own`, which is there and empty, and puts that in its place on the share."""
    directory = os.path.dirname(share)
    try:
        remove_leftovers(directory, os.lstat(own).st_mtime)
        if _another_publishes(own, share):
            return
        pairs = [(os.path.join(local, name), os.path.join(own, name)) if name else (local, own) for name in names]
        _check_room(directory, sum(os.path.getsize(source) for source, _ in pairs))
        for source, target in pairs:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            _copy_file(source, target, os.fsencode(place.directory) + b"/")
        _sync(own)
        put_in_place(own, share)
        _sync(directory)
    finally:
        _remove(own)


def _mark(local):
    with open(os.path.join(local, PUBLISHED), "w"):
        pass


def remove_beside(path):
    """What datasets has put beside it: PATH.incomplete, PATH_builder.lock."""
    directory, name = os.path.split(path)
    try:
        names = os.listdir(directory)
    except OSError:
        return
    for other in names:
        if other.startswith(name) and other != name:
            _remove(os.path.join(directory, other))


def remove_own(path):
    remove_beside(path)
    _remove(path)


def at_exit(function, *arguments):
    """At the end of this process, and not of one that it forks; also of one that multiprocessing has started."""
    from multiprocessing.util import Finalize

    Finalize(None, function, args=arguments, exitpriority=0)


def directory_of_this_host(directory, place):
    """What stands for a directory of downloads. On the share it stays, for datasets may name what was extracted."""
    if place.kind == "local":
        return moved(directory, place.share, place.directory)
    return directory if directory.endswith("/sharefs-" + _HOST) else os.path.join(directory, "sharefs-" + _HOST)


def rename_to_nothing(directory, final):
    """Renames a directory unless something lies at its final name: rename(2) replaces no directory that has
    entries."""
    try:
        os.rename(directory, final)
    except OSError as problem:
        # ENOENT: an answer of the server got lost, and the rename was asked for twice.
        if problem.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.ENOENT):
            raise


def _link_to_nothing(file, final):
    try:
        os.link(file, final)
    except FileExistsError:
        pass


def add_missing_files(source, target):
    """Copies small files that `target` does not have, each whole, never through links."""
    for root, directories, files in os.walk(source):
        directories[:] = [name for name in directories if name != "__pycache__"]
        into = moved(root, source, target)
        for name in files:
            path, final = os.path.join(root, name), os.path.join(into, name)
            if name.startswith(".") or name.endswith((".lock", ".incomplete")) or os.path.islink(path):
                continue
            if os.path.lexists(final):
                continue
            os.makedirs(into, exist_ok=True)
            own = own_name(final)
            try:
                shutil.copyfile(path, own)
                _link_to_nothing(own, final)
            finally:
                _remove(own)


def show_shared_files(share, local, wanted):
    """Makes symbolic links in `local` to those regular files of `share` whose names are wanted and new there."""
    try:
        names = os.listdir(share)
    except OSError:
        return
    for name in names:
        if not wanted(name):
            continue
        target = os.path.join(local, name)
        if os.path.islink(target) and not os.path.exists(target):
            _remove(target)
        if not os.path.lexists(target) and os.path.isfile(os.path.join(share, name)):
            try:
                os.symlink(os.path.join(share, name), target)
            except FileExistsError:
                pass


class HostLock:
    """Excludes other processes of this host that build the same: a lock of a file that only this host names, on the
    share because the node may have no disk. Its file is gone when the last one is."""

    def __init__(self, final):
        import fcntl

        directory, name = os.path.split(final)
        os.makedirs(directory, exist_ok=True)
        self._path = os.path.join(directory, ".%s.sharefs-%s.lock" % (name, _HOST))
        while True:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            except OSError:
                return  # no locks here: then a rank may build what another has built
            try:
                if os.path.samestat(os.stat(self._path), os.fstat(self._descriptor)):
                    return
            except OSError:
                pass
            os.close(self._descriptor)  # its holder has removed it: the next one locks a new file

    def now(self):
        """The server's time."""
        os.utime(self._path)
        return os.stat(self._path).st_mtime

    def release(self):
        _remove(self._path)
        os.close(self._descriptor)
