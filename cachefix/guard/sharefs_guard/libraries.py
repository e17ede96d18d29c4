"""What the guard does when a library is imported: variables before it, holds (builds.py) after it."""

import errno
import os
import pwd
import sys

from sharefs_guard import holds, publishing, storage

# Variables that libraries read when they are imported, and what they take without them (empty: what is somewhere else,
# or asking for it at each start would cost more than it brings); where code is compiled the mount must not be noexec.
# They are of the rows of cachefix/rules/rules.cpp, which has reasons and sources. A test compares them.
_VARIABLES = (
    # name, default, holds code
    ("HF_MODULES_CACHE", "$HF_HOME/modules", False),
    ("HF_XET_CACHE", "$HF_HOME/xet", False),
    ("TRITON_HOME", "", True),
    ("TRITON_CACHE_DIR", "$TRITON_HOME/.triton/cache", True),
    ("TORCH_EXTENSIONS_DIR", "$XDG_CACHE_HOME/torch_extensions", True),
    ("TORCHINDUCTOR_CACHE_DIR", "", True),
    ("PYTORCH_KERNEL_CACHE_PATH", "", True),
    ("VLLM_CACHE_ROOT", "$XDG_CACHE_HOME/vllm", True),
    ("SGLANG_CACHE_DIR", "", True),
    ("SGLANG_DG_CACHE_DIR", "", True),
    ("FLASHINFER_WORKSPACE_BASE", "", True),
    ("DG_JIT_CACHE_DIR", "", True),
    ("EP_JIT_CACHE_DIR", "", True),
    ("TILELANG_CACHE_DIR", "", True),
    ("TVM_FFI_CACHE_DIR", "", True),
    ("CUTE_DSL_CACHE_DIR", "", True),
    ("AITER_JIT_DIR", "", True),
    ("CUPY_CACHE_DIR", "", True),
    ("MIOPEN_CUSTOM_CACHE_DIR", "", True),
    ("NUMBA_CACHE_DIR", "", True),
    ("CUDA_CACHE_PATH", "", True),
)
_OF_DATASETS = ("HF_MODULES_CACHE", "HF_XET_CACHE")  # the others are of programs that compile


def before(name):
    """Just before the library is executed: what it will read from its environment."""
    holds.attempt(_set_variables, name)
    if not getattr(sys.excepthook, "of_sharefs", False):
        sys.excepthook = _explaining(sys.excepthook)


def after(name, module):
    """Just after it was executed."""
    if name in ("datasets", "evaluate"):
        holds.attempt(_hold_library, name, module)


def _hold_library(name, module):
    from sharefs_guard import builds

    (builds.hold_datasets if name == "datasets" else builds.hold_evaluate)(module)


def _explaining(show):
    """An excepthook: a program that dies of a file of another user in a shared cache also says whose it is."""

    def excepthook(kind, error, trace):
        show(kind, error, trace)
        holds.attempt(_explain_refusal, error)

    excepthook.of_sharefs = True
    return excepthook


def _explain_refusal(error):
    for _ in range(16):  # what was raised from what
        if error is None or isinstance(error, PermissionError):
            break
        error = error.__cause__ or error.__context__
    path = getattr(error, "filename", None)
    if not isinstance(path, str) or error.errno != errno.EACCES:
        return
    path = os.path.abspath(path)
    mount = storage.mount_of(path, storage.read_mounts())
    if mount is None or not storage.is_shared(mount):
        return
    try:
        status = os.lstat(path)
    except OSError:
        return  # a directory above it is closed, which Python has said
    try:
        owner = pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        owner = "user %d" % status.st_uid
    storage.report(
        "%s belongs to %s (mode %o) and may not be opened by this user: `find %s ! -perm -g+rw` finds all such files, and "
        "their owners open them with `chmod -R g+rwX %s`"
        % (path, owner, status.st_mode & 0o7777, os.path.dirname(path), os.path.dirname(path))
    )


# Variables


def _default_of(name, default):
    environment = dict(os.environ)
    home = environment.get("HOME") or "~"
    environment.setdefault("XDG_CACHE_HOME", home + "/.cache")
    environment.setdefault("HF_HOME", environment["XDG_CACHE_HOME"] + "/huggingface")
    environment.setdefault("TRITON_HOME", home)
    variable, _, rest = default.lstrip("$").partition("/")
    return os.environ.get(name) or (environment[variable] + "/" + rest if default else "")


def _set_variables(library):
    for name, default, holds_code in _VARIABLES:
        if library in ("datasets", "evaluate") and name not in _OF_DATASETS:
            continue
        path = _default_of(name, default)
        place = storage.place_of(path) if path else None
        if place is None or not place.directory or storage.keeps(name):  # also where datasets are built on the share
            continue
        if holds_code and os.statvfs(place.directory).f_flag & os.ST_NOEXEC:
            continue
        if name in os.environ and storage.speaks():
            storage.report("%s is %s instead of %s" % (name, place.directory, path))
        if name == "HF_MODULES_CACHE":
            _share_modules(place)
        os.environ[name] = place.directory


def _share_modules(place):
    """Code that was downloaded for datasets, metrics and models: what the share has is there offline, too, and what
    this process downloads gets to the share when it ends."""
    publishing.add_missing_files(place.share, place.directory)
    if storage.publishes():
        publishing.at_exit(holds.attempt, publishing.add_missing_files, place.directory, place.share)
