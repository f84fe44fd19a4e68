"""Fetch pinned artifacts into a folder, all or nothing.

What a line pins is in `pins`, where downloads are kept in `downloads`, how archives are unpacked in `unpacking`. All
is put together beside the wanted folder, which it replaces by a rename: a failure, whichever, leaves what was there
before. What carries no digest is fetched, refused, and the line to write stands in the message.
"""

import contextlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from coderet import paths
from coderet.corpora import unpacking
from coderet.corpora.downloads import CONNECT_SECONDS, DOWNLOADED, download, locked
from coderet.corpora.pins import Source, SourceError, Unpinned, digest, files_under, mismatch, parse

__all__ = ["Source", "SourceError", "digest", "fetch", "parse"]

DOWNLOADS = paths.WORK / "downloads"


def fetch(
    specs: Sequence[str],
    folder: Path,
    unpack: bool = True,
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    downloads: Path = DOWNLOADS,
) -> None:
    """Replace folder by one that holds each source's files in a folder of the source's name.

    With unpack, wheels, zip files and tarballs are unpacked as `unpacking.unpack` does it, only members that match one
    of keep (none given: all) and none of drop; without, each stays the one file it is. SourceError, and all stays as it
    was.
    """
    wanted = [_parsed(spec) for spec in specs]
    _check_names(wanted)
    with _system_errors(folder), _staging(Path(folder)) as staging:
        files = download([source for source in wanted if source.kind in DOWNLOADED], Path(downloads))
        found = {}
        for source in wanted:
            own = staging / source.name
            own.mkdir()
            place = files.get(source) or _locate(source)
            if place.is_dir():
                _copy_folder(place, own, source.include)
                found[source] = digest(own)
            else:
                found[source] = digest(place)
                if source.sha256 == found[source]:
                    _put(place, own, unpack, keep, drop)
            if source.sha256 not in (None, found[source]):
                raise mismatch(source, found[source])
        _check_pins(found)


def _parsed(spec: str) -> Source:
    """The source of a line; where it names a repository of the hub and no commit, the error tells today's."""
    try:
        return parse(spec)
    except Unpinned as error:
        repository = error.place.removeprefix("datasets/")
        try:
            from huggingface_hub import HfApi, constants  # a slow import, for hub: lines alone

            kind = "dataset" if error.place.startswith("datasets/") else "model"
            api = HfApi(endpoint=constants.ENDPOINT)
            commit = api.repo_info(repository, repo_type=kind, revision=error.revision, timeout=CONNECT_SECONDS).sha
        except Exception as trouble:  # the client raises those of its http library too
            told = f"The hub could not be asked for it ({type(trouble).__name__}); its commits stand on the page"
            raise SourceError(f"{error}. {told} https://huggingface.co/{error.place}/commits/main") from None
        raise SourceError(
            f"{error}. If what is there today is what you want, write into params.yaml:\n"
            f"  hub:{error.place}@{commit}{error.query}"
        ) from None


def _check_names(wanted: Sequence[Source]) -> None:
    by_name: dict[str, Source] = {}
    for source in wanted:
        other = by_name.setdefault(source.name.lower(), source)
        if other is not source:
            raise SourceError(f"{other} and {source} would both lie in a folder {source.name!r}; take one of them")


def _check_pins(found: Mapping[Source, str]) -> None:
    """Refuse what has no digest, with the lines that have; a hub's commit is pin enough."""
    unpinned = [replace(one, sha256=sha256) for one, sha256 in found.items() if not one.sha256 and one.kind != "hub"]
    if unpinned:
        raise SourceError(
            "not pinned: " + ", ".join(source.place for source in unpinned) + ". If what was found is what you want, "
            "write into params.yaml:\n" + "\n".join(f"  {source}" for source in unpinned)
        )


def _locate(source: Source) -> Path:
    """The file or folder of a source that no index and no address gives."""
    if source.kind == "hub":
        return _snapshot(source)
    path = Path(source.place).expanduser()
    if not path.exists():
        raise SourceError(f"{source}: there is nothing at {path.absolute()}; put the file there or mend the path")
    return path


def _snapshot(source: Source) -> Path:
    """The folder of the hub client's own cache that holds a repository at a commit."""
    from huggingface_hub import snapshot_download  # a slow import, for hub: lines alone

    repository, _, revision = source.place.removeprefix("datasets/").partition("@")
    try:
        return Path(
            snapshot_download(
                repository,
                repo_type="dataset" if source.place.startswith("datasets/") else "model",
                revision=revision,
                allow_patterns=list(source.include) or None,
                etag_timeout=CONNECT_SECONDS,
            )
        )
    except Exception as error:  # the client raises those of its http library too
        said = " ".join(str(error).split()).rstrip(".")
        raise SourceError(
            f"{source} cannot be had from the hub: {type(error).__name__}: {said}. Where the hub is out of reach, set "
            f"HF_ENDPOINT to a mirror or HF_HUB_CACHE to a filled cache, or pin a folder with the same files as file:"
        ) from None


def _copy_folder(folder: Path, own: Path, include: Sequence[str]) -> None:
    names = [name for name in files_under(folder) if not include or any(fnmatchcase(name, glob) for glob in include)]
    if not names:
        raise SourceError(f"{folder} has no file that matches {', '.join(include)}")
    for name in names:
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, own / name)


def _put(file: Path, own: Path, unpack: bool, keep: Sequence[str], drop: Sequence[str]) -> None:
    """The file, or the members of the archive that it is, in the folder own."""
    if not (unpack and unpacking.is_archive(file.name)):
        shutil.copyfile(file, own / file.name)
        return
    try:
        written = unpacking.unpack(file, own, keep, drop)
    except unpacking.UnpackError as error:
        raise SourceError(str(error)) from None
    if not written:
        raise SourceError(f"{file.name} has no member that matches {list(keep)} and none of {list(drop)}")


@contextlib.contextmanager
def _system_errors(folder: Path) -> Iterator[None]:
    """A full disk or a folder that may not be written is no bug of ours: say so in one line."""
    try:
        yield
    except OSError as error:
        raise SourceError(f"{folder} could not be filled: {error}") from None


@contextlib.contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    """An empty folder beside folder, which takes its place if the block ends well, and is gone if not.

    One process at a time fills it; what a killed one left is cleared away.
    """
    staging = folder.parent / f".{folder.name}.fetching"
    before = folder.parent / f".{folder.name}.before"
    staging.mkdir(parents=True, exist_ok=True)
    with locked(staging) as mine:
        if not mine:
            raise SourceError(f"{folder} is being fetched by another process; wait for it to end")
        if before.exists():  # killed between the two renames below, or just after them
            _remove(before) if folder.exists() else before.rename(folder)
        try:
            for left in staging.iterdir():
                shutil.rmtree(left)
            yield staging
            if folder.exists():
                folder.rename(before)
            staging.rename(folder)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            if before.exists() and not folder.exists():
                before.rename(folder)
            raise
        _remove(before)


def _remove(folder: Path) -> None:
    if folder.is_symlink():  # as DVC may have laid it
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
