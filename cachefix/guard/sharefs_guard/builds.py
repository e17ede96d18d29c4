"""Decides where datasets and metrics are built. It does so in those functions of `datasets` and `evaluate` that know
the path, whether it is complete, and the caller.

If a cache is not on shared storage, or anything is unknown, the library's own function runs with its own arguments.
"""

import contextlib
import errno
import fcntl
import functools
import hashlib
import inspect
import os
import sys

from sharefs_guard import holds, publishing, storage

# datasets


def hold_datasets(module):
    builder = getattr(sys.modules.get("datasets.builder"), "DatasetBuilder", None)
    if builder is None or not hasattr(module, "load_dataset"):
        return  # the project has its own package of this name
    holds.hold_cache_dir(builder, _default_root, _is_not_made_there)
    holds.hold_after(builder, "__init__", _find_local_copy)
    holds.hold(builder, "download_and_prepare", _hold_build)
    holds.hold_after(module.Dataset, "_get_cache_file_path", _own_cache_file)
    holds.hold_after(module.Dataset, "_new_dataset_with_indices", _publish_indices)
    holds.hold_after(module.Dataset, "from_file", _publish_mapped)
    for name in ("map", "sort"):  # others call these, or write 8 bytes a row by a generator that cannot be asked twice
        holds.hold(module.Dataset, name, _hold_writing)
    holds.hold_after(module.DownloadManager, "__init__", _move_downloads)
    # Not every version has these: some came later, some are gone since version 3.
    # Without num_shards it only refuses to replace the very file that is read, and that is none of this node.
    if "num_shards" in inspect.signature(module.Dataset.save_to_disk).parameters:
        holds.hold(module.Dataset, "save_to_disk", _hold_save)
    cached = getattr(sys.modules["datasets.load"], "CachedDatasetModuleFactory", None)
    if cached is not None and "cache_dir" in inspect.signature(cached.__init__).parameters:
        holds.hold_cache_dir(cached, _default_root, _is_only_here)
    packaged = sys.modules.get("datasets.packaged_modules.cache.cache")
    if packaged is not None:
        holds.hold_cache_dir(packaged.Cache, _default_root, _is_only_here)
    mapped = getattr(sys.modules.get("datasets.table"), "MemoryMappedTable", None)
    if mapped is not None:
        holds.hold_after(mapped, "__getstate__", _name_on_share)
    metric = sys.modules.get("datasets.metric")
    if metric is not None:
        holds.hold_cache_dir(metric.Metric, lambda: module.config.HF_METRICS_CACHE, _computes_alone)


def _is_distributed(builder):
    """True for Spark and Beam: their workers build one dataset together, so it must lie where all of them see it."""
    names = {base.__name__ for base in type(builder).__mro__}
    return bool(names & {"Spark", "BeamBasedBuilder"})


def _point(builder, root, directory):
    """Sets the builder's root of caches, and the directory of its dataset in it."""
    builder._cache_dir_root = root
    builder._cache_dir = directory
    builder._output_dir = directory


def _default_root():
    return sys.modules["datasets"].config.HF_DATASETS_CACHE


def _is_not_made_there(builder, _, place, is_refused):
    """True if the share's root does not exist or cannot be written, because the builder would make it and a lock file
    in it; also if the lock file belongs to another user."""
    return not _is_distributed(builder) and (is_refused or not os.access(place.share, os.W_OK | os.X_OK))


def _use_complete(builder, place, share, local):
    """Gives the builder the complete dataset that this node or the share has, as the library does for one that it
    finds. Returns its directory, or None. The library's lock beside it is not needed: another user cannot take it."""
    if local and publishing.prefers_local(local, share):
        root, directory = place.directory, local
    elif publishing.is_complete(share):
        root, directory = place.share, share
    else:
        return None
    builder.info = type(builder.info).from_directory(directory)
    _point(builder, root, directory)
    return directory


def _find_local_copy(_, builder, *arguments, **named):
    """Gives a new builder a dataset that this node has, as if it lay on the share."""
    root = builder._cache_dir_root
    place = None if _is_distributed(builder) else holds.local_place(root)
    if place is not None:
        _use_complete(builder, place, builder._cache_dir, storage.moved(builder._cache_dir, root, place.directory))


def _hold_build(original):
    def download_and_prepare(self, *arguments, **named):
        build = holds.attempt(_build_of, self, original, arguments, named)
        if build is None:
            return original(self, *arguments, **named)
        function = functools.partial(original, self, *arguments, **named)
        with _lock_of_host(build.share):
            try:
                result = build.run(function)
            except Exception as problem:
                if not holds.attempt(build.move_to_share, problem):
                    raise
                result = build.run(function)
        holds.attempt(build.publish)  # takes long, and others of this host can read the dataset meanwhile
        return result

    return download_and_prepare


