import hashlib
import http.server
import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from coderet.corpora import downloads, npm_registry, sources
from coderet.corpora.sources import SourceError, digest, fetch

REVISION = "0123456789abcdef0123456789abcdef01234567"
WRONG = "0" * 64
BLOCK = downloads.BLOCK
BLOCKS = bytes(range(256)) * (BLOCK // 64)  # four of them


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def wheel(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def sdist(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A project's folder to work in; pip is set up with nothing but what a test says."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setattr(downloads, "PAUSES", (0, 0))
    return project


@pytest.fixture
def links(tmp_path, place, monkeypatch):
    """A folder of release files that pip finds, and no index."""
    folder = tmp_path / "links"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@dataclass
class Site:
    """What a server on this machine has, and what it was asked for."""

    pages: dict[str, bytes] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)  # of the next answers, 200 or 206 after these
    cuts: list[int] = field(default_factory=list)  # bytes after which the next answers break off
    ranges: bool = True
    asked: list[tuple[str, str | None]] = field(default_factory=list)  # path and Range
    stalled: threading.Event | None = None  # a cut answer waits for it instead
    address: str = ""


@pytest.fixture
def site(place):
    site = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked = self.headers.get("Range")
            site.asked.append((self.path, asked))
            content = site.pages.get(self.path)
            status = site.statuses.pop(0) if site.statuses else 404 if content is None else 200
            if status != 200:
                self.send_error(status)
                return
            start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1]) if asked and site.ranges else 0
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/octet-stream")
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            cut = site.cuts.pop(0) if site.cuts else len(content)
            self.wfile.write(content[start : start + cut])
            if cut < len(content) and site.stalled is not None:
                self.wfile.flush()
                site.stalled.wait(60)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site.address = f"http://127.0.0.1:{server.server_port}"
    yield site
    if site.stalled is not None:
        site.stalled.set()
    server.shutdown()
    server.server_close()


def refused(specs, folder=Path("raw"), **settings):
    """The message of a fetch that fails, which must leave nothing beside what was there."""
    before = files(folder.parent)
    with pytest.raises(SourceError) as error:
        fetch(specs, folder, **settings)
    after = {name: content for name, content in files(folder.parent).items() if not name.startswith(".work/")}
    assert after == {name: content for name, content in before.items() if not name.startswith(".work/")}
    assert not list(Path(".").glob(".raw*"))
    return str(error.value)


# Release files of packages


def test_wheels_and_sdists_are_unpacked_each_into_the_folder_of_its_package(links):
    (links / "a_b-1.0-py3-none-any.whl").write_bytes(one := wheel({"a_b/x.py": b"1"}))
    (links / "c-2.tar.gz").write_bytes(two := sdist({"c-2/c/y.py": b"2"}))
    fetch([f"wheel:A.b==1.0#sha256={sha256(one)}", f"sdist:c==2#sha256={sha256(two)}"], Path("raw"))
    assert files(Path("raw")) == {"a-b/a_b/x.py": b"1", "c/c/y.py": b"2"}


def test_without_unpacking_the_files_stay_as_they_came(links):
    (links / "a-1-py3-none-any.whl").write_bytes(one := wheel({"a/x.py": b"1"}))
    fetch([f"wheel:a==1#sha256={sha256(one)}"], Path("raw"), unpack=False)
    assert files(Path("raw")) == {"a/a-1-py3-none-any.whl": one}


def test_only_wanted_members_are_unpacked(links):
    (links / "a-1-py3-none-any.whl").write_bytes(one := wheel({"a/x.py": b"1", "a/x.so": b"2", "a/tests/t.py": b"3"}))
    spec = f"wheel:a==1#sha256={sha256(one)}"
    fetch([spec], Path("raw"), keep=["*.py"], drop=["*/tests/*"])
    assert files(Path("raw")) == {"a/a/x.py": b"1"}
    assert "no member that matches" in refused([spec], keep=["*.go"])


def test_the_build_script_of_a_source_distribution_is_not_run(links, place):
    script = f"open({str(place / 'ran')!r}, 'w')".encode()
    (links / "a-1.tar.gz").write_bytes(one := sdist({"a-1/setup.py": script, "a-1/a.py": b"1"}))
    fetch([f"sdist:a==1#sha256={sha256(one)}"], Path("raw"))
    assert not Path("ran").exists()


