"""Logs in an object store are scored like equal files, and errors name only the object."""

import gzip
import io
import os
import re
import shutil
import ssl
import subprocess
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard

import fastscore
from fastscore.errors import FastscoreError, InputError, UsageError
from fastscore.logs import objects
from tests.conftest import fastscore_command
from tests.logs.stores import SECRET, Store, environment_of, served
from tests.run.logs import write_logs, write_varied_logs
from tests.run.running import forbid_scoring, run_lexical

pytest.importorskip("obstore")

OPTIONS = fastscore.ScoreDialogue(lex_weight=1.0)


@pytest.fixture
def store(monkeypatch, tmp_path):
    with served() as store:
        for name, value in environment_of(store).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(objects, "_known", {})
        monkeypatch.setattr(objects, "_beginnings", {})
        monkeypatch.setattr(objects, "cache_root", lambda: tmp_path / "cache")
        objects.open_bucket.cache_clear()
        yield store
        objects.open_bucket.cache_clear()


def put(store: Store, logs: list[Path], prefix: str = "logs") -> None:
    for log in logs:
        store.objects[f"bucket/{prefix}/{log.name}"] = log.read_bytes()


def steps(source: Any) -> pl.DataFrame:
    return fastscore.score(source, OPTIONS).tables["steps"]


@pytest.fixture
def logs(tmp_path):
    return write_logs(tmp_path / "logs", files=7)


@pytest.fixture(params=["small", "large"])
def size(request, monkeypatch):
    """Whether objects are fetched whole, or read by ranges of few bytes."""
    if request.param == "large":
        monkeypatch.setattr(objects, "FIRST_BYTES", 100)
        monkeypatch.setattr(objects, "BLOCK_BYTES", 700)
        monkeypatch.setattr("fastscore.logs.objects.SMALL_BYTES", 0)
    return str(request.param)


@pytest.mark.parametrize(
    ("size", "place"),
    [
        ("small", "s3://bucket/logs"),
        ("small", "s3://bucket/logs/"),
        ("large", "s3://bucket/l*/*.jsonl"),
    ],
    indirect=["size"],
)
def test_what_is_below_an_address_is_scored_as_files_are(store, logs, size, place):
    put(store, logs)
    store.objects["bucket/logs/.hidden.jsonl"] = b"no log"
    store.objects["bucket/logs/notes.txt"] = b"no log"
    store.objects["bucket/other/a.jsonl"] = b"no log"
    found = fastscore.score(place, OPTIONS)
    assert found.tables["steps"].equals(steps([str(log) for log in logs]))
    names = [f"s3://bucket/logs/{log.name}" for log in logs]
    assert [entry["name"] for entry in found.manifest.inputs] == names
    assert found.tables["dialogues"]["file"].unique(maintain_order=True).to_list() == names


def test_what_comes_late_in_an_object_is_found(store, logs, size, tmp_path):
    lines = logs[0].read_text().splitlines(keepends=True)
    begun = next(line for line in lines if '"predicted"' in line).replace('"step"', '"at"')
    log = tmp_path / "late.jsonl"
    log.write_text(begun * 300 + "".join(lines))
    store.objects["bucket/late.jsonl"] = log.read_bytes()
    assert steps("s3://bucket/late.jsonl").equals(steps(str(log)))


def packed(log: Path) -> dict[str, bytes]:
    plain = log.read_bytes()
    table = io.BytesIO()
    pl.read_ndjson(log).write_parquet(table)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("log.jsonl", plain)
    return {
        "log.jsonl": plain,
        "log.jsonl.zst": zstandard.compress(plain),
        "log.parquet": table.getvalue(),
        "log.zip": archive.getvalue(),
        "log.jsonl.gz": gzip.compress(plain),
    }


PACKED = ("log.jsonl", "log.jsonl.gz", "log.jsonl.zst", "log.parquet", "log.zip")


@pytest.mark.parametrize(
    ("size", "name"),
    [
        *(("large", each) for each in PACKED),
        ("small", "log.jsonl.zst"),
        ("small", "log.parquet"),
        ("small", "log.zip/log.jsonl"),
    ],
    indirect=["size"],
)
def test_single_objects_of_all_kinds_are_scored(store, logs, size, name):
    store.objects.update({f"bucket/{kind}": data for kind, data in packed(logs[0]).items()})
    place = f"s3://bucket/{name}"
    found = steps(place)
    assert found.drop("line").equals(steps(str(logs[0])).drop("line"))
    rows = fastscore.scan(place, "score_dialogue").collect()
    assert rows["file"][0].startswith(place)
    assert rows.height == fastscore.scan(str(logs[0]), "score_dialogue").collect().height
    assert "score_dialogue" in str(fastscore.inspect(place))


