"""Copies what was built to the share, and removes the temporary files of processes there.

A file or dataset that has its final name on the share is complete: one rename or link gives it that name. It is never
replaced.
"""

import errno
import fcntl
import filecmp
import os
import re
import shutil
import stat
import uuid

from sharefs_guard import storage

ANOTHER_IS_AT_IT = 60.0  # seconds after its last write in which another process counts as still copying
LEFT_BEHIND = 3600.0  # seconds after the last write of a dead process, when its files are removed
SPARE_ROOM = 1 << 30  # bytes that stay free on a node's disk when a cache of known size is put on it
INFO = "dataset_info.json"  # datasets writes it last, so a dataset with it is complete
# Beside INFO on the node's disk: the generation of the dataset on the share that this one was published as. With
# REBUILT in front, the program had this one built anew, and the share kept its own. With REPLACED in front, another
# host published its own.
MARK = ".sharefs-published"
REBUILT = "rebuilt "
REPLACED = "replaced by "

_HOST = re.sub(r"[^A-Za-z0-9_.-]", "_", os.uname()[1]) or "host"


def _processes():
    """Returns the host with the PID namespace: a container may have the name of its host, but other process numbers."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        return _HOST
    return _HOST if namespace == "pid:[4026531836]" else _HOST + "." + namespace[len("pid:[") : -1]


_PROCESSES = _processes()
_OWN_NAME = re.compile(r"\.(?P<final>.+)\.sharefs-(?P<host>.+)-(?P<pid>[0-9]+)-[0-9a-f]{8}(?:[._].*)?\Z")


# Files that are made of datasets: cache-FINGERPRINT.arrow beside the dataset, or in a directory that replaces its own

_FOR_FILES = "files"  # part of the name of a directory on the share, made if the node's disk has no room
_own_directories = {}  # directory of datasets -> the directory on the share that this process made instead
# On the node's disk there is one for each generation, because another dataset may come to the same place on the share.
_OF_GENERATION = ".of-"


def directory_for_files(directory, size):
    """Finds the directory for files of about `size` bytes that would be made in a directory of the share. Returns it,
    the share's directory and the Place; None if the files can be made in the directory itself."""
    found = share_of_files(directory)
    share, place = found or (directory, storage.place_around(directory))
    if place is None:
        return None
    # The disk may be full or read-only by now.
    is_usable = place.kind == "local" and share not in _own_directories and os.access(place.directory, os.W_OK)
    if is_usable and _has_room(place.directory, size + SPARE_ROOM):
        if found:
            return directory, share, place
        local = storage.moved(share, place.share, place.directory)
        return os.path.join(local, _OF_GENERATION + _generation(share)), share, place
    _make_own_directory(share)
    return _own_directories[share], share, place._replace(kind="unique")


def _make_own_directory(share):
    if share not in _own_directories:
        own = own_name(os.path.join(share, _FOR_FILES))
        os.mkdir(own)
        remove_leftovers(own)
        at_exit(remove_own, own)
        _own_directories[share] = own


def move_files_to_share(directory):
    """Has the files that will be made in a directory of datasets made on the share from now on, because the node's disk
    is full. True if they were made on that disk."""
    share, place = share_of_files(directory) or (directory, storage.place_around(directory))
    if place is None or place.kind != "local" or share in _own_directories:
        return False
    storage.warn("%s is too small for what is made of %s: it is made there" % (place.directory, share))
    _make_own_directory(share)
    return True


def share_of_files(directory):
    """Returns the directory of the share that this one replaces, and its Place; None if it replaces none, or another
    dataset than the one that lies there now."""
    for share, own in _own_directories.items():
        if directory == own:
            return share, storage.place_around(share)._replace(kind="unique")
    place = storage.place_by_directory(directory)
    if place is None:
        return None
    share = storage.moved(directory, place.directory, place.share)
    parent, name = os.path.split(share)
    if name.startswith(_OF_GENERATION):
        share, is_current = parent, name == _OF_GENERATION + _generation(parent)
    else:
        now = _generation(share)
        is_current = bool(now) and marked(directory) in ("", now, REPLACED + now)
    return (share, place) if is_current else None


# Complete datasets


def is_complete(directory):
    return os.path.exists(os.path.join(directory, INFO))


