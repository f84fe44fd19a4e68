"""Where a package of npm lies: asked of the registry that npm is set up with, by its own protocol.

The registry of a package is npm's `registry`, or `<scope>:registry` for one in a scope. It stands in the environment
(`npm_config_registry`), in the .npmrc files of the folder, of the person and of the machine, and else in npm itself,
which is asked last, for not every machine with a corpus to make has npm. Proxies and certificates are those that Python
is set up with (`HTTPS_PROXY`, `REQUESTS_CA_BUNDLE`). Registries that want a password are not spoken to.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from coderet.corpora.pins import Source, SourceError

MEDIA = "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8"  # what installing takes, without readmes
SHOWN = 5  # how many versions an error lists
ASKING_SECONDS = 60
FILES = ("./.npmrc", "~/.npmrc", "/etc/npmrc")


def tarball(source: Source, receive: Callable[[str, Path, Mapping[str, str]], object]) -> str:
    """The address of the pinned version's tarball. receive(address, file, headers) downloads or raises SourceError."""
    name, _, version = source.place.partition("==")
    address = f"{registry(name)}/{quote(name, safe='@')}"
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "package.json"
        try:
            receive(address, page, {"Accept": MEDIA})
        except SourceError as error:
            raise SourceError(f"{source}: {error}, or name another registry in npm_config_registry") from None
        versions = _versions(page.read_bytes())
    found = versions.get(version)
    where = found.get("dist", {}).get("tarball") if isinstance(found, dict) else None
    if not isinstance(where, str):
        there = f"; it has versions {_listed(list(versions)[::-1])}" if versions else ""
        raise SourceError(f"{source}: the registry has no {name} {version}{there}")
    return where


def registry(name: str) -> str:
    """The address of the registry of a package, without a slash at its end; SourceError where none is set up."""
    scope = name.partition("/")[0] if name.startswith("@") else ""
    wanted = [f"{scope}:registry", "registry"] if scope else ["registry"]
    for key in wanted:
        found = _of_environment(key) or _of_files(key) or _of_npm(key)
        if found:
            return found.rstrip("/")
    raise SourceError(
        f"no registry is set up to fetch {name} from; write its address into the environment as npm_config_registry or "
        "into ~/.npmrc as registry=https://..., or install npm, which knows one"
    )


def _of_environment(key: str) -> str | None:
    """npm reads its own variables in any case."""
    return next((value for name, value in os.environ.items() if name.lower() == f"npm_config_{key}"), None) or None


def _of_files(key: str) -> str | None:
    for path in FILES:
        try:
            text = Path(path).expanduser().read_text("utf-8", "replace")
        except OSError:
            continue
        found = re.findall(rf"^\s*{re.escape(key)}\s*=\s*[\"']?([^\s\"']+)", text, re.MULTILINE)
        if found:
            return str(found[-1])
    return None


def _of_npm(key: str) -> str | None:
    npm = shutil.which("npm")
    if npm is None:
        return None
    try:
        answer = subprocess.run([npm, "config", "get", key], capture_output=True, text=True, timeout=ASKING_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = answer.stdout.strip()
    return said if answer.returncode == 0 and re.match(r"https?://", said) else None


def _versions(page: bytes) -> dict[str, Any]:
    try:
        versions = json.loads(page)["versions"]
    except (ValueError, KeyError, TypeError):
        return {}
    return versions if isinstance(versions, dict) else {}


def _listed(versions: list[str]) -> str:
    more = f" and {len(versions) - SHOWN} more" if len(versions) > SHOWN else ""
    return ", ".join(versions[:SHOWN]) + more