def test_a_run_of_objects_is_resumed_explained_and_read_by_other_verbs(store, logs, size, tmp_path):
    put(store, logs)
    run = fastscore.score("s3://bucket/logs", OPTIONS, output=tmp_path / "run")
    again = fastscore.score("s3://bucket/logs", OPTIONS, output=tmp_path / "run")
    assert run.tables["steps"].equals(again.tables["steps"])
    local = fastscore.score([str(log) for log in logs], OPTIONS, output=tmp_path / "local")
    assert run.tables["steps"].equals(local.tables["steps"])
    assert str(fastscore.explain(run, worst="average_U_best_early"))
    rows = fastscore.scan("s3://bucket/logs", "score_dialogue").collect()
    assert (
        rows.height == fastscore.scan([str(log) for log in logs], "score_dialogue").collect().height
    )
    assert "score_dialogue" in str(fastscore.inspect("s3://bucket/logs"))
    written = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in path.read_bytes() for path in written)


@pytest.mark.parametrize("is_local", [False, True])
def test_logs_that_were_moved_to_a_bucket_are_not_scored_again(
    store, logs, size, tmp_path, monkeypatch, is_local
):
    put(store, logs, "a")
    place: Any = [str(log) for log in logs] if is_local else "s3://bucket/a"
    before = fastscore.score(place, OPTIONS, output=tmp_path / "run").tables["steps"]
    store.objects = {key.replace("/a/", "/b/"): value for key, value in store.objects.items()}
    for log in logs:
        log.unlink()
    forbid_scoring(monkeypatch)
    moved = fastscore.score("s3://bucket/b", OPTIONS, output=tmp_path / "run")
    assert moved.manifest.status == "complete"
    assert moved.tables["steps"].equals(before)
    assert moved.tables["dialogues"]["file"][0] == "s3://bucket/b/log-00.jsonl"


def test_an_object_that_is_written_again_is_scored_anew(store, logs):
    for log in logs[:2]:
        store.objects["bucket/log.jsonl"] = log.read_bytes()
        found = steps("s3://bucket/log.jsonl")
        assert found.drop("line").equals(steps(str(log)).drop("line"))


def test_small_objects_are_read_once_for_all_stages(store, logs):
    put(store, logs)
    steps("s3://bucket/logs")
    assert {store.ranges(f"bucket/logs/{log.name}") for log in logs} == {1}


def test_ranges_are_asked_for_ahead(store, monkeypatch):
    content = bytes(range(256)) * 400
    store.objects["bucket/a"] = content
    monkeypatch.setattr(objects, "FIRST_BYTES", 100)
    monkeypatch.setattr(objects, "BLOCK_BYTES", 1000)
    with objects.open_file("s3://bucket/a") as file:
        assert file.read(50) == content[:50]
        assert store.ranges("bucket/a") == 1
        assert file.read(100) == content[50:150]
        assert file.read() == content[150:]
        assert store.bytes_read("bucket/a") == len(content)
        file.seek(-7, os.SEEK_END)
        assert file.read(100) == content[-7:]
    store.asked.clear()
    with objects.open_file("s3://bucket/a", stop=2000) as file:
        assert file.read() == content[:2000]
    # its beginning was kept
    assert store.bytes_read("bucket/a") == 1900