def test_a_wheel_for_another_platform_can_be_had_by_its_hash(links):
    (links / "a-1-cp39-cp39-win32.whl").write_bytes(one := wheel({"a.py": b"1"}))
    (links / "a-1-cp39-cp39-macosx_11_0_arm64.whl").write_bytes(two := wheel({"a.py": b"2"}))
    assert "a wheel for each of several platforms" in refused(["wheel:a==1"])
    del one
    (links / "a-1-cp39-cp39-win32.whl").unlink()
    fetch([f"wheel:a==1#sha256={sha256(two)}"], Path("raw"))
    assert files(Path("raw")) == {"a/a.py": b"2"}


def test_a_wheel_with_another_hash_is_refused_and_the_old_folder_stays(links):
    (links / "a-1-py3-none-any.whl").write_bytes(one := wheel({"a.py": b"1"}))
    fetch([f"wheel:a==1#sha256={sha256(one)}"], Path("raw"))
    (links / "b-1-py3-none-any.whl").write_bytes(two := wheel({"b.py": b"1"}))
    message = refused([f"wheel:a==1#sha256={sha256(one)}", f"wheel:b==1#sha256={WRONG}"])
    assert f"has SHA-256 {sha256(two)}, wanted {WRONG}" in message
    assert files(Path("raw")) == {"a/a.py": b"1"}


def test_a_line_without_a_hash_is_answered_with_the_line_to_write(links):
    (links / "a-1-py3-none-any.whl").write_bytes(one := wheel({"a.py": b"1"}))
    Path("f.txt").write_bytes(b"abc")
    message = refused(["wheel:a==1", "file:f.txt"])
    assert f"  wheel:a==1#sha256={sha256(one)}\n  file:f.txt#sha256={sha256(b'abc')}" in message


def test_a_version_that_is_not_there_is_answered_with_those_that_are(links):
    (links / "a-1-py3-none-any.whl").write_bytes(wheel({"a.py": b"1"}))
    message = refused([f"wheel:a==2#sha256={WRONG}"])
    assert "no index has a wheel of a 2; it has versions 1" in message
    assert "no index has a sdist of a" in refused([f"sdist:a==1#sha256={WRONG}"])


def test_what_was_once_fetched_needs_no_network(links):
    (links / "a-1-py3-none-any.whl").write_bytes(one := wheel({"a.py": b"1"}))
    spec = f"wheel:a==1#sha256={sha256(one)}"
    fetch([spec], Path("raw"))
    (links / "a-1-py3-none-any.whl").unlink()
    fetch([spec], Path("again"))
    assert files(Path("again")) == {"a/a.py": b"1"}


def test_a_rotten_download_is_fetched_again(links):
    (links / "a-1-py3-none-any.whl").write_bytes(one := wheel({"a.py": b"1"}))
    spec = f"wheel:a==1#sha256={sha256(one)}"
    fetch([spec], Path("raw"))
    kept = sources.DOWNLOADS / sha256(one) / "a-1-py3-none-any.whl"
    kept.write_bytes(one[:-1])
    fetch([spec], Path("raw"))
    assert kept.read_bytes() == one


def test_a_half_download_that_a_killed_fetch_left_is_cleared_away(links):
    (links / "a-1-py3-none-any.whl").write_bytes(one := wheel({"a.py": b"1"}))
    left = sources.DOWNLOADS / "pip-abc.partial" / "0"
    left.mkdir(parents=True)
    (left / "a-1-py3-none-any.whl").write_bytes(one[:5])
    Path(".raw.fetching/a").mkdir(parents=True)
    fetch([f"wheel:a==1#sha256={sha256(one)}"], Path("raw"))
    assert [path.name for path in sources.DOWNLOADS.iterdir()] == [sha256(one)]
    assert sorted(path.name for path in Path(".").iterdir()) == [".work", "raw"]


def test_a_fetch_killed_between_its_two_renames_loses_nothing(links):
    Path(".raw.before/a").mkdir(parents=True)
    Path(".raw.before/a/a.py").write_bytes(b"old")
    with pytest.raises(SourceError, match="no index has"):
        fetch([f"wheel:b==1#sha256={WRONG}"], Path("raw"))
    assert files(Path("raw")) == {"a/a.py": b"old"}


