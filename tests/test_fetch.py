"""Data sets are fetched before the first trial: from a server on this machine, never from the real network."""

import gzip
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from data_files import cut_in_half, settings
from processes import gone, within
from test_data_torchvision_sets import write_cifar10, write_mnist
from torchvision import datasets

from runner.child import Ended, ForkServer
from runner.data import load, torchvision_sets
from runner.dataset_files import TORCHVISION_FILES, broken_torchvision_files, check_files
from runner.errors import ConfigError
from runner.fetch import fetch

MNIST = TORCHVISION_FILES["mnist"][1]
CALLER = """
import json, os, sys
from runner.child import ForkServer
from runner.fetch import fetch
fetch(ForkServer(dict(os.environ), ["planted_mirror"], sys.argv[1]), json.loads(sys.argv[2]))
"""
ENVIRON = {**os.environ, "no_proxy": "*"}  # a proxy knows nothing of a server on this machine


class Mirror(ThreadingHTTPServer):
    """Serves the archives of a folder under /good/, and 503 elsewhere; `mood` makes it fail; `got` counts."""

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Answer)
        self.folder, self.mood, self.got, self.released = folder, "well", Counter(), threading.Event()
        self.address = f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.removeprefix("/good/")
        if self.server.mood == "overloaded" or not (self.server.folder / name).is_file():
            return self.send_error(503)
        probe = "Method" in self.headers  # torchvision asks where a redirection leads first, and reads no body
        self.server.got[name] += not probe
        if self.server.mood == "stalled" and not probe:
            self.server.released.wait(60)
        content = (self.server.folder / name).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        cut = self.server.mood == "cut" and not probe
        with suppress(ConnectionError):
            self.wfile.write(content[: len(content) // 2] if cut else content)
        return None

    def log_message(self, *_):
        """Say nothing."""


def md5(path):
    return hashlib.md5(path.read_bytes()).hexdigest()


def publish(folder, aside):
    """Make the archives of a small MNIST and a small CIFAR-10; returns what torchvision must believe of them."""
    folder.mkdir()
    for path in write_mnist(aside).iterdir():
        (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    with pytest.MonkeyPatch.context() as patch:
        batches = write_cifar10(aside, patch)
        kind = datasets.CIFAR10
        cifar = {"train_list": kind.train_list, "test_list": kind.test_list, "meta": dict(kind.meta)}
    with tarfile.open(folder / kind.filename, "w:gz") as archive:
        archive.add(batches, batches.name)
    resources = [(f"{name}.gz", md5(folder / f"{name}.gz")) for name in MNIST]
    return {"MNIST": {"resources": resources}, "CIFAR10": {**cifar, "tgz_md5": md5(folder / kind.filename)}}


@pytest.fixture(scope="module")
def whole_mirror(module_folder):
    facts = publish(module_folder / "published", module_folder / "made")
    mirror = Mirror(module_folder / "published")
    facts["MNIST"]["mirrors"] = [f"{mirror.address}/gone/", f"{mirror.address}/good/"]
    facts["CIFAR10"]["url"] = f"{mirror.address}/good/{datasets.CIFAR10.filename}"
    changes = [f"datasets.{kind}.{key} = {value!r}" for kind, facts in facts.items() for key, value in facts.items()]
    (module_folder / "planted_mirror.py").write_text("\n".join(["from torchvision import datasets", *changes, ""]))
    threading.Thread(target=mirror.serve_forever, daemon=True).start()
    with pytest.MonkeyPatch.context() as patch:
        for key, value in facts["CIFAR10"].items():  # for the tests that read in this process
            patch.setattr(datasets.CIFAR10, key, value)
        yield mirror
    mirror.shutdown()


@pytest.fixture
def mirror(whole_mirror):
    whole_mirror.mood = "well"
    whole_mirror.got.clear()
    whole_mirror.released.clear()
    yield whole_mirror
    whole_mirror.released.set()


@pytest.fixture(scope="module")
def server(whole_mirror, module_folder):
    return ForkServer(ENVIRON, ["planted_mirror", "runner.data.torchvision_sets"], str(module_folder))


def config(name, root, download=True):
    return settings(name, "image", root=str(root), download=download)


def refusal(server, asked):
    """What a fetch that must fail says: one or two lines, and no traceback."""
    with pytest.raises(ConfigError) as told:
        fetch(server, asked)
    text = str(told.value)
    assert text.startswith(f"dataset.root={asked['root']}: dataset.download=true could not fetch {asked['name']} (")
    assert len(text.splitlines()) <= 2 and "Traceback" not in text
    return text


def caller(folder, asked):
    """A process that fetches as a study's does, with a forkserver of its own."""
    command = [sys.executable, "-c", CALLER, str(folder), json.dumps(asked)]
    return subprocess.Popen(command, env=ENVIRON, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def archives(root):
    return [root / "MNIST" / "raw" / f"{name}.gz" for name in MNIST]


def state(folder):
    """Every file with what changes when it is written or replaced."""
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def children(pid):
    """Every process below this one."""
    direct = [
        int(word) for task in Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()
    ]
    return direct + [below for child in direct for below in children(child)]


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks at processes in /proc")


@pytest.mark.parametrize(("name", "items"), [("mnist", 20), ("cifar10", 50)])
def test_what_was_fetched_is_read_by_a_trial(name, items, tmp_path, mirror, server):
    asked = config(name, tmp_path / "new" / "data")
    fetch(server, asked)
    assert len(load(asked).train) == items
    check_files({**asked, "download": False})
    assert set(mirror.got.values()) == {1}
    assert not list(tmp_path.rglob(".unpacked"))


@needs_proc
def test_eight_that_start_at_once_on_an_empty_folder_download_once(tmp_path, mirror, module_folder):
    asked = config("mnist", tmp_path / "data")
    mirror.mood = "stalled"
    callers = [caller(module_folder, asked) for _ in range(8)]
    assert within(120, lambda: all(len(children(process.pid)) == 2 for process in callers))  # a server and its child
    time.sleep(0.5)  # all of them are where they would fetch
    mirror.released.set()
    said = [process.communicate(timeout=600)[0] for process in callers]
    assert [process.returncode for process in callers] == [0] * 8, said
    assert mirror.got == dict.fromkeys((f"{name}.gz" for name in MNIST), 1)
    assert len(load(asked).train) == 20


def test_a_whole_set_is_not_touched_and_asks_no_child(tmp_path):
    write_mnist(tmp_path)
    before = state(tmp_path)
    fetch(None, config("mnist", tmp_path))
    assert state(tmp_path) == before


def test_nothing_is_fetched_unless_asked_for(tmp_path):
    fetch(None, config("mnist", tmp_path / "empty", download=False))
    fetch(None, settings("digits", "image"))
    assert not (tmp_path / "empty").exists()


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
@pytest.mark.parametrize(("mood", "words"), [("overloaded", "503"), ("cut", "corrupted")])
def test_a_failing_server_is_one_message_and_nothing_passes_for_whole(name, mood, words, tmp_path, mirror, server):
    mirror.mood = mood
    asked = config(name, tmp_path)
    text = refusal(server, asked)
    folder, files = TORCHVISION_FILES[name]
    assert words in text and f"{tmp_path / folder} needs {', '.join(files)}: " in text
    assert len(broken_torchvision_files(name, tmp_path)) == len(files)
    with pytest.raises(ConfigError, match="lacks"):
        check_files({**asked, "download": False})
    mirror.mood = "well"
    fetch(server, asked)
    load(asked)


def test_where_there_is_no_network_it_says_what_to_put_where(tmp_path):
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9") | {"no_proxy": ""}
    server = ForkServer({**os.environ, **nowhere}, [], str(tmp_path))
    text = refusal(server, config("fashion_mnist", tmp_path))
    assert "refused" in text and f"{tmp_path}/FashionMNIST/raw needs train-images-idx3-ubyte, " in text


def test_a_network_that_swallows_everything_is_given_up(tmp_path, mirror, monkeypatch):
    mirror.mood = "stalled"
    monkeypatch.setattr(datasets.MNIST, "mirrors", [f"{mirror.address}/good/"])
    monkeypatch.setattr(torchvision_sets, "SILENCE", 0.3)
    (tmp_path / "asked.json").write_text(json.dumps(config("mnist", tmp_path)))
    try:
        with pytest.raises(RuntimeError, match=r"images-idx3-ubyte\.gz: timed out"):
            torchvision_sets.fetch(str(tmp_path / "asked.json"))
    finally:
        socket.setdefaulttimeout(None)


def test_archives_put_there_by_hand_need_no_network(tmp_path, mirror, server):
    mirror.mood = "overloaded"
    for path in archives(tmp_path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((mirror.folder / path.name).read_bytes())
    fetch(server, config("mnist", tmp_path))
    assert broken_torchvision_files("mnist", tmp_path) == []


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_a_truncated_archive_is_fetched_again(name, tmp_path, mirror, server):
    asked = config(name, tmp_path)
    fetch(server, asked)
    damaged = archives(tmp_path)[0] if name == "mnist" else tmp_path / datasets.CIFAR10.filename
    cut_in_half(damaged)
    for path in TORCHVISION_FILES[name][1]:
        (tmp_path / TORCHVISION_FILES[name][0] / path).unlink()
    with pytest.raises(ConfigError, match=f"lacks .*; damaged: {damaged}; delete it, then set dataset.download=true"):
        check_files({**asked, "download": False})
    mirror.got.clear()
    fetch(server, asked)
    assert mirror.got == {damaged.name: 1}
    load(asked)


@pytest.mark.parametrize(("name", "file"), [*(("mnist", file) for file in MNIST), ("cifar10", "data_batch_2")])
@pytest.mark.parametrize("keeps_archives", [True, False])
def test_a_truncated_file_is_replaced_and_no_other(name, file, keeps_archives, tmp_path, mirror, server):
    asked = config(name, tmp_path)
    fetch(server, asked)
    if not keeps_archives:
        for path in tmp_path.rglob("*.gz"):
            path.unlink()
    damaged = tmp_path / TORCHVISION_FILES[name][0] / file
    whole, before = damaged.read_bytes(), state(damaged.parent)
    cut_in_half(damaged)
    mirror.got.clear()
    fetch(server, asked)
    assert damaged.read_bytes() == whole and sum(mirror.got.values()) == (not keeps_archives)
    assert {path for path, seen in state(damaged.parent).items() if before.get(path, seen) != seen} == {damaged}


def test_a_folder_that_cannot_be_made_is_named(tmp_path, mirror, server):
    (tmp_path / "file").touch()
    assert "Not a directory" in refusal(server, config("mnist", tmp_path / "file" / "data"))
    assert not mirror.got


def test_a_child_that_is_killed_is_named():
    class Killed:
        def call(self, request, timeout):
            Path(request["log"]).write_text(" 10%|#         |")
            return Ended(1, -9, False)

    assert "ended with status -9" in refusal(Killed(), config("mnist", "nowhere"))


@needs_proc
def test_an_interrupt_ends_the_fetching_and_the_next_one_starts_over(tmp_path, mirror, server, module_folder):
    mirror.mood = "stalled"
    asked = config("mnist", tmp_path)
    process = caller(module_folder, asked)
    assert within(60, lambda: sum(mirror.got.values()) == 1)
    below = children(process.pid)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=600)
    assert process.returncode == -signal.SIGINT, said
    assert len(below) == 2 and gone(below)
    mirror.mood = "well"
    fetch(server, asked)
    assert len(load(asked).train) == 20
    assert not list(tmp_path.rglob(".unpacked"))