def test_so_many_ranges_are_on_their_way(store, monkeypatch):
    names = ["s3://bucket/a", "s3://bucket/b", "s3://bucket/c"]
    for name in names:
        store.objects[name.removeprefix("s3://")] = bytes(100_000)
    monkeypatch.setattr(objects, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(objects, "FIRST_BYTES", 100)
    files = [objects.open_file(name) for name in names]
    for file in files:
        assert len(file.read(200)) == 200
    asked = [len(file._ahead) for file in files]  # type: ignore[attr-defined]
    assert asked == [16, 16, 10]
    for file in files:
        file.close()


@pytest.fixture(scope="module")
def large_log(tmp_path_factory):
    return write_varied_logs(tmp_path_factory.mktemp("logs"), files=1, dialogues=1200)[0]


def test_a_large_object_is_read_once_for_planning_and_once_for_scoring(
    store, tmp_path, monkeypatch, large_log
):
    log, size = large_log, large_log.stat().st_size
    monkeypatch.setattr("fastscore.logs.objects.SMALL_BYTES", 0)
    put(store, [log])
    found = fastscore.score("s3://bucket/logs", OPTIONS, output=tmp_path / "run")
    key = f"bucket/logs/{log.name}"
    # one beginning serves looking, screening, planning and scoring
    assert store.bytes_read(key) == 2 * size - objects.FIRST_BYTES
    assert store.ranges(key) == 1 + 2 * -(-(size - objects.FIRST_BYTES) // objects.BLOCK_BYTES)
    assert found.tables["steps"].equals(steps(str(log)))


def test_an_object_is_cut_into_shards(store, tmp_path, monkeypatch, large_log):
    log, size = large_log, large_log.stat().st_size
    monkeypatch.setattr("fastscore.logs.objects.SMALL_BYTES", 0)
    put(store, [log])
    monkeypatch.setattr(objects, "BLOCK_BYTES", 1 << 18)
    run_lexical(["s3://bucket/logs"], tmp_path / "run", shard_bytes=1 << 20)
    run_lexical([str(log)], tmp_path / "local", shard_bytes=1 << 20)
    found, local = (fastscore.open_run(tmp_path / output) for output in ("run", "local"))
    n_shards = found.manifest.shards
    assert n_shards == local.manifest.shards > 2
    assert found.tables["steps"].equals(local.tables["steps"])
    # and the ends of shards are hashed: at most a block of the hash on both sides
    most = 2 * size + (n_shards - 1) * (2 << 20)
    assert store.bytes_read(f"bucket/logs/{log.name}") <= most


def test_an_object_that_changes_is_refused_by_name(store, monkeypatch):
    store.objects["bucket/a"] = b"a" * 300
    monkeypatch.setattr(objects, "FIRST_BYTES", 100)
    with objects.open_file("s3://bucket/a") as file:
        file.read(10)
        store.objects["bucket/a"] = b"b" * 300
        with pytest.raises(InputError, match="The object 's3://bucket/a' was changed while it was"):
            file.read()
        del store.objects["bucket/a"]
        file.seek(0)
        with pytest.raises(InputError, match="was changed"):
            file.read()


@pytest.mark.parametrize("tag", [None, 'W/"{}"', '"another"'])
def test_a_tag_that_becomes_another_is_a_change(store, monkeypatch, tag):
    store.objects["bucket/a"] = b"a" * 300
    monkeypatch.setattr(objects, "FIRST_BYTES", 100)
    with objects.open_file("s3://bucket/a") as file:
        assert file.read(10) == b"a" * 10
        store.spell_tag = (lambda digest: None) if tag is None else tag.format
        with pytest.raises(InputError, match="The object 's3://bucket/a' was changed while it was"):
            file.read()


def test_a_store_without_ranges_is_refused(store):
    store.objects["bucket/a"] = b"a" * 300
    store.ignores_ranges = True
    with (
        objects.open_file("s3://bucket/a") as file,
        pytest.raises(
            InputError, match="'s3://bucket/a' cannot be read: the store gives no usable"
        ),
    ):
        file.read()


@pytest.mark.parametrize(
    ("place", "refused", "message"),
    [
        ("s3://bucket/a.jsonl", (403, "AccessDenied"), "access is denied; the permission .*GetObj"),
        ("s3://bucket/a*", (403, "AccessDenied"), "access is denied; the permission .*ListBucket"),
        ("s3://bucket/a*", (400, "ExpiredToken"), "the credentials have expired"),
        ("s3://bucket/a*", (403, "InvalidAccessKeyId"), "the credentials are not valid"),
        ("s3://gone/a*", None, "there is no such bucket"),
        ("s3://bucket/b/", None, "There is no object 's3://bucket/b/', and none below it"),
        ("s3://bucket/b.jsonl", None, "There is no object 's3://bucket/b.jsonl', and none"),
        ("s3://bucket/t", None, "The folder 's3://bucket/t' holds no file with a suffix"),
        ("s3://bucket/b*.jsonl", None, "The glob 's3://bucket/b.*matched nothing"),
    ],
)
def test_errors_name_the_object_and_nothing_secret(store, place, refused, message):
    store.objects.update({"bucket/a.jsonl": b"{}\n", "bucket/t/a.txt": b"words"})
    store.refused = refused
    with pytest.raises(InputError, match=message) as raised:
        steps(place)
    text = str(raised.value)
    assert place.split("*")[0] in text
    assert SECRET not in text
    assert "secret-token" not in text
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


CONNECT, METADATA = "kind: Connect", "GET http://169.254.169.254/latest/api/token"


@pytest.mark.parametrize(
    ("url", "told", "doing", "reason"),
    [
        ("s3://b/a", "AccessDenied", "read", "access is denied; .*needed: s3:GetObject$"),
        ("s3://b/a", "AccessDenied", "write", "access is denied; .*needed: s3:PutObject$"),
        ("gs://b/a", "403 Forbidden", "list", "access is denied; .* storage.objects.list$"),
        ("az://c/a", "AuthorizationPermissionMismatch", "read", "Storage Blob Data Reader$"),
        ("https://host/a", "403 Forbidden", "read", "^access is denied$"),
        ("az://c/a", "Account must be specified", "open", "AZURE_STORAGE_ACCOUNT_NAME is not set"),
        ("s3://b/a", f"{METADATA} 403 Forbidden", "read", "^no credentials are found$"),
        ("gs://b/a", f"{METADATA} {CONNECT}", "read", "^no credentials are found$"),
    ],
)
def test_the_reason_is_that_of_the_cloud(url, told, doing, reason):
    found = objects.refusal(url, OSError(told), doing)
    assert re.search(reason, found or "")


def test_a_server_that_is_not_there_is_said_so():
    with pytest.raises(InputError, match=r"'https://127\.0\.0\.1:1/a\.jsonl' .*cannot be reached"):
        steps("https://127.0.0.1:1/a.jsonl")


@pytest.mark.parametrize(
    "place",
    ["s3://key:word@bucket/a.jsonl", "https://host/a.jsonl?X-Amz-Signature=word", "s3:///a"],
)
def test_addresses_with_credentials_are_refused_unshown(place):
    with pytest.raises(UsageError, match="cannot be used") as raised:
        steps(place)
    assert "word" not in str(raised.value)


def test_single_files_are_read_over_http(store, logs):
    store.objects["files/log.jsonl"] = logs[0].read_bytes()
    found = steps(f"{store.url}/files/log.jsonl")
    assert found.drop("line").equals(steps(str(logs[0])).drop("line"))
    with pytest.raises(InputError, match="Over https only single files are read"):
        steps(f"{store.url}/files/gone.jsonl")


def test_the_command_line_takes_addresses(store, logs, tmp_path):
    put(store, logs)
    words = ["score", "score_dialogue", "s3://bucket/logs", "-o", tmp_path / "run"]
    done = fastscore_command([*words, "--lex-weight", 1])
    assert done.returncode == 0, done.stderr
    inspected = fastscore_command(["inspect", "s3://bucket/logs"])
    assert inspected.returncode == 0, inspected.stderr
    assert "s3://bucket/logs" in inspected.stdout
    store.refused = (403, "AccessDenied")
    denied = fastscore_command(["inspect", "s3://bucket/*.jsonl"])
    assert "access is denied" in denied.stderr
    shown = "".join(each.stdout + each.stderr for each in (done, inspected, denied))
    assert SECRET not in shown
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in path.read_bytes() for path in written)


def test_without_the_extra_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "obstore", None)
    with pytest.raises(FastscoreError, match=r"fastscore-dialogue\[cloud\]"):
        steps("s3://bucket/a.jsonl")