def test_an_archive_that_climbs_out_of_its_folder_changes_nothing(links, tmp_path):
    (links / "a-1.tar.gz").write_bytes(one := sdist({"a-1/ok.py": b"1", "../../evil": b"2"}))
    (links / "b-1-py3-none-any.whl").write_bytes(two := wheel({"../../evil": b"2"}))
    for spec in (f"sdist:a==1#sha256={sha256(one)}", f"wheel:b==1#sha256={sha256(two)}"):
        assert "outside the folder" in refused([spec])
    assert not list(tmp_path.rglob("evil"))


def test_an_index_is_asked_as_pip_is_set_up(site, monkeypatch):
    one = wheel({"a.py": b"1"})
    site.pages = {
        "/simple/a/": b'<a href="/f/a-1-py3-none-any.whl">a-1-py3-none-any.whl</a>',
        "/f/a-1-py3-none-any.whl": one,
    }
    monkeypatch.setenv("PIP_INDEX_URL", site.address + "/simple")
    fetch([f"wheel:a==1#sha256={sha256(one)}"], Path("raw"))
    assert files(Path("raw")) == {"a/a.py": b"1"}


def test_an_index_that_has_another_hash_is_not_downloaded_from(site, monkeypatch):
    link = f'<a href="/f/a-1-py3-none-any.whl#sha256={"1" * 64}">a-1-py3-none-any.whl</a>'
    site.pages = {"/simple/a/": link.encode()}
    monkeypatch.setenv("PIP_INDEX_URL", site.address + "/simple")
    assert f"with sha256 {'1' * 64}, wanted {WRONG}" in refused([f"wheel:a==1#sha256={WRONG}"])
    assert [path for path, _ in site.asked] == ["/simple/a/"]


