"""Download release files of Python packages through pip's own client: a program for the Python that has pip.

`pip download` runs the build script of a source distribution to learn its metadata; a corpus wants the file and
nothing run. So this asks pip's link collector and downloader, the parts below that step: index-url, extra-index-url,
find-links, no-index, proxies, certificates, retries and credentials are what pip's files and environment say.
Constraints and Requires-Python are not asked, for nothing gets installed. Those parts of pip have no promised
interface: they are touched in `Client` alone, and in a process of their own.

The argument is a JSON file: {"workers": how many at once, "files": [[kind, name, version, sha256 or null], ...]}. The
files go beside it, each into a folder of its own. The answer is a JSON line a file, as each is done: {"file": its place
in the list, "path"} or {"file", "error"}. When standard input ends the program does: it never outlives who asked.
"""

import json
import logging
import os
import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from pip._internal.commands import create_command
from pip._internal.index.collector import LinkCollector, parse_links
from pip._internal.network.download import Downloader
from pip._vendor.packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from pip._vendor.packaging.version import Version

SHOWN = 5  # how many versions or files an error lists


class Client:
    """pip's session, link collector and downloader, set up as `pip download` would; one a thread."""

    def __init__(self) -> None:
        command: Any = create_command("download")
        options, _ = command.parse_args(["--no-input", "--progress-bar", "off"])
        session = command._build_session(options)
        self._collector = LinkCollector.create(session, options=options)
        self._downloader = Downloader(session, "off")

    def links(self, name: str) -> list[Any]:
        """Every file that the indexes and find-links offer for a package."""
        found: list[Any] = []

        def read_page(url: Any) -> list[Any]:
            page = self._collector.fetch_response(url)
            found.extend(parse_links(page) if page is not None else [])
            return []

        for group in self._collector.collect_sources(project_name=name, candidates_from_page=read_page):
            for source in group:
                if source is not None:
                    list(source.page_candidates())
                    found.extend(source.file_links())
        return found

    def download(self, link: Any, folder: Path) -> Path:
        """The file behind link, put into folder."""
        if link.is_file:
            return Path(shutil.copy(link.file_path, folder))
        path, _ = self._downloader(link, str(folder))
        return Path(path)


def choose(links: list[Any], kind: str, name: str, version: str, sha256: str | None) -> Any:
    """The link of the wanted file; what it is called says which it is, and its hash, where the index gives one.

    A wheel for any machine is preferred where no hash is asked for; with a hash it may be one for another platform.
    LookupError says what there is instead.
    """
    named = [(link, _read_name(link.filename)) for link in links]
    ours = [(link, found) for link, found in named if found[:2] == (kind, canonicalize_name(name))]
    fitting = [link for link, found in ours if found[2] == Version(version)]
    if not fitting:
        versions = sorted({found[2] for _, found in ours}, reverse=True)
        raise LookupError(
            f"no index has a {kind} of {name} {version}; it has versions {_listed(versions)}"
            if versions
            else f"no index has a {kind} of {name}"
        )
    if sha256 is None:
        portable = [link for link in fitting if _read_name(link.filename)[3]]
        if portable:
            return portable[0]
        if len({link.filename for link in fitting}) > 1:
            raise LookupError(
                f"{name} {version} has a wheel for each of several platforms; add #sha256= of one, or take the sdist: "
                + _listed(sorted({link.filename for link in fitting}))
            )
        return fitting[0]
    hashes = [link.hash if link.hash_name == "sha256" else None for link in fitting]
    for link, found in zip(fitting, hashes, strict=True):
        if found == sha256:
            return link
    for link, found in zip(fitting, hashes, strict=True):
        if found is None:
            return link
    raise LookupError(
        f"the index has {name} {version} with sha256 {_listed([one for one in hashes if one])}, wanted {sha256}"
    )


def main() -> None:
    job_file = Path(sys.argv[1])
    job = json.loads(job_file.read_text())
    folder = job_file.parent
    threading.Thread(target=_end_with_input, daemon=True).start()
    log = _Failures()
    logger = logging.getLogger("pip")
    logger.addHandler(log)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    clients = threading.local()

    def get(place: int, kind: str, name: str, version: str, sha256: str | None) -> str:
        log.begin()
        if not hasattr(clients, "client"):
            clients.client = Client()
        try:
            link = choose(clients.client.links(name), kind, name, version, sha256)
        except LookupError as error:
            reasons = log.messages()
            hint = ["check the network, or name a mirror by pip's index-url or find-links"] if reasons else []
            raise LookupError("; ".join([str(error), *reasons, *hint])) from None
        own = folder / str(place)  # two files may bear one name
        own.mkdir()
        return str(clients.client.download(link, own))

    with ThreadPoolExecutor(job["workers"]) as pool:
        places = {pool.submit(get, place, *file): place for place, file in enumerate(job["files"])}
        for done in as_completed(places):
            error = done.exception()
            answer = {"path": done.result()} if error is None else {"error": str(error) or type(error).__name__}
            print(json.dumps({"file": places[done], **answer}), flush=True)


class _Failures(logging.Handler):
    """Why pages of an index could not be read, which pip only logs, by thread."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._thread = threading.local()

    def begin(self) -> None:
        self._thread.messages = []

    def messages(self) -> list[str]:
        return list(self._thread.messages)

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message.startswith("Could not fetch URL") and " 404 " not in message:
            getattr(self._thread, "messages", []).append(message.removesuffix(" - skipping"))


def _read_name(filename: str) -> tuple[str | None, str | None, Any, bool]:
    """(kind, name, version, for any machine) of a release file; Nones if it is called like none."""
    try:
        if filename.endswith(".whl"):
            name, version, _, tags = parse_wheel_filename(filename)
            return "wheel", name, version, all(tag.platform == "any" for tag in tags)
        name, version = parse_sdist_filename(filename)
        return "sdist", name, version, True
    except ValueError:
        return None, None, None, False


def _listed(things: list[Any]) -> str:
    more = f" and {len(things) - SHOWN} more" if len(things) > SHOWN else ""
    return ", ".join(map(str, things[:SHOWN])) + more


def _end_with_input() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
