"""Files of the hub: pinned, resumed, verified; the token is sent only to the hub."""

import errno
import http.client
import io
import json
import sys
import types
import urllib.request
from unittest import mock

import pytest
from fastscore_models import hub as client
from fastscore_models.export import fetch
from fastscore_models.hub import (
    HubError,
    HubFile,
    Repository,
    download,
    find_file,
    find_repository,
    list_files,
)
from fastscore_models.recipe import parse_recipe

from fastscore.errors import UsageError
from fastscore.logs.objects import find_data_set
from tests.hub import hub_served

FIRST, SECOND = "1" * 40, "2" * 40
TOKEN = "hf_very_secret"
FILES = {
    "README.md": b"words",
    "data/a.jsonl": b"a" * 5000,
    "data/b b.jsonl": b"b" * 100,
    "data/more/c.jsonl": b"c" * 300,
    "z.txt": b"",
}


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with hub_served() as hub:
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE", "HF_TOKEN_PATH"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
        monkeypatch.setattr(client, "_PAUSES", (0, 0))
        hub.add("datasets/owner/logs", FIRST, {"old.jsonl": b"old"})
        hub.add("datasets/owner/logs", SECOND, FILES)
        yield hub


def located(name):
    """Find a file at the newest commit."""
    found = find_repository("datasets", "owner/logs")
    return found, find_file(found, name)


def test_a_branch_is_pinned_to_its_commit(hub):
    assert find_repository("datasets", "owner/logs").commit == SECOND
    old = find_repository("datasets", "owner/logs", FIRST)
    assert [file.path for file in list_files(old)] == ["old.jsonl"]
    assert find_file(old, "z.txt") is None


def test_weights_of_a_recipe_are_those_of_its_commit(hub, tmp_path):
    hub.add("models/owner/tiny", FIRST, {"config.json": b"first"})
    hub.add("models/owner/tiny", SECOND, {"config.json": b"second"})
    text = """
name = "mine"
pooling = "cls"
dims = [8]
max_tokens = 40
source = {hub = "owner/tiny", revision = "%s"}
"""
    found = fetch(parse_recipe(text % FIRST, "here"), tmp_path)
    assert (found / "config.json").read_bytes() == b"first"


def test_files_are_listed_page_by_page(hub):
    found = find_repository("datasets", "owner/logs")
    assert {file.path: file.size for file in list_files(found)} == {
        name: len(content) for name, content in FILES.items()
    }
    assert len(list_files(found, "data")) == 3
    assert list_files(found, "elsewhere") == []


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_downloaded_once(hub, tmp_path, name):
    found, file = located(name)
    for _ in range(2):
        download(found, file, tmp_path / "cache" / "file")
        assert (tmp_path / "cache" / "file").read_bytes() == FILES[name]
    assert len(hub.downloads()) == bool(FILES[name])
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["file"]