def test_a_package_file_that_breaks_off_is_an_error(site, monkeypatch):
    one = wheel({"a.py": b"1"})
    site.pages = {
        "/simple/a/": b'<a href="/f/a-1-py3-none-any.whl">a-1-py3-none-any.whl</a>',
        "/f/a-1-py3-none-any.whl": one,
    }
    site.cuts = [10**9] + [len(one) // 2] + [0] * 10
    monkeypatch.setenv("PIP_INDEX_URL", site.address + "/simple")
    assert f"wheel:a==1#sha256={sha256(one)}: " in refused([f"wheel:a==1#sha256={sha256(one)}"])


def test_an_index_out_of_reach_is_named(place, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    message = refused([f"wheel:a==1#sha256={WRONG}"])
    assert "Could not fetch URL http://127.0.0.1:9/simple/a/" in message and "check the network" in message


def test_a_python_without_pip_is_told_so(links, monkeypatch, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    assert "No module named 'pip'; " in refused([f"wheel:a==1#sha256={WRONG}"])


# Packages of npm, whose registry is a server on this machine


@pytest.fixture
def npm(site, tmp_path, monkeypatch):
    """A registry with @own/net 1.0.0 and 2.0.0, which is all that npm is set up with."""
    for name in [name for name in os.environ if name.lower().startswith("npm_config_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("npm_config_registry", site.address + "/npm/")
    site.package = sdist({"package/lib/net.js": b"1", "package/package.json": b"{}"})
    about = {
        version: {"dist": {"tarball": f"{site.address}/files/net-{version}.tgz"}} for version in ("1.0.0", "2.0.0")
    }
    site.pages = {
        "/npm/@own%2Fnet": json.dumps({"versions": about}).encode(),
        "/files/net-2.0.0.tgz": site.package,
    }
    return site


def test_a_package_of_npm_is_had_from_the_registry_that_npm_is_set_up_with(npm):
    fetch([f"npm:@own/net==2.0.0#sha256={sha256(npm.package)}"], Path("raw"), unpack=False)
    assert files(Path("raw")) == {"@own+net/net-2.0.0.tgz": npm.package}
    assert [path for path, _ in npm.asked] == ["/npm/@own%2Fnet", "/files/net-2.0.0.tgz"]


def test_a_package_of_npm_is_unpacked_without_its_top_folder(npm):
    fetch([f"npm:@own/net==2.0.0#sha256={sha256(npm.package)}"], Path("raw"))
    assert files(Path("raw")) == {"@own+net/lib/net.js": b"1", "@own+net/package.json": b"{}"}


def test_a_package_of_npm_that_was_once_fetched_needs_no_registry(npm, monkeypatch):
    spec = f"npm:@own/net==2.0.0#sha256={sha256(npm.package)}"
    fetch([spec], Path("raw"))
    npm.pages = {}
    fetch([spec], Path("again"))
    assert files(Path("again")) == files(Path("raw"))


def test_a_tarball_cut_half_way_is_gone_on_with(npm):
    npm.pages["/files/net-2.0.0.tgz"], npm.cuts = BLOCKS, [10**9, 2 * BLOCK]
    fetch([f"npm:@own/net==2.0.0#sha256={sha256(BLOCKS)}"], Path("raw"), unpack=False)
    assert npm.asked[1:] == [("/files/net-2.0.0.tgz", None), ("/files/net-2.0.0.tgz", f"bytes={2 * BLOCK}-")]


def test_a_tarball_with_another_hash_is_refused_with_the_line_to_write(npm):
    message = refused([f"npm:@own/net==2.0.0#sha256={WRONG}"])
    assert f"write into params.yaml:\n  npm:@own/net==2.0.0#sha256={sha256(npm.package)}" in message
    assert f"  npm:@own/net==2.0.0#sha256={sha256(npm.package)}" in refused(["npm:@own/net==2.0.0"])


def test_a_version_that_a_registry_has_not_is_answered_with_those_it_has(npm):
    assert "has no @own/net 3.0.0; it has versions 2.0.0, 1.0.0" in refused([f"npm:@own/net==3.0.0#sha256={WRONG}"])


def test_a_package_that_a_registry_has_not_is_named_with_the_variable_that_names_another(npm):
    message = refused([f"npm:gone==1.0.0#sha256={WRONG}"])
    assert message.startswith(f"npm:gone==1.0.0#sha256={WRONG}: {npm.address}/npm/gone answered 404")
    assert "npm_config_registry" in message


def test_a_scope_may_have_a_registry_of_its_own_and_files_are_read_where_the_environment_is_silent(npm, monkeypatch):
    Path(".npmrc").write_text(f'; of this folder\n@own:registry = "{npm.address}/npm/"\nregistry=http://127.0.0.1:9/\n')
    monkeypatch.delenv("npm_config_registry")
    fetch([f"npm:@own/net==2.0.0#sha256={sha256(npm.package)}"], Path("raw"), unpack=False)
    assert "http://127.0.0.1:9/other could not be fetched" in refused([f"npm:other==1.0.0#sha256={WRONG}"])


def test_npm_itself_is_asked_last_and_without_it_the_error_says_what_to_set(npm, monkeypatch, tmp_path):
    monkeypatch.delenv("npm_config_registry")
    monkeypatch.setattr(npm_registry, "FILES", ())
    bin = tmp_path / "bin"
    bin.mkdir()
    monkeypatch.setenv("PATH", str(bin))
    assert "npm_config_registry" in refused([f"npm:@own/net==2.0.0#sha256={WRONG}"])
    (bin / "npm").write_text(f'#!/bin/sh\n[ "$3" = registry ] && echo {npm.address}/npm/ || echo undefined\n')
    (bin / "npm").chmod(0o755)
    fetch([f"npm:@own/net==2.0.0#sha256={sha256(npm.package)}"], Path("raw"), unpack=False)
    assert [path.name for path in Path("raw").iterdir()] == ["@own+net"]


# Addresses


def test_a_file_from_an_address(site):
    site.pages = {"/d/q.jsonl": b"abc"}
    fetch([f"url:{site.address}/d/q.jsonl#sha256={sha256(b'abc')}"], Path("raw"))
    assert files(Path("raw")) == {"q.jsonl/q.jsonl": b"abc"}


def test_an_archive_from_an_address_is_unpacked(site):
    site.pages = {"/set.zip": (one := wheel({"q.jsonl": b"1"}))}
    fetch([f"url:{site.address}/set.zip#sha256={sha256(one)}"], Path("raw"))
    assert files(Path("raw")) == {"set/q.jsonl": b"1"}


def test_a_connection_cut_half_way_is_gone_on_with(site):
    site.pages, site.cuts = {"/q": BLOCKS}, [2 * BLOCK]
    fetch([f"url:{site.address}/q#sha256={sha256(BLOCKS)}"], Path("raw"))
    assert files(Path("raw")) == {"q/q": BLOCKS}
    assert site.asked == [("/q", None), ("/q", f"bytes={2 * BLOCK}-")]


def test_a_server_without_ranges_is_asked_afresh(site):
    site.pages, site.cuts, site.ranges = {"/q": BLOCKS}, [2 * BLOCK], False
    fetch([f"url:{site.address}/q#sha256={sha256(BLOCKS)}"], Path("raw"))
    assert files(Path("raw")) == {"q/q": BLOCKS}


def test_half_a_download_is_gone_on_with_by_the_next_fetch(site):
    site.pages, site.cuts = {"/q": BLOCKS}, [2 * BLOCK, BLOCK]
    spec = f"url:{site.address}/q#sha256={sha256(BLOCKS)}"
    assert (
        "could not be fetched in 2 tries" in (message := refused([spec]))
        and f"{3 * BLOCK:,} bytes have come" in message
    )
    fetch([spec], Path("raw"))
    assert site.asked[-1] == ("/q", f"bytes={3 * BLOCK}-")
    assert files(Path("raw")) == {"q/q": BLOCKS}


def test_halves_of_two_different_files_are_not_put_together(site):
    site.pages, site.cuts = {"/q": bytes(len(BLOCKS))}, [BLOCK, BLOCK]
    spec = f"url:{site.address}/q#sha256={sha256(BLOCKS)}"
    refused([spec])
    site.pages = {"/q": BLOCKS}
    fetch([spec], Path("raw"))
    assert files(Path("raw")) == {"q/q": BLOCKS}


def test_an_address_that_serves_something_else_is_refused(site):
    site.pages = {"/q": b"abd"}
    message = refused([f"url:{site.address}/q#sha256={sha256(b'abc')}"])
    assert f"SHA-256 {sha256(b'abd')}, wanted {sha256(b'abc')}" in message
    assert not list(sources.DOWNLOADS.iterdir())


def test_an_address_that_is_not_there_is_not_asked_twice(site):
    assert "answered 404" in refused([f"url:{site.address}/gone#sha256={WRONG}"])
    assert len(site.asked) == 1


def test_a_server_in_trouble_is_asked_again(site):
    site.pages, site.statuses = {"/q": b"abc"}, [503]
    fetch([f"url:{site.address}/q#sha256={sha256(b'abc')}"], Path("raw"))
    assert files(Path("raw")) == {"q/q": b"abc"}


def test_an_address_without_a_hash_is_answered_with_the_line_to_write(site):
    site.pages = {"/q": b"abc"}
    assert f"  url:{site.address}/q#sha256={sha256(b'abc')}" in refused([f"url:{site.address}/q"])


def test_a_server_out_of_reach_is_an_error_without_the_password(place):
    message = refused([f"url:http://user:secret@127.0.0.1:9/q#sha256={WRONG}"])
    assert "http://127.0.0.1:9/q could not be fetched" in message and "secret" not in message


def test_a_killed_fetch_goes_on_where_it_was(site, links):
    (links / "a-1-py3-none-any.whl").write_bytes(one := wheel({"a.py": b"1"}))
    site.pages, site.cuts, site.stalled = {"/q": BLOCKS}, [2 * BLOCK], threading.Event()
    specs = [f"wheel:a==1#sha256={sha256(one)}", f"url:{site.address}/q#sha256={sha256(BLOCKS)}"]
    code = f"from coderet.corpora import sources; sources.fetch({specs!r}, 'raw')"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    half = sources.DOWNLOADS / f"{sha256(BLOCKS)}.partial" / "q"
    while process.poll() is None and not (half.exists() and half.stat().st_size >= 2 * BLOCK):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not Path("raw").exists()

    (links / "a-1-py3-none-any.whl").unlink()
    fetch(specs, Path("raw"))
    assert site.asked[-1] == ("/q", f"bytes={2 * BLOCK}-")
    assert files(Path("raw")) == {"a/a.py": b"1", "q/q": BLOCKS}
    assert sorted(path.name for path in Path(".").iterdir()) == [".work", "raw"]


# Files of this machine


def test_a_file_and_a_folder_of_this_machine(place):
    Path("f.txt").write_bytes(b"abc")
    Path("d/e").mkdir(parents=True)
    Path("d/e/g").write_bytes(b"1")
    fetch([f"file:f.txt#sha256={sha256(b'abc')}", f"file:d#sha256={digest(Path('d'))}"], Path("raw"))
    assert files(Path("raw")) == {"f.txt/f.txt": b"abc", "d/e/g": b"1"}


def test_a_folder_that_has_changed_is_refused(place):
    Path("d").mkdir()
    Path("d/g").write_bytes(b"1")
    pin = digest(Path("d"))
    Path("d/g").write_bytes(b"2")
    assert f"wanted {pin}" in refused([f"file:d#sha256={pin}"])


def test_a_path_with_nothing_there_is_named(place):
    assert "there is nothing at" in refused([f"file:gone#sha256={WRONG}"])


def test_two_sources_of_one_name_are_refused(place):
    assert "would both lie in a folder 'a'" in refused([f"wheel:a==1#sha256={WRONG}", f"sdist:a==1#sha256={WRONG}"])


def test_two_fetches_into_one_folder_do_not_mix(place):
    Path("f.txt").write_bytes(b"abc")
    with sources._staging(Path("raw")), pytest.raises(SourceError, match="another process"):
        fetch([f"file:f.txt#sha256={sha256(b'abc')}"], Path("raw"))


def test_a_folder_that_cannot_be_written_is_an_error_in_one_line(place):
    Path("f.txt").write_bytes(b"abc")
    assert "could not be filled" in refused([f"file:f.txt#sha256={sha256(b'abc')}"], Path("f.txt/raw"))


# The hub, whose client reads a cache of the hub's own layout


@pytest.fixture
def hub(tmp_path, place, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


def repository(folder, content):
    snapshot = folder / "snapshots" / REVISION
    snapshot.mkdir(parents=True)
    (folder / "blobs").mkdir()
    for name, each in content.items():
        (folder / "blobs" / sha256(each)).write_bytes(each)
        (snapshot / name).symlink_to(f"../../blobs/{sha256(each)}")
    return snapshot


def test_a_model_and_a_data_set_of_the_hub_are_copied_as_plain_files(hub):
    repository(hub / "models--own--net", {"config.json": b"{}"})
    repository(hub / "datasets--own--set", {"q.jsonl": b"1"})
    fetch([f"hub:own/net@{REVISION}", f"hub:datasets/own/set@{REVISION}"], Path("raw"))
    assert files(Path("raw")) == {"net/config.json": b"{}", "set/q.jsonl": b"1"}
    assert not Path("raw/net/config.json").is_symlink()


def test_only_the_included_files_of_a_repository_are_copied(hub):
    repository(hub / "models--own--net", {"config.json": b"{}", "big.bin": b"1"})
    fetch([f"hub:own/net@{REVISION}?include=*.json"], Path("raw"))
    assert files(Path("raw")) == {"net/config.json": b"{}"}


def test_a_repository_with_another_digest_is_refused(hub):
    snapshot = repository(hub / "models--own--net", {"config.json": b"{}"})
    message = refused([f"hub:own/net@{REVISION}#sha256={WRONG}"])
    assert f"has SHA-256 {digest(snapshot)}, wanted {WRONG}" in message


def test_a_repository_that_cannot_be_had_says_what_to_do(hub):
    message = refused([f"hub:own/net@{REVISION}"])
    assert "LocalEntryNotFoundError" in message and "HF_ENDPOINT" in message and "file:" in message


@pytest.mark.parametrize(
    ("spec", "asked", "line"),
    [
        ("hub:own/net", "/api/models/own/net", "hub:own/net@{}"),
        ("hub:own/net@<commit>?include=*.json", "/api/models/own/net", "hub:own/net@{}?include=*.json"),
        ("hub:own/net@v1.0", "/api/models/own/net/revision/v1.0", "hub:own/net@{}"),
        ("hub:datasets/own/set@main", "/api/datasets/own/set/revision/main", "hub:datasets/own/set@{}"),
    ],
)
def test_a_repository_without_a_commit_is_answered_with_the_line_to_write(site, monkeypatch, spec, asked, line):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", site.address)
    site.pages = {asked: json.dumps({"id": "own/net", "sha": REVISION}).encode()}
    message = refused([spec])
    assert f"write into params.yaml:\n  {line.format(REVISION)}" in message and spec in message
    assert not Path("raw").exists()


def test_a_repository_without_a_commit_names_the_page_where_no_hub_answers(hub):
    assert "https://huggingface.co/own/net/commits/main" in refused(["hub:own/net"])
