"""How what is built gets to the share, and what a process leaves there meanwhile.

What lies on the share under its final name is complete, made by one rename or link, and never replaced.
"""

import errno
import fcntl
import os
import re
import shutil
import uuid

from sharefs_guard import storage

ANOTHER_IS_AT_IT = 60.0  # seconds since it wrote last
LEFT_BEHIND = 3600.0  # seconds since its dead owner wrote last
SPARE_ROOM = 1 << 30  # bytes that a node's disk keeps when caches of known size are put on it
INFO = "dataset_info.json"  # datasets writes it last: with it, a dataset is complete
PUBLISHED = ".sharefs-published"  # beside it on the node's disk: the share has had this dataset

_HOST = re.sub(r"[^A-Za-z0-9_.-]", "_", os.uname()[1]) or "host"
_OWN_NAME = re.compile(r"\.(?P<final>.+)\.sharefs-(?P<host>.+)-(?P<pid>[0-9]+)-[0-9a-f]{8}(?:[._].*)?\Z")


# Files that are made of datasets: cache-FINGERPRINT.arrow beside the dataset, or what stands for it

_FOR_FILES = "files"  # in the names of directories on the share of processes without room on the node's disk
_own_directories = {}  # of this process on the share: by the directory that each stands for


def directory_for_files(directory, size):
    """For a directory of the share in which files of about `size` bytes would be made: the one to make them in, the
    share's, and the Place. None where they can be made in the directory itself."""
    found = share_of_files(directory)
    if found is not None:
        share, place = found
        return directory, share, place
    place = storage.place_around(directory)
    if place is None:
        return None
    if place.kind == "local" and _has_room(place.directory, size + SPARE_ROOM):
        return storage.moved(directory, place.share, place.directory), directory, place
    if directory not in _own_directories:
        own = own_name(os.path.join(directory, _FOR_FILES))
        os.mkdir(own)
        remove_leftovers(own)
        at_exit(remove_own, own)
        _own_directories[directory] = own
    return _own_directories[directory], directory, place._replace(kind="unique")


def share_of_files(directory):
    """Of a directory that the guard has put in the place of another: that one and the Place. None of any other."""
    for share, own in _own_directories.items():
        if directory == own:
            return share, storage.place_around(share)._replace(kind="unique")
    place = storage.place_by_directory(directory)
    return (storage.moved(directory, place.directory, place.share), place) if place else None


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
    if _is_forgotten(local, share):
        _forget(local, share)
        return False
    return True


def _is_forgotten(local, share):
    """Had the share this dataset, and has it no more? What says that it had is looked at first, since another process
    may publish meanwhile; a share that does not answer has lost nothing."""
    if not os.path.exists(os.path.join(local, PUBLISHED)):
        return False
    try:
        os.stat(os.path.join(share, INFO))
    except FileNotFoundError:
        return True
    except OSError:
        pass
    return False


def _forget(local, share):
    """Removes it at once for all, and no other that a process has built in its place since."""
    lock = lock_of_host(local)
    try:
        if _is_forgotten(local, share):
            own = own_name(local)
            rename_to_nothing(local, own)
            _remove(own)
    finally:
        if lock is not None:
            os.close(lock)


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


def _remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        try:
            os.unlink(path)
        except OSError:
            pass


def _own_names(directory):
    """The names of processes in there: the path, and what the name says."""
    matches = ((name, _OWN_NAME.match(name)) for name in os.listdir(directory))
    return [(os.path.join(directory, name), match) for name, match in matches if match]


def remove_leftovers(own):
    """What processes of this host and user that are dead left beside `own`, which was just written: its time is the
    server's."""
    now = os.lstat(own).st_mtime
    for path, match in _own_names(os.path.dirname(own)):
        if match.group("host") != _HOST or os.path.exists("/proc/" + match.group("pid")):
            continue
        try:
            if os.lstat(path).st_uid == os.geteuid() and now - _last_write(path) > LEFT_BEHIND:
                _remove(path)
        except OSError:
            pass


