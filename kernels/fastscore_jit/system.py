"""Differences between operating systems, each behind one function: files, locks, memory.

Linux supports all of it. macOS and Windows have their own implementations. Other systems use a
portable fallback or none, as documented in each function.
"""

import contextlib
import ctypes
import errno
import os
import shlex
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")
_MACHINE = Path("/proc/meminfo")
_CONTAINER = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_REPLACE_SECONDS, _POLL_SECONDS = 5.0, 0.05
_LOCKED_BYTE = 1 << 30
"""Windows forbids reading locked bytes, so this byte is beyond the contents of all lock files."""

_moving = threading.Lock()


def processors() -> int:
    """Count the processors that this process may use; all processors if that is unknown."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# Files


def open_descriptor(
    path: str | os.PathLike[str],
    flags: int = os.O_RDONLY,
    *,
    follow: bool = True,
    wait: bool = True,
) -> int:
    """Open a file of bytes and return its descriptor, which child processes do not inherit.

    Without ``follow``, links are refused (``ELOOP``). Without ``wait``, opening and reading a pipe
    do not block, if the system supports that.
    """
    flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    if not wait:
        flags |= getattr(os, "O_NONBLOCK", 0)
    if not follow:
        if not hasattr(os, "O_NOFOLLOW") and os.path.islink(path):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
        flags |= getattr(os, "O_NOFOLLOW", 0)
    return os.open(path, flags, 0o644)


_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
_ONCE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_MOST_LINKS = 40


def open_private(path: str | os.PathLike[str]) -> int:
    """Open a file or folder that only this user and root can change or replace.

    The path is walked from the root by descriptors: each folder and each link on it is checked, and
    nothing checked can be replaced by others afterwards. The PermissionError names what another
    user owns or may write. Without user ids (Windows), the path is opened.
    """
    if not hasattr(os, "getuid"):
        return open_descriptor(path)
    place, links = "/", 0
    rest = os.path.join(os.getcwd(), path).split("/")[::-1]
    walked = os.open(place, _FOLDER | _ONCE)
    try:
        _check_private(os.fstat(walked), place)
        while rest:
            name = rest.pop()
            if name in ("", "."):
                continue
            mode = os.stat(name, dir_fd=walked, follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                _check_private(os.stat(name, dir_fd=walked, follow_symlinks=False), place + name)
                target, links = os.readlink(name, dir_fd=walked), links + 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
                rest += target.split("/")[::-1]
                start = "/" if target.startswith("/") else "."
                place = "/" if start == "/" else place
                found = os.open(start, _FOLDER | _ONCE, dir_fd=walked)
            else:
                flags = _FOLDER if stat.S_ISDIR(mode) else _FILE
                found = os.open(name, flags | _ONCE, dir_fd=walked)
                place += name + "/" * stat.S_ISDIR(mode)
            os.close(walked)
            walked = found
            _check_private(os.fstat(walked), place)
    except BaseException:
        os.close(walked)
        raise
    return walked


def _check_private(found: os.stat_result, place: str) -> None:
    """Refuse what others own or may write; entries of a folder with the sticky bit stay theirs."""
    mode, reason, place = found.st_mode, "", place.rstrip("/") or "/"
    if found.st_uid not in (0, os.getuid()):
        reason = f"it belongs to another user ({found.st_uid})"
    elif not (stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        reason = "it is no regular file"
    elif (
        mode & 0o022 and not stat.S_ISLNK(mode) and not (stat.S_ISDIR(mode) and mode & stat.S_ISVTX)
    ):
        reason = f"others may write it (run: chmod go-w {shlex.quote(place)})"
    if reason:
        raise PermissionError(errno.EACCES, reason, place)


def make_private_folder(path: Path) -> None:
    """Make a folder and those above it, which only the user may write, whatever the umask."""
    for each in [each for each in (path, *path.parents) if not each.exists()][::-1]:
        with contextlib.suppress(FileExistsError):
            each.mkdir(0o755)


def read_at(descriptor: int, size: int, place: int) -> bytes:
    """Read up to ``size`` bytes at an offset of a file, safe from several threads."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, place)
    with _moving:
        os.lseek(descriptor, place, os.SEEK_SET)
        return os.read(descriptor, size)


def sync_file(descriptor: int) -> None:
    """Flush a file to the disk."""
    if sys.platform == "darwin":
        import fcntl

        with contextlib.suppress(OSError):  # network file systems may not support it
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Make renames in a folder durable. Not needed on Windows, whose file system has a journal."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def replace_file(old: str | os.PathLike[str], new: str | os.PathLike[str]) -> None:
    """Rename a file over another one.

    Windows refuses while another process has the target open. The rename is retried for 5 s.
    """
    until = time.monotonic() + _REPLACE_SECONDS
    while True:
        try:
            os.replace(old, new)
            return
        except PermissionError:
            if sys.platform != "win32" or time.monotonic() > until:
                raise
        time.sleep(_POLL_SECONDS)


def remove_locked(descriptor: int, path: Path) -> None:
    """Remove and close a file that this process has locked. Windows does not remove open files."""
    if sys.platform == "win32":
        os.close(descriptor)
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
    if sys.platform != "win32":
        os.close(descriptor)


# Locks


def lock_file(descriptor: int) -> bool:
    """Lock an open file for this descriptor until it is closed; False if it is already locked.

    It is an OSError if the file system has no locks.
    """
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_if_supported(descriptor: int) -> bool:
    """Lock an open file as `lock_file` does; True as well if its file system has no locks.

    For locks that only prevent work from being done twice.
    """
    try:
        return lock_file(descriptor)
    except OSError:
        return True


