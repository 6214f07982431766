"""Differences between systems: each implementation, run on Linux."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest import mock

import pytest
from fastscore_jit import objects, system
from fastscore_jit.declaring import CompilationError

from tests.other_systems import stand_ins

MIB = 1 << 20


def on(monkeypatch, platform):
    """Have the module take this system for another one."""
    monkeypatch.setattr(system, "sys", SimpleNamespace(platform=platform))
    stand_ins(monkeypatch, platform)


@pytest.fixture(params=["linux", "portable"])
def way(request, monkeypatch):
    if request.param == "portable":
        for name in ("pread", "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK"):
            monkeypatch.delattr(os, name)


@pytest.mark.usefixtures("way")
def test_threads_read_at_their_own_places(tmp_path):
    content = bytes(range(256)) * 200
    (tmp_path / "file").write_bytes(content)
    file = system.open_descriptor(tmp_path / "file", wait=False)

    def read(place):
        return system.read_at(file, 300, place) == content[place:][:300]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(0, len(content) + 10, 7)))
    os.close(file)


@pytest.mark.usefixtures("way")
def test_a_link_is_refused_where_none_is_followed(tmp_path):
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to("file")
    os.close(system.open_descriptor(tmp_path / "link"))
    with pytest.raises(OSError, match="levels of symbolic links") as caught:
        system.open_descriptor(tmp_path / "link", follow=False)
    assert caught.value.errno == errno.ELOOP


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_one_descriptor_has_the_lock_until_it_is_closed(tmp_path, monkeypatch, platform):
    on(monkeypatch, platform)
    first, second = (
        system.open_descriptor(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2)
    )
    assert system.lock_file(first)
    assert not system.lock_file(second)
    os.write(first, b"who has it")
    assert system.read_at(second, 100, 0) == b"who has it"
    system.remove_locked(first, tmp_path / "lock")
    assert not (tmp_path / "lock").exists()
    assert system.lock_file(second)
    os.close(second)


def test_a_file_system_without_locks_is_told_from_a_held_lock(tmp_path, monkeypatch):
    first, second = (
        system.open_descriptor(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2)
    )
    assert system.lock_if_supported(first)
    assert not system.lock_if_supported(second)
    monkeypatch.setattr("fcntl.flock", mock.Mock(side_effect=OSError(errno.ENOLCK, "no locks")))
    with pytest.raises(OSError, match="no locks"):
        system.lock_file(second)
    assert system.lock_if_supported(second)
    os.close(first)
    os.close(second)


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_ranges_are_locked_for_a_descriptor(tmp_path, monkeypatch, platform):
    on(monkeypatch, platform)
    assert system.has_range_locks()
    first, second = (
        system.open_descriptor(tmp_path / "claims", os.O_RDWR | os.O_CREAT) for _ in range(2)
    )
    assert system.lock_range(first, 1 << 61, 10)
    assert not system.lock_range(second, (1 << 61) + 9, 10)
    assert system.lock_range(second, (1 << 61) + 10, 10)
    os.close(first)
    assert system.lock_range(second, (1 << 61) + 9, 10)
    os.close(second)


def test_windows_waits_for_who_has_a_file_open(tmp_path, monkeypatch):
    refusals, replace = [PermissionError(), PermissionError()], os.replace

    def replace_later(old, new):
        if refusals:
            raise refusals.pop()
        replace(old, new)

    monkeypatch.setattr(os, "replace", replace_later)
    for name in ("old", "new"):
        (tmp_path / name).write_text(name)
    with pytest.raises(PermissionError):
        system.replace_file(tmp_path / "old", tmp_path / "new")
    refusals.append(PermissionError())
    on(monkeypatch, "win32")
    system.replace_file(tmp_path / "old", tmp_path / "new")
    assert (tmp_path / "new").read_text() == "old"
    assert not (tmp_path / "old").exists()


def test_memory_is_what_each_system_says(monkeypatch):
    assert 10 * MIB < system.own_memory() <= system.peak_memory() < system._memory_by_pages()
    linux = system.peak_memory()
    on(monkeypatch, "darwin")
    assert system.own_memory() == 200 * MIB
    assert linux / 2048 < system.peak_memory() < linux / 512  # bytes there, KiB here
    on(monkeypatch, "win32")
    assert (system.own_memory(), system.peak_memory()) == (200 * MIB, 300 * MIB)
    assert system.machine_memory.__wrapped__() == 16 << 30


INTEL_MAC = {
    b"machdep.cpu.features": b"FPU SSE3 SSSE3 FMA CX16 SSE4.1 SSE4.2 MOVBE POPCNT AVX1.0 F16C",
    b"machdep.cpu.leaf7_features": b"BMI1 AVX2 BMI2",
    b"machdep.cpu.extfeatures": b"SYSCALL LZCNT RDTSCP",
}


@pytest.mark.parametrize(
    ("platform", "known", "level"),
    [
        ("darwin", INTEL_MAC, "x86-64-v3"),
        ("darwin", {**INTEL_MAC, b"machdep.cpu.leaf7_features": b"BMI1"}, "x86-64-v2"),
        ("darwin", {}, "x86-64"),
        ("win32", {14, 36, 37, 38, 40}, "x86-64-v3"),
        ("win32", {14, 36, 37, 38}, "x86-64-v2"),
        ("win32", {14, 36}, "x86-64"),
    ],
)
def test_a_processor_gets_the_highest_level_that_it_has(monkeypatch, platform, known, level):
    on(monkeypatch, platform)
    stand_ins(monkeypatch, platform, known)
    monkeypatch.setattr(objects, "processor_flags", system.processor_flags.__wrapped__)
    monkeypatch.setattr("platform.machine", lambda: "AMD64")
    assert objects.processor_level.__wrapped__().name == level


@pytest.mark.parametrize(
    ("machine", "lacks", "level"),
    [
        ("x86_64", {"avx512vbmi"}, "x86-64-v4"),
        ("x86_64", {"avx512bw", "avx512vbmi"}, "x86-64-v3"),
        ("x86_64", {"avx2", "avx512bw"}, "x86-64-v2"),
        ("x86_64", {"popcnt", "avx2"}, "x86-64"),
        ("aarch64", set(), "generic"),
        ("arm64", set(), "generic"),
    ],
)
def test_a_processor_below_a_level_gets_a_lower_one(monkeypatch, machine, lacks, level):
    flags = objects.LEVELS[0].flags - lacks
    monkeypatch.setattr(objects, "processor_flags", lambda: flags)
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert objects.processor_level.__wrapped__().name == level


def test_a_level_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("FASTSCORE_PROCESSOR", "pentium")
    with pytest.raises(CompilationError, match="FASTSCORE_PROCESSOR is 'pentium', expected one"):
        objects.processor_level.__wrapped__()


def test_code_with_instructions_that_the_processor_lacks_is_not_loaded(monkeypatch):
    level = objects.LEVELS[1]
    monkeypatch.setattr(objects, "processor_level", lambda: level)
    monkeypatch.setattr(objects, "processor_flags", lambda: level.flags - {"avx512bw"})
    with pytest.raises(CompilationError, match=r"'x86-64-v4', but this processor lacks avx512bw"):
        objects.check_processor.__wrapped__()
    monkeypatch.setattr(objects, "processor_flags", lambda: level.flags)
    objects.check_processor.__wrapped__()


needs_users = pytest.mark.skipif(not hasattr(os, "getuid"), reason="there are no user ids")


@needs_users
@pytest.mark.parametrize(
    ("opened", "shared"),
    [
        ("file", "file"),
        ("file", "folder"),
        ("file", "above"),
        ("folder", "folder"),
        ("folder", "above"),
    ],
)
def test_what_others_may_write_is_not_opened(tmp_path, opened, shared):
    folder = tmp_path / "above" / "folder"
    system.make_private_folder(folder)
    (folder / "file").write_text("text")
    wanted = folder if opened == "folder" else folder / "file"
    os.close(system.open_private(wanted))
    changed = {"file": folder / "file", "folder": folder, "above": folder.parent}[shared]
    changed.chmod(changed.stat().st_mode | 0o020)
    with pytest.raises(PermissionError, match="chmod go-w") as caught:
        system.open_private(wanted)
    assert caught.value.filename == str(changed)


@needs_users
def test_links_are_followed_only_below_folders_that_others_cannot_write(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("text")
    shared = tmp_path / "shared"
    shared.mkdir()
    for name, target in (
        ("absolute", tmp_path / "real"),
        ("relative", "../real"),
        ("loop", "loop"),
    ):
        (shared / name).symlink_to(target)
    for name in ("absolute", "relative"):
        os.close(system.open_private(shared / name / "file"))
    with pytest.raises(OSError, match="levels of symbolic links"):
        system.open_private(shared / "loop")
    shared.chmod(0o1777)  # as /tmp is: what is ours there stays in its place
    os.close(system.open_private(shared / "absolute" / "file"))
    shared.chmod(0o777)
    for name in ("absolute", "relative"):
        with pytest.raises(PermissionError, match="others may write"):
            system.open_private(shared / name / "file")


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives away")
@pytest.mark.parametrize("what", ["file", "folder", "link"])
def test_nothing_of_another_user_is_opened(tmp_path, what):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("text")
    (tmp_path / "link").symlink_to("folder")
    os.close(system.open_private(tmp_path / "link" / "file"))
    given = tmp_path / {"file": "folder/file"}.get(what, what)
    os.chown(given, 12345, 12345, follow_symlinks=False)
    with pytest.raises(PermissionError, match=r"another user \(12345\)"):
        system.open_private(tmp_path / "link" / "file")


@needs_users
def test_no_pipe_is_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(PermissionError, match="no regular file"):
        system.open_private(tmp_path / "pipe")


@needs_users
@pytest.mark.parametrize("umask", [0o002, 0o022, 0o077])
def test_folders_are_made_for_the_user_alone_to_write(tmp_path, umask):
    before = os.umask(umask)
    try:
        system.make_private_folder(tmp_path / "one" / "two")
        system.make_private_folder(tmp_path / "one" / "two")
    finally:
        os.umask(before)
    os.close(system.open_private(tmp_path / "one" / "two"))


@pytest.mark.parametrize("before", [None, "", "1"])
def test_the_import_path_is_safe_for_a_block(monkeypatch, before):
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    if before is not None:
        monkeypatch.setenv("PYTHONSAFEPATH", before)
    with system.safe_import_path():
        assert os.environ["PYTHONSAFEPATH"] == "1"
    assert os.environ.get("PYTHONSAFEPATH") == before