@contextlib.contextmanager
def _lock_of_host(final):
    """Excludes other processes of this host and user that build the same. The lock is on a file in memory, because the
    node may have no disk. Without such a file, or if it belongs to another user, who could keep it locked, two ranks
    may build the same."""
    name = "%s:%d:%s" % (os.uname()[1], os.geteuid(), final)
    path = "/dev/shm/sharefs-" + hashlib.sha256(os.fsencode(name)).hexdigest()[:32]
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        descriptor = None
    try:
        if descriptor is not None and os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # also for children that were forked meanwhile
            os.close(descriptor)


def _build_of(builder, original, arguments, named):
    """Returns the build that a call asks for, or None if the library builds as it would without the guard."""
    bound = inspect.signature(original).bind_partial(builder, *arguments, **named)
    root = builder._cache_dir_root
    if bound.arguments.get("output_dir") is not None or _is_distributed(builder):
        return None
    place = storage.place_by_directory(root) or storage.place_of(root)
    if place is None:
        return None
    mode = bound.arguments.get("download_mode") or "reuse_dataset_if_exists"
    rebuilds = getattr(mode, "value", mode) != "reuse_dataset_if_exists"
    return _Build(builder, place, storage.moved(builder._cache_dir, root, place.share), rebuilds)


class _Build:
    """Builds a dataset on the node's disk, or on the share under a name of this process. Then puts it on the share,
    unless that has one."""

    def __init__(self, builder, place, share, rebuilds):
        self.builder, self.place, self.share, self.rebuilds = builder, place, share, rebuilds
        self._local = storage.moved(share, place.share, place.directory) if place.kind == "local" else ""
        self._own = publishing.own_name(share)
        self._is_to_publish = False

    def run(self, function):
        if holds.attempt(self._is_there):
            return None
        began = holds.attempt(self._begin)
        is_done = False
        try:
            result = function()
            is_done = True
            return result
        finally:
            if began:
                holds.attempt(self._end_on_disk if self._local else self._end_on_share, is_done)

    def _is_there(self):
        if self.rebuilds:
            return False
        found = _use_complete(self.builder, self.place, self.share, self._local)
        if self._local and not found:
            publishing.forget(self._local)
        elif self._local and found == self._local and not publishing.is_complete(self.share):
            self._is_to_publish = True
        elif self._local and publishing.is_complete(self._local) and not publishing.marked(self._local):
            publishing.mark(self._local, self.share, publishing.REPLACED)
        return bool(found)

    def _begin(self):
        storage.announce(self.place)
        if self._local:
            _point(self.builder, self.place.directory, self._local)
        else:
            os.makedirs(os.path.dirname(self.share), exist_ok=True)
            _point(self.builder, self.place.share, self._own)
        return True

    def _end_on_disk(self, is_done):
        keeps_share = self.rebuilds and publishing.is_complete(self.share)
        self._is_to_publish = is_done and not keeps_share
        if is_done and keeps_share:
            publishing.mark(self._local, self.share, publishing.REBUILT)
            if storage.publishes():
                self._report_kept(self._local)

    def publish(self):
        if self._is_to_publish and storage.publishes():
            _publish(publishing.publish_dataset, self._local, self.share, self.place, self._local)

    def _end_on_share(self, is_done):
        if is_done:
            publishing.remove_beside(self._own)  # first: a process that is killed after the rename leaves nothing
            holds.attempt(publishing.remove_leftovers, self._own)
            publishing.put_in_place(self._own, self.share)
        is_ours = is_done and os.path.isdir(self._own)
        if is_ours and (self.rebuilds or not publishing.is_complete(self.share)):
            self._report_kept(self._own)
            publishing.at_exit(publishing.remove_own, self._own)
        else:
            publishing.remove_own(self._own)
            _point(self.builder, self.place.share, self.share)

    def _report_kept(self, built):
        text = "%s is built anew in %s; the share keeps what it has: remove that to have it published"
        storage.report(text % (self.share, built))

    def move_to_share(self, problem):
        """Goes on to build on the share if a build failed because the node's disk was too small. True if so."""
        if not _is_of_full_disk(problem) or not self._local:
            return False
        directory, share = self.place.directory, self.place.share
        storage.warn("%s is too small for a dataset of %s: it is built there" % (directory, share))
        self.place = self.place._replace(kind="unique", reason="the node's disk is too small")
        self._local = ""
        return True


def _is_of_full_disk(problem):
    chain, cause = [], problem
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    return any(
        isinstance(error, OSError)
        and (error.errno in (errno.ENOSPC, errno.EDQUOT) or str(error).startswith("Not enough disk space"))
        for error in chain
    )


def _publish(function, path, share, place, what):
    try:
        function(path, share, place)
    except publishing.HoldsLocalPaths:
        storage.warn("%s names files of this node and is not published" % what)
    except OSError as problem:
        storage.pass_on(problem)
        storage.warn("%s is not published: %s" % (what, problem.strerror))