def _another_publishes(own, final):
    """Does another process copy the same to the share? One copy is enough: of two that begin together the one whose
    name comes first goes on."""
    now = os.lstat(own).st_mtime
    for path, match in _own_names(os.path.dirname(own)):
        if path == own or match.group("final") != os.path.basename(final):
            continue
        try:
            has_content = bool(os.listdir(path)) if os.path.isdir(path) else os.lstat(path).st_size > 0
            if now - _last_write(path) < ANOTHER_IS_AT_IT and (has_content or path < own):
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


def _direct(share):
    """O_DIRECT if the path lies on NFS, for _open_to_write()."""
    return os.O_DIRECT if storage.is_on_nfs(share) else 0


def _open_to_write(path, direct, flags=os.O_TRUNC):
    """Opens a file of the share, which is made if it is missing. On NFS it is opened with O_DIRECT, which is taken back
    at once: so the client gets no delegation. While it has one, the times that it sets are its own only, and are lost
    with it (Linux 7.2)."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flags | direct, 0o666)
    if direct:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, 0)
    return open(descriptor, "wb")


def _copy_file(source, target, forbidden, direct):
    """Copies a file and syncs it. Raises HoldsLocalPaths where it contains these bytes."""
    overlap = len(forbidden) - 1
    with open(source, "rb") as reader, _open_to_write(target, direct) as writer:
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


def _has_room(directory, size):
    found = os.statvfs(directory)
    return not found.f_blocks or found.f_bavail * found.f_frsize >= size


def publish_dataset(local, share, place):
    """Copies a complete dataset of this node to the share, unless one lies there. Returns whether one does now."""
    if not is_complete(share):
        os.makedirs(os.path.dirname(share), exist_ok=True)
        own = own_name(share)
        os.mkdir(own)
        _publish(local, _files_of_dataset(local), own, share, place, rename_to_nothing)
    if not is_complete(share):
        return False
    with open(os.path.join(local, PUBLISHED), "w"):
        pass
    return True


def publish_file(local, share, place):
    """The same of one file beside a dataset, by link(2), which replaces nothing."""
    if os.path.exists(share) or not os.path.isdir(os.path.dirname(share)):
        return
    if place.kind == "unique":
        _link_to_nothing(local, share)
        return
    own = own_name(share)
    with _open_to_write(own, _direct(own), os.O_EXCL):
        pass
    _publish(local, [""], own, share, place, _link_to_nothing)


def _publish(local, names, own, share, place, put_in_place):
    """Copies these files of `local` to `own`, which is there and empty, and puts that in its place on the share."""
    directory = os.path.dirname(share)
    try:
        remove_leftovers(own)
        if _another_publishes(own, share):
            return
        pairs = [(os.path.join(local, name), os.path.join(own, name)) if name else (local, own) for name in names]
        if not _has_room(directory, sum(os.path.getsize(source) for source, _ in pairs)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        direct = _direct(own)  # asked once: it reads the table of mounts
        for source, target in pairs:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            _copy_file(source, target, os.fsencode(place.directory) + b"/", direct)
        _sync(own)
        put_in_place(own, share)
        _sync(directory)
    finally:
        _remove(own)


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
        return storage.moved(directory, place.share, place.directory)
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
        into = storage.moved(root, source, target)
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


def lock_of_host(final):
    """Excludes other processes of this host and user that build the same, until the descriptor is closed: a lock of a
    file in memory, because the node may have no disk. None where there is none, or another user has put one there, who
    could keep it locked: then a rank may build what another has built."""
    import hashlib

    name = "%s:%d:%s" % (_HOST, os.geteuid(), final)
    path = "/dev/shm/sharefs-" + hashlib.sha256(os.fsencode(name)).hexdigest()[:32]
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            return descriptor
        os.close(descriptor)
    except OSError:
        pass
    return None
