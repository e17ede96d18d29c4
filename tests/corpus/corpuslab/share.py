"""A file system that counts as shared storage and has content: a FUSE server that passes on to a local directory.

It speaks the kernel's protocol (linux/fuse.h) by itself: nothing has to be installed for it. Unless the kernel is to
remember what it was answered, the directory may change behind its back.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_HEADER = struct.Struct("<IIQQIIII")
_BUFFER = 1 << 17
_SET_MODE, _SET_SIZE, _SET_MTIME = 1, 8, 32


def _name(data: bytes) -> bytes:
    return data.split(b"\0", 1)[0]


def _attributes(path: bytes) -> bytes:
    found = os.lstat(path)
    seconds = (int(found.st_atime), int(found.st_mtime), int(found.st_ctime))
    return struct.pack(
        "<6Q10I", found.st_ino, found.st_size, found.st_blocks, *seconds, 0, 0, 0, found.st_mode, found.st_nlink,
        found.st_uid, found.st_gid, 0, 4096, 0,
    )  # fmt: skip


class _Server:
    def __init__(self, device: int, backing: bytes, seconds: int) -> None:
        self._device = device
        self._seconds = seconds
        self._paths = {1: backing}
        self._ids = {backing: 1}
        self._lists: dict[int, list[tuple[bytes, int, int]]] = {}

    def _entry(self, path: bytes) -> bytes:
        attributes = _attributes(path)
        node = self._ids.setdefault(path, len(self._ids) + 1)
        self._paths[node] = path
        return struct.pack("<4Q2I", node, 0, self._seconds, self._seconds, 0, 0) + attributes

    def _attr(self, path: bytes) -> bytes:
        return struct.pack("<Q2I", self._seconds, 0, 0) + _attributes(path)

    def _set(self, path: bytes, data: bytes) -> bytes:
        valid, size, mtime, mode = struct.unpack_from("<I12xQ16xQ20xI", data)
        if valid & _SET_MODE:
            os.chmod(path, stat.S_IMODE(mode))
        if valid & _SET_SIZE:
            os.truncate(path, size)
        if valid & _SET_MTIME:
            os.utime(path, (mtime, mtime))
        return self._attr(path)

    def _rename(self, path: bytes, data: bytes, skip: int) -> bytes:
        (target,) = struct.unpack_from("<Q", data)
        old, new = data[skip:].split(b"\0")[:2]
        os.rename(path + b"/" + old, self._paths[target] + b"/" + new)
        # Nodes keep their numbers only by path: what was renamed is looked up anew.
        return b""

    def _list(self, node: int, data: bytes) -> bytes:
        offset, size = struct.unpack_from("<8xQI", data)
        if offset == 0:
            with os.scandir(self._paths[node]) as found:
                entries = [(e.name, e.inode(), stat.S_IFMT(e.stat(follow_symlinks=False).st_mode) >> 12) for e in found]
            self._lists[node] = [(b".", 1, 4), (b"..", 1, 4), *sorted(entries)]
        out = b""
        for at, (name, inode, kind) in enumerate(self._lists.get(node, [])[offset:], start=offset + 1):
            entry = struct.pack("<QQII", inode, at, len(name), kind) + name
            entry += b"\0" * (-len(entry) % 8)
            if len(out) + len(entry) > size:
                break
            out += entry
        return out

    def _answer(self, opcode: int, node: int, data: bytes) -> bytes | None:
        path = self._paths.get(node, b"/nowhere/at/all")
        if opcode == 26:  # INIT
            return struct.pack("<4I2H2I2H8I", 7, 31, 1 << 16, 0, 12, 10, 1 << 16, 1, 16, 0, *[0] * 8)
        if opcode in (2, 36, 42):  # FORGET, INTERRUPT, BATCH_FORGET: nobody waits
            return None
        if opcode == 1:
            return self._entry(path + b"/" + _name(data))
        if opcode == 3:
            return self._attr(path)
        if opcode == 4:
            return self._set(path, data)
        if opcode == 5:
            return os.readlink(path)
        if opcode == 6:
            name, target = data.split(b"\0")[:2]
            os.symlink(target, path + b"/" + name)
            return self._entry(path + b"/" + name)
        if opcode == 9:
            made = path + b"/" + _name(data[8:])
            os.mkdir(made, struct.unpack_from("<I", data)[0])
            return self._entry(made)
        if opcode == 10:
            os.unlink(path + b"/" + _name(data))
            return b""
        if opcode == 11:
            os.rmdir(path + b"/" + _name(data))
            return b""
        if opcode in (12, 45):
            return self._rename(path, data, 8 if opcode == 12 else 16)
        if opcode == 13:  # LINK
            made = path + b"/" + _name(data[8:])
            os.link(self._paths[struct.unpack_from("<Q", data)[0]], made)
            return self._entry(made)
        if opcode in (14, 27):  # OPEN, OPENDIR: all goes by path
            return struct.pack("<QII", 0, 0, 0)
        if opcode == 15:
            offset, size = struct.unpack_from("<8xQI", data)
            with open(path, "rb") as file:
                return os.pread(file.fileno(), size, offset)
        if opcode == 16:
            offset, size = struct.unpack_from("<8xQI", data)
            with open(path, "r+b") as file:
                return struct.pack("<II", os.pwrite(file.fileno(), data[40 : 40 + size], offset), 0)
        if opcode == 17:
            found = os.statvfs(path)
            numbers = (found.f_blocks, found.f_bfree, found.f_bavail, found.f_files, found.f_ffree)
            return struct.pack("<5Q10I", *numbers, found.f_bsize, 255, found.f_frsize, *[0] * 7)
        if opcode in (18, 20, 25, 29, 30):  # RELEASE, FSYNC, FLUSH, RELEASEDIR, FSYNCDIR
            return b""
        if opcode == 28:
            return self._list(node, data)
        if opcode == 35:  # CREATE
            flags, mode = struct.unpack_from("<II", data)
            made = path + b"/" + _name(data[16:])
            os.close(os.open(made, (flags & (os.O_EXCL | os.O_TRUNC)) | os.O_CREAT | os.O_WRONLY, mode & 0o7777))
            return self._entry(made) + struct.pack("<QII", 0, 0, 0)
        raise OSError(errno.ENOSYS, "")

    def serve(self) -> None:
        while True:
            try:
                request = os.read(self._device, _BUFFER)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                    continue
                return  # unmounted
            size, opcode, unique, node, *_ = _HEADER.unpack_from(request)
            try:
                number, answer = 0, self._answer(opcode, node, request[_HEADER.size : size])
            except OSError as error:
                number, answer = -(error.errno or errno.EIO), b""
            if answer is not None:
                os.write(self._device, struct.pack("<IiQ", 16 + len(answer), number, unique) + answer)


def mount_share(at: Path, backing: Path, seconds: int = 0) -> int:
    """`backing` appears on `at` as an sshfs, whose names and attributes the kernel remembers for so long. The server is
    a process of its own; its pid is returned."""
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
    if _libc.mount(b"storage1:/share", os.fsencode(at), b"fuse.sshfs", 0, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"mount FUSE on {at}")
    server = os.fork()
    if server == 0:
        try:
            _libc.prctl(1, 9)  # PR_SET_PDEATHSIG: it keeps its own mount alive, so it has to go with the test
            os.umask(0)
            _Server(device, os.fsencode(backing), seconds).serve()
        finally:
            os._exit(0)
    os.close(device)
    return server