def _move_downloads(_, manager, *arguments, **options):
    """Moves the downloads of a manager. The DownloadConfig is copied, because the program may have made it and use it
    elsewhere."""
    named = manager.download_config.cache_dir or sys.modules["datasets"].config.DOWNLOADED_DATASETS_PATH
    directory = os.path.expanduser(str(named))
    own = _own_downloads(directory)
    if own != directory:
        manager.download_config = manager.download_config.copy()
        manager.download_config.cache_dir = own


def _own_downloads(directory):
    """Returns the directory to which this host downloads instead, with links to what is downloaded already. Several
    hosts cannot download to one directory, because unfinished files have fixed names, too."""
    place = None if storage.place_by_directory(directory) else storage.place_around(directory)
    if place is None:
        return directory
    own = publishing.directory_of_this_host(directory, place)
    os.makedirs(own, exist_ok=True)
    publishing.show_shared_files(directory, own, lambda name: not name.endswith((".lock", ".incomplete", ".json")))
    return own


# Files that are made of datasets: map, filter, shuffle, sort, select


def _own_cache_file(path, dataset, *arguments, **named):
    """Returns the file on this node that replaces one beside a dataset of the share; None for any other file."""
    directory, name = os.path.split(path)
    pair = publishing.directory_for_files(directory, dataset.data.nbytes)
    if pair is None:
        return None
    own, share, place = pair
    os.makedirs(own, exist_ok=True)
    # One process writes cache-X.arrow; several write parts such as cache-X_00000_of_00002.arrow.
    stem = os.path.splitext(name)[0]
    publishing.show_shared_files(share, own, lambda other: other == name or other.startswith(stem + "_"))
    if not any(other == name or other.startswith(stem + "_") for other in os.listdir(own)):
        storage.announce(place)
    return os.path.join(own, name)


def _hold_writing(original):
    """Repeats what makes files of a dataset, on the share, if the node's disk was too small: without the guard, they
    were made there."""

    def make(self, *arguments, **named):
        try:
            return original(self, *arguments, **named)
        except Exception as problem:
            if not holds.attempt(_goes_to_share, self, problem):
                raise
        return original(self, *arguments, **named)

    return make


def _goes_to_share(dataset, problem):
    directories = [os.path.dirname(file["filename"]) for file in dataset.cache_files[:1]]
    return _is_of_full_disk(problem) and any([publishing.move_files_to_share(directory) for directory in directories])


def _publish_mapped(_, cls, filename, *arguments, **named):
    _publish_file(filename)


def _publish_indices(_, dataset, indices_cache_file_name=None, *arguments, **named):
    if indices_cache_file_name is not None:
        _publish_file(indices_cache_file_name)


def _publish_file(path):
    """Publishes a file that is complete now, if the guard had put it on this node."""
    directory, name = os.path.split(str(path))
    if not storage.publishes() or not name.startswith("cache-") or os.path.islink(str(path)):
        return
    found = publishing.share_of_files(directory)
    if found is None:
        return
    share, place = found
    _publish(publishing.publish_file, str(path), os.path.join(share, name), place, "what is made of %s" % share)


def _name_on_share(state, _):
    """Names the file of the share in place of its copy on this node, because another node may get the state, and
    fingerprints are made of it."""
    directory, name = os.path.split(state["path"])
    found = publishing.share_of_files(directory)
    shared = found and os.path.join(found[0], name)
    return dict(state, path=shared) if shared and os.path.exists(shared) else None


def _hold_save(original):
    """The library refuses to save a dataset over itself. It must also refuse if the dataset is read from files on this
    node that replace those on the share."""

    def save_to_disk(self, dataset_path, *arguments, **named):
        if holds.attempt(_is_read_from, self, dataset_path):
            raise PermissionError("Tried to overwrite %s but a dataset can't overwrite itself." % dataset_path)
        return original(self, dataset_path, *arguments, **named)

    return save_to_disk


def _is_read_from(dataset, directory):
    directory = os.path.abspath(os.path.expanduser(str(directory)))
    found = [publishing.share_of_files(os.path.dirname(file["filename"])) for file in dataset.cache_files]
    return any(pair and pair[0] == directory for pair in found)


# Offline


def _is_only_here(_, arguments, place, is_refused):
    """True if this node's root has the wanted dataset and the share's root does not."""
    from datasets.naming import camelcase_to_snakecase

    wanted = arguments.get("name") or arguments.get("repo_id") or arguments.get("dataset_name") or ""
    parts = wanted.split("/")
    name = "___".join(parts[:-1] + [camelcase_to_snakecase(parts[-1])])
    has_it = os.path.isdir(os.path.join(place.directory, name)) and not os.path.isdir(os.path.join(place.share, name))
    return bool(wanted) and has_it


# Metrics


def hold_evaluate(module):
    owner = sys.modules.get("evaluate.module")
    if owner is not None:
        holds.hold_cache_dir(owner.EvaluationModule, lambda: module.config.HF_METRICS_CACHE, _computes_alone)


def _computes_alone(_, arguments, place, is_refused):
    """True if one process computes the metric. Several processes need the share's directory, to meet there."""
    return arguments.get("num_process", 1) == 1