def test_a_file_is_downloaded_to_a_file_system_without_locks(hub, tmp_path, monkeypatch):
    monkeypatch.setattr("fcntl.flock", mock.Mock(side_effect=OSError(errno.ENOLCK, "no locks")))
    found, file = located("data/a.jsonl")
    download(found, file, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == FILES["data/a.jsonl"]


def test_a_download_goes_on_where_it_ended(hub, tmp_path):
    found, file = located("data/a.jsonl")
    hub.cut_after = 1000
    with pytest.raises(HubError, match="came in part only"):
        download(found, file, tmp_path / "file")
    assert [span for _, span in hub.downloads()] == ["", "bytes=1000-", "bytes=2000-"]
    assert not (tmp_path / "file").exists()
    hub.cut_after = None
    download(found, file, tmp_path / "file")
    assert hub.downloads()[-1][1] == "bytes=3000-"
    assert (tmp_path / "file").read_bytes() == FILES["data/a.jsonl"]


@pytest.mark.parametrize("name", ["data/a.jsonl", "README.md"])
def test_what_came_damaged_is_not_kept(hub, tmp_path, name):
    found, file = located(name)
    hub.damaged = True
    with pytest.raises(HubError, match="came damaged"):
        download(found, file, tmp_path / "file")
    hub.damaged = False
    download(found, file, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == FILES[name]


@pytest.mark.parametrize("place", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "home"])
def test_the_token_goes_to_the_hub_alone(hub, tmp_path, monkeypatch, place):
    hub.token = TOKEN
    path = tmp_path / ("home/token" if place == "home" else "elsewhere")
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{TOKEN}\n")
    if place != "home":
        monkeypatch.setenv(place, str(path) if place == "HF_TOKEN_PATH" else TOKEN)
    for name in ("data/a.jsonl", "README.md"):
        download(*located(name), tmp_path / name)
    tokens = {(path, token) for path, token, _ in hub.asked}
    assert (f"/content/{SECOND}/data/a.jsonl", "") in tokens
    assert all(token == TOKEN for path, token in tokens if "a.jsonl" not in path)
    assert all(token == TOKEN for path, token in tokens if "resolve" in path)


def test_a_busy_hub_is_asked_again(hub):
    hub.busy = 2
    assert find_repository("datasets", "owner/logs").commit == SECOND
    hub.busy = 3
    with pytest.raises(HubError, match="the hub answers with status 503"):
        find_repository("datasets", "owner/logs")


@pytest.mark.parametrize(
    ("refused", "token", "message"),
    [
        ((403, ""), "", "access is denied; the permission that is needed: read access"),
        ((401, "GatedRepo"), TOKEN, "access is denied; the permission that is needed"),
        ((401, ""), TOKEN, "the token is not valid or has expired"),
        ((401, ""), "", "the hub has no such repository, or it is private"),
        ((404, "RepoNotFound"), TOKEN, "the hub has no such repository"),
        ((418, ""), "", "the hub answers with status 418"),
    ],
)
def test_refusals_name_the_repository_and_no_token(hub, monkeypatch, refused, token, message):
    monkeypatch.setenv("HF_TOKEN", token)
    hub.refused = refused
    with pytest.raises(HubError, match=message) as raised:
        find_repository("datasets", "owner/logs")
    assert "'owner/logs' at 'main'" in str(raised.value)
    assert TOKEN not in f"{raised.value} {raised.value.hint}"


def test_a_revision_that_is_not_there_is_named(hub):
    with pytest.raises(HubError, match="'owner/logs' at 'gone': there is no such revision"):
        find_repository("datasets", "owner/logs", "gone")


def test_without_a_network_the_hub_is_named(hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(HubError, match=r"the hub http://127\.0\.0\.1:1 cannot be reached"):
        find_repository("datasets", "owner/logs")
    monkeypatch.setenv("HF_ENDPOINT", "huggingface.co")
    with pytest.raises(HubError, match="HF_ENDPOINT is no address that begins with https://"):
        find_repository("datasets", "owner/logs")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(HubError, match="HF_HUB_OFFLINE is set"):
        find_repository("datasets", "owner/logs")


def test_the_address_is_the_variables_or_the_packages(hub, monkeypatch):
    monkeypatch.delenv("HF_ENDPOINT")
    package = types.ModuleType("huggingface_hub.constants")
    package.ENDPOINT = hub.url
    monkeypatch.setitem(sys.modules, "huggingface_hub", types.ModuleType("huggingface_hub"))
    monkeypatch.setitem(sys.modules, "huggingface_hub.constants", package)
    assert find_repository("datasets", "owner/logs").commit == SECOND
    monkeypatch.setitem(sys.modules, "huggingface_hub.constants", None)
    with pytest.raises(HubError, match="whose address is not known") as caught:
        find_repository("datasets", "owner/logs")
    assert "pip install huggingface_hub" in caught.value.hint


def listed(**entry):
    usual = {"type": "file", "path": "a.jsonl", "size": 1, "oid": "0" * 40}
    return json.dumps([{**usual, **entry}]).encode()


@pytest.mark.parametrize(
    ("body", "link"),
    [
        pytest.param(b"<!doctype html><title>Log in</title>", "", id="captive portal"),
        pytest.param(b"{}", "", id="empty object"),
        pytest.param(b"[" * 100_000, "", id="nested"),
        pytest.param(b'{"id": "owner/logs", "sha": "../../etc"}', "", id="commit"),
        pytest.param(b'{"id": {"a": 1}, "sha": 7}', "", id="types"),
        pytest.param(b"1" * 5_000, "", id="long number"),
        pytest.param(b"[[]]", "", id="list of lists"),
        pytest.param(listed(path="../a.jsonl"), "", id="path above"),
        pytest.param(listed(path="/a.jsonl"), "", id="absolute path"),
        pytest.param(listed(path="C:\\a.jsonl"), "", id="drive"),
        pytest.param(listed(size="1"), "", id="size"),
        pytest.param(listed(size=-1), "", id="negative size"),
        pytest.param(listed(oid="../a"), "", id="hash"),
        pytest.param(listed(lfs=["a"]), "", id="lfs"),
        pytest.param(listed(), '</next>; rel="next"', id="endless"),
    ],
)
def test_answers_that_are_not_of_a_hub_are_refused_in_one_sentence(hub, body, link):
    hub.raw = body, link
    refusal = "does not answer as the Hugging Face hub does"
    repository = Repository("datasets", "owner/logs", FIRST)
    for question in (
        lambda: find_repository("datasets", "owner/logs"),
        lambda: list_files(repository),
    ):
        with pytest.raises(HubError, match=refusal) as raised:
            question()
        assert "asks for a login first" in raised.value.hint


def test_an_answer_without_an_end_is_not_read_to_it(hub, monkeypatch, tmp_path):
    monkeypatch.setattr(client, "_MOST_ANSWER", 1 << 10)
    hub.raw = b" " * (1 << 11) + b"{}", ""
    with pytest.raises(HubError, match="does not answer"):
        find_repository("datasets", "owner/logs")
    hub.raw = b"x" * (1 << 22), ""
    file = HubFile("a.jsonl", 10, "0" * 40)
    with pytest.raises(HubError):
        client.download(Repository("datasets", "owner/logs", FIRST), file, tmp_path / "a.jsonl")
    assert not (tmp_path / "a.jsonl").exists()


@pytest.mark.parametrize("query", ["?token=hf_secret", "#token=hf_secret", "?a=1&token=hf_secret"])
def test_a_token_in_an_address_is_refused_and_not_shown(query):
    with pytest.raises(UsageError, match="HF_TOKEN") as raised:
        find_data_set(f"hf://datasets/owner/logs/a.jsonl{query}")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("scheme", ["http", "ftp"])
def test_a_redirect_leaves_https_for_nothing_less(scheme):
    request = urllib.request.Request("https://hub.example/file")
    headers = http.client.HTTPMessage()
    with pytest.raises(HubError, match=f"hub.example redirects from https to {scheme}"):
        client._Redirects().redirect_request(
            request, io.BytesIO(), 302, "Found", headers, f"{scheme}://hub.example/file?sign=s"
        )