def _generation(share):
    """Returns what tells the dataset on the share from others that lie there before and after it; empty if there is
    none. The file is opened, because NFS shows what is new to who opens a file."""
    try:
        descriptor = os.open(os.path.join(share, INFO), os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    try:
        found = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return "%d-%d-%d" % (found.st_ino, found.st_mtime_ns, found.st_size)


def marked(local):
    try:
        with open(os.path.join(local, MARK)) as file:
            return file.read()
    except OSError:
        return ""


def mark(local, share, how=""):
    """Marks the node's dataset with the generation of the one on the share."""
    with open(os.path.join(local, MARK), "w") as file:
        file.write(how + _generation(share))


def prefers_local(local, share):
    """True if the node's own dataset is to be read: it was published or rebuilt beside the very one that lies on the
    share, or the share has none and never had this one. A share that does not answer counts as unchanged."""
    if not is_complete(local):
        return False
    before = marked(local)  # read before the share, because another process may publish in between
    try:
        now = _generation(share)
    except OSError:
        return True
    if not now:
        return not before or before.startswith(REBUILT)
    return before in (now, REBUILT + now)


def forget(local):
    """Removes the node's dataset by one rename."""
    if is_complete(local):
        own = own_name(local)
        rename_to_nothing(local, own)
        _remove(own)


# Temporary names on the share: .FINAL.sharefs-PROCESSES-PID-RANDOM, beside the final name. They are hidden, because
# datasets takes every other directory there for a dataset.


def own_name(final):
    directory, name = os.path.split(final)
    return os.path.join(directory, ".%s.sharefs-%s-%d-%s" % (name, _PROCESSES, os.getpid(), uuid.uuid4().hex[:8]))


def _remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        try:
            os.unlink(path)
        except OSError:
            pass


def _find_others(own, is_wanted):
    """Yields the temporary files beside `own` whose name `is_wanted(match)`: path, status, whether it has content, and
    the seconds since the last write to it or to a file directly in it. `own` was just written, so its time is the
    present time of the server. A time in the future, of a host with another clock, is as far from the present as one in
    the past: it must not stay fresh until the clocks get there."""
    now = os.lstat(own).st_mtime
    directory = os.path.dirname(own)
    for name in os.listdir(directory):
        path, match = os.path.join(directory, name), _OWN_NAME.match(name)
        if not match or path == own or not is_wanted(match):
            continue
        try:
            status = os.lstat(path)
            times, has_content = [status.st_mtime], status.st_size > 0
            if stat.S_ISDIR(status.st_mode):
                with os.scandir(path) as entries:
                    times += [entry.stat(follow_symlinks=False).st_mtime for entry in entries]
                has_content = len(times) > 1
        except OSError:
            continue
        yield path, status, has_content, min(abs(now - time) for time in times)


def _is_of_dead_process(match):
    return match.group("host") == _PROCESSES and not os.path.exists("/proc/" + match.group("pid"))


def remove_leftovers(own):
    """Removes the temporary files of dead processes of this host and user beside `own`."""
    for path, status, _, age in _find_others(own, _is_of_dead_process):
        if status.st_uid == os.geteuid() and age > LEFT_BEHIND:
            _remove(path)


def _another_publishes(own, final):
    """True if another process copies the same to the share, because one copy is enough. Of two that begin together, the
    one whose name sorts first goes on."""
    name = os.path.basename(final)
    same = _find_others(own, lambda match: match.group("final") == name and not _is_of_dead_process(match))
    return any(age < ANOTHER_IS_AT_IT and (has_content or path < own) for path, _, has_content, age in same)


# Publishing


class HoldsLocalPaths(Exception):
    """The files to publish contain paths of this node's disk, so other nodes cannot use them."""


def _sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _create(path):
    """Opens a new file exclusively. With O_DIRECT, which is cleared at once, an NFS client asks for no delegation.
    Under one, the times of the file are the client's own, and change when another host reads the file (Linux 7.2)."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags | os.O_DIRECT, 0o666)
    except OSError as problem:
        if problem.errno != errno.EINVAL:
            raise
        _remove(path)  # a file system without O_DIRECT has made the file
        descriptor = os.open(path, flags, 0o666)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, 0)
    return open(descriptor, "wb")


def _copy_file(source, writer, forbidden):
    """Copies a file and syncs it. Raises HoldsLocalPaths if it contains the bytes `forbidden`."""
    overlap = len(forbidden) - 1
    with open(source, "rb") as reader:
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


def _files_of_dataset(directory):
    """Returns the files of a dataset, INFO last. Locks, and files that were made of the dataset later, are left out."""
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
    """Copies a complete dataset of this node to the share, unless the share has one. True if the share has one now."""
    if not is_complete(share):
        os.makedirs(os.path.dirname(share), exist_ok=True)
        own = own_name(share)
        os.mkdir(own)
        _publish(local, _files_of_dataset(local), own, share, place, _put_dataset_in_place)
    is_there = is_complete(share)
    if is_there:
        mark(local, share)
    return is_there


def publish_file(local, share, place):
    """Publishes one file beside a dataset by link(2), which never replaces a file."""
    if os.path.exists(share) or not os.path.isdir(os.path.dirname(share)):
        return
    if place.kind == "unique":
        _link_to_nothing(local, share)
        return
    own = own_name(share)
    with _create(own) as made:
        _publish(local, [""], own, share, place, _link_to_nothing, made)


def _publish(local, names, own, share, place, put_in_place, made=None):
    """Copies these files of `local` to `own`, a directory that is empty, or the file that is open as `made`, then gives
    that its final name on the share. Files there are opened by _create() only: who may rename there could have put a
    link to another file of this user in their place."""
    directory = os.path.dirname(share)
    try:
        remove_leftovers(own)
        if _another_publishes(own, share):
            return
        pairs = [(os.path.join(local, name), os.path.join(own, name)) if name else (local, own) for name in names]
        if not _has_room(directory, sum(os.path.getsize(source) for source, _ in pairs)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        for source, target in pairs:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with made or _create(target) as writer:
                _copy_file(source, writer, os.fsencode(place.directory) + b"/")
        _sync(own)
        put_in_place(own, share)
        _sync(directory)
    finally:
        _remove(own)


def remove_beside(path):
    """Removes what datasets has put beside the path: PATH.incomplete, PATH_builder.lock."""
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
    """Calls the function when this process ends, but not when one that it forks ends. Works in processes that
    multiprocessing has started, too."""
    from multiprocessing.util import Finalize

    Finalize(None, function, args=arguments, exitpriority=0)


def directory_of_this_host(directory, place):
    """Returns this host's directory in place of one for downloads. One on the share is not removed afterwards, because
    datasets may name files that were extracted there."""
    if place.kind == "local":
        return storage.moved(directory, place.share, place.directory)
    return directory if directory.endswith("/sharefs-" + _HOST) else os.path.join(directory, "sharefs-" + _HOST)


def rename_to_nothing(directory, final):
    """Renames a directory unless its final name is taken: rename(2) replaces no directory that has entries."""
    try:
        os.rename(directory, final)
    except OSError as problem:
        # ENOENT: the server's answer was lost, so the client repeated a rename that had succeeded.
        if problem.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.ENOENT):
            raise


def put_in_place(own, final):
    """Gives a complete dataset its final name. If that is taken by a part of the same dataset, which has lost INFO, the
    part gets the files that it lacks. No file is replaced, because another host may have mapped it."""
    rename_to_nothing(own, final)
    if is_complete(final) or not os.path.isdir(final) or not os.path.isdir(own):
        return
    pairs = [(os.path.join(own, name), os.path.join(final, name)) for name in _files_of_dataset(own)]  # INFO last
    lacks = [pair for pair in pairs if not os.path.lexists(pair[1])]
    if all(pair in lacks or filecmp.cmp(*pair, shallow=False) for pair in pairs):
        for file, target in lacks:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            _link_to_nothing(file, target)
        _sync(final)


def _put_dataset_in_place(own, share):
    put_in_place(own, share)
    if os.path.isdir(share) and not is_complete(share):
        raise OSError(errno.ENOTEMPTY, "%s holds another one without %s; remove that" % (share, INFO))


def _link_to_nothing(file, final):
    try:
        os.link(file, final)
    except FileExistsError:
        pass


def add_missing_files(source, target):
    """Copies small files that `target` does not have. Each appears complete; links are not followed."""
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
    """Makes symbolic links in `local` to the regular files of `share` whose names are wanted and not in `local` yet."""
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