def has_range_locks() -> bool:
    """Return whether byte ranges of a file can be locked for a descriptor (Linux and macOS)."""
    try:
        import fcntl
    except ImportError:
        return False
    return hasattr(fcntl, "F_OFD_SETLK")


def lock_range(descriptor: int, start: int, length: int) -> bool:
    """Lock a byte range of an open file until it is closed; False if another descriptor locks any.

    It is an OSError if the file system has no locks.
    """
    import fcntl
    import struct

    if sys.platform == "darwin":  # start, length, process, type, from where
        lock = struct.pack("qqihh", start, length, 0, fcntl.F_WRLCK, os.SEEK_SET)
    else:  # type, from where, start, length, process
        lock = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, lock)
    except (BlockingIOError, PermissionError):
        return False
    return True


# Memory


@cache
def machine_memory() -> int:
    """Return the memory of this machine or container in bytes; 2^62 if unknown."""
    if sys.platform == "win32":
        status = (ctypes.c_uint64 * 8)(64)  # structure size, memory load, total memory
        _kernel32().GlobalMemoryStatusEx(status)
        return int(status[1])
    found = [int(text) for path in _CONTAINER if (text := _read(path).strip()).isdecimal()]
    found.append(_field(_MACHINE, "MemTotal:") or _memory_by_pages())
    return min((size for size in found if size), default=1 << 62)


def _memory_by_pages() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0


def own_memory() -> int:
    """Return the private memory of this process in bytes; 0 if unknown."""
    if sys.platform == "win32":
        return _windows_memory(8)
    if sys.platform == "darwin":
        return _footprint()
    return _field(_STATUS, "RssAnon:")


def peak_memory() -> int:
    """Return the peak resident memory of this process in bytes."""
    if sys.platform == "win32":
        return _windows_memory(0)
    import resource

    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest << 10


def _windows_memory(word: int) -> int:
    """Return a word of PROCESS_MEMORY_COUNTERS_EX (80 bytes), counted after its first eight."""
    counters = (ctypes.c_uint64 * 10)(80)
    kernel = _kernel32()
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    kernel.K32GetProcessMemoryInfo.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
    kernel.K32GetProcessMemoryInfo(kernel.GetCurrentProcess(), counters, 80)
    return int(counters[1 + word])


def _footprint() -> int:
    """Return macOS's ``ri_phys_footprint``: in rusage_info_v0 after a UUID and seven words."""
    usage = (ctypes.c_uint64 * 12)()
    ctypes.CDLL(None).proc_pid_rusage(os.getpid(), 0, usage)
    return int(usage[2 + 7])


def give_back_freed_memory() -> None:
    """Give freed memory back to the system, if the C library is glibc."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _field(path: Path, name: str) -> int:
    """Return a value of /proc in bytes, given in kB; 0 if missing."""
    for line in _read(path).splitlines():
        if line.startswith(name):
            return int(line.split()[1]) << 10
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


# Signals, the C library, processors


@contextlib.contextmanager
def without_interrupts() -> Iterator[None]:
    """Make processes that are started in the block ignore Ctrl-C, if the system can."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextlib.contextmanager
def safe_import_path() -> Iterator[None]:
    """Make Python processes that are started in the block import nothing from their folder."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        del os.environ["PYTHONSAFEPATH"]
        if before is not None:
            os.environ["PYTHONSAFEPATH"] = before


def _kernel32() -> Any:
    return getattr(ctypes, "WinDLL")("kernel32")  # noqa: B009


@cache
def c_library() -> Any:
    """Return the C library that this process and its kernels use."""
    return ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)


@cache
def processor_flags() -> frozenset[str]:
    """Return the processor's instruction sets by Linux's names; empty if unknown."""
    if sys.platform == "win32":
        return _windows_flags()
    if sys.platform == "darwin":
        return _sysctl_flags()
    lines = _read(Path("/proc/cpuinfo")).splitlines()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())


_SYSCTL = ("machdep.cpu.features", "machdep.cpu.leaf7_features", "machdep.cpu.extfeatures")
_LINUX_NAMES = {
    "avx1.0": "avx",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512vnni": "avx512_vnni",
    "lzcnt": "abm",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
}


def _sysctl_flags() -> frozenset[str]:
    """Return the flags of an Intel Mac, by Linux's names; empty on other Macs."""
    found: set[str] = set()
    for name in _SYSCTL:
        text, size = ctypes.create_string_buffer(4096), ctypes.c_size_t(4096)
        query = name.encode()
        if not ctypes.CDLL(None).sysctlbyname(query, text, ctypes.byref(size), None, 0):
            found.update(text.value.decode().lower().split())
    return frozenset(_LINUX_NAMES.get(name, name) for name in found)


# numbers of IsProcessorFeaturePresent; each implies all flags beside it
_WINDOWS_FEATURES = {
    14: {"cx16"},
    36: {"ssse3"},
    37: {"sse4_1"},
    38: {"popcnt", "sse4_2"},
    40: {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"},
}


def _windows_flags() -> frozenset[str]:
    """Ask Windows for instruction sets up to AVX2. It reports only one part of AVX-512."""
    kernel = _kernel32()
    present = [n for n in _WINDOWS_FEATURES if kernel.IsProcessorFeaturePresent(n)]
    return frozenset().union(*(_WINDOWS_FEATURES[number] for number in present))