class _ToPlain(BaseHTTPRequestHandler):
    """Redirects to the address that the class is given."""

    location = ""

    def do_HEAD(self) -> None:
        self.send_response(302)
        self.send_header("Location", self.location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _certified(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Make an authority and a certificate of localhost by it."""
    authority, key = folder / "authority.pem", folder / "authority.key"
    new = ["req", "-newkey", "rsa:2048", "-nodes"]
    name, request, own = folder / "name", folder / "request", folder / "own.key"
    name.write_text("subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n")
    signed = ["x509", "-req", "-in", request, "-CA", authority, "-CAkey", key, "-CAcreateserial"]
    for words in (
        [*new, "-x509", "-keyout", key, "-out", authority, "-subj", "/CN=authority"],
        [*new, "-keyout", own, "-out", request, "-subj", "/CN=localhost"],
        [*signed, "-extfile", name, "-out", folder / "own.pem"],
    ):
        subprocess.run(["openssl", *words], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "own.pem", own)
    return authority, context


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates by openssl")
def test_https_is_never_left_for_http(store, tmp_path, monkeypatch):
    authority, context = _certified(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    store.objects["bucket/log.jsonl"] = b"{}"
    place = {"location": f"{store.url}/bucket/log.jsonl"}
    with ThreadingHTTPServer(("localhost", 0), type("Handler", (_ToPlain,), place)) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        secure = f"https://localhost:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        with pytest.raises(InputError, match=rf"{secure}/a\.jsonl' cannot be read"):
            objects.look_up(f"{secure}/a.jsonl")
        server.shutdown()
    assert not store.asked
