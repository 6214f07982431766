"""A process that takes itself for one on macOS or Windows: `pretend`, before fastscore is imported.

What those lack is taken away, and what they have instead is a stand-in that Linux carries out.
"""

import ctypes
import fcntl
import importlib
import os
import select
import signal
import struct
import sys
import types
from pathlib import Path

LIBRARY, LINUX_FCNTL, LINUX_FLOCK = ctypes.CDLL, fcntl.fcntl, fcntl.flock
LACKS = {
    "darwin": {os: ("sched_getaffinity", "posix_fadvise")},
    "win32": {
        os: (
            *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "fork", "geteuid", "getpgid"),
            *("getuid", "killpg", "mkfifo", "pread", "pwrite", "sched_getaffinity"),
            *("sysconf", "uname"),
        ),
        select: ("poll", "epoll"),
        signal: ("pthread_sigmask", "SIGKILL", "SIGHUP", "SIGUSR1", "SIGPIPE"),
    },
}
MISSING = {"darwin": set(), "win32": {"fcntl", "resource", "termios", "pwd", "grp"}}


# they ask for the system as they are imported
OF_OTHERS = (
    *("click", "jinja2", "multiprocessing.synchronize", "numpy", "orjson", "polars", "pyarrow.ipc"),
    *("pyarrow.parquet", "rich.console", "rich.progress", "subprocess", "urllib.request"),
    "zstandard",
)


def pretend(platform: str) -> None:
    """Take this process for one on another system, after the packages of others are imported."""
    import tempfile

    for name in OF_OTHERS:
        importlib.import_module(name)
    import polars as pl
    from fastscore_jit import system

    system.processor_flags()  # this processor's stay what they are
    assert pl.DataFrame({"a": [1]}).lazy().collect().height
    with tempfile.TemporaryDirectory():
        pass
    sys.meta_path.insert(0, _Missing(MISSING[platform]))
    for name in MISSING[platform]:
        sys.modules.pop(name, None)
    for name, value in _stand_ins(platform):
        _set(name, value)
    for module, names in LACKS[platform].items():
        for name in names:
            vars(module).pop(name, None)
    sys.platform = platform


def stand_ins(monkeypatch, platform: str, known=()) -> None:
    """Give a test what another system has, a processor too that has these features."""
    for name, value in _stand_ins(platform, known):
        if isinstance(name, str):
            monkeypatch.setitem(sys.modules, name, value)
        else:
            monkeypatch.setattr(*name, value, raising=False)


def _set(name, value) -> None:
    if isinstance(name, str):
        sys.modules[name] = value
    else:
        setattr(*name, value)


def _stand_ins(platform: str, known=()):
    """Yield modules by name, and values by module and name."""
    if platform == "darwin":
        yield (fcntl, "F_FULLFSYNC"), 51
        yield (fcntl, "fcntl"), _darwin_fcntl
    if platform == "win32":
        yield "msvcrt", _msvcrt()
        yield (ctypes, "WinDLL"), lambda name: _Kernel32(known)
    yield (ctypes, "CDLL"), lambda name, *rest: _library(name, platform, known)


class _Missing:
    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _darwin_fcntl(descriptor, command, argument=0):
    if command == fcntl.F_FULLFSYNC:
        return os.fsync(descriptor)
    if command == fcntl.F_OFD_SETLK:
        start, length, process, kind, origin = struct.unpack("qqihh", argument)
        argument = struct.pack("hhqqi", kind, origin, start, length, process)
    return LINUX_FCNTL(descriptor, command, argument)


def _msvcrt():
    def locking(descriptor, mode, count):
        assert (mode, count) == (2, 1)
        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        assert place > 1 << 20, "Windows lets nobody read what is locked"
        try:
            LINUX_FLOCK(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PermissionError from error

    made = types.ModuleType("msvcrt")
    made.LK_NBLCK, made.locking = 2, locking
    return made


class _Kernel32:
    """The functions of Windows that are called, as its documentation has them."""

    def __init__(self, known):
        self.known = known

    def IsProcessorFeaturePresent(self, number):
        return number in self.known

    class GetCurrentProcess:
        restype = None

        def __new__(cls):
            return -1

    class K32GetProcessMemoryInfo:
        argtypes = None

        def __new__(cls, process, counters, size):
            assert size == ctypes.sizeof(counters) == counters[0]
            counters[1], counters[9] = 300 << 20, 200 << 20
            return 1

    @staticmethod
    def GlobalMemoryStatusEx(status):
        assert status[0] == ctypes.sizeof(status)
        status[1] = 16 << 30
        return 1


def _library(name, platform, known):
    library = LIBRARY(None if name == "ucrtbase" else name)

    def proc_pid_rusage(process, flavor, usage):
        assert (process, flavor) == (os.getpid(), 0)
        usage[9] = 200 << 20
        return 0

    def sysctlbyname(name, text, size, new, new_size):
        if name in known:
            text.value = known[name]
        return -1 if name not in known else 0

    if platform == "darwin":
        library.proc_pid_rusage, library.sysctlbyname = proc_pid_rusage, sysctlbyname
    return library


def lend_kernels(cache: Path, platform: str) -> None:
    """Give the kernels that are compiled here the names that another system's have."""
    from fastscore_jit import objects

    suffix = {"darwin": ".dylib", "win32": ".dll"}[platform]
    here = objects.cache_folder()
    folder = cache / "kernels" / here.name.replace(sys.platform, platform)
    folder.mkdir(parents=True)
    for path in here.glob("*.so"):
        (folder / path.name).with_suffix(suffix).symlink_to(path)
