"""Three walls around a warm parent, the strongest first; which one stood is said in every result.

`bubblewrap`: name spaces of its own by `bwrap`: no network, no process but its own, a world that is empty but for
system libraries and the interpreter, read-only, and two small folders in memory. `namespaces`: the same made by
`enclosing`, where bwrap is not installed and the kernel lets us. `limits`: neither; programs see the machine's files
with the rights of a user that owns nothing (started as root) or with ours, and has the network: only for answers that
one would run by hand.

As root the programs run as a user that nothing else has; as a normal user as oneself, in a user name space.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

Level = Literal["bubblewrap", "namespaces", "limits"]
LEVELS: tuple[Level, ...] = get_args(Level)

HERE = Path(__file__).parent
INSIDE = Path("/sandbox")
TEMPORARY_BYTES = 512 << 20
SHARED_BYTES = 256 << 20
USERS = 0x60000000  # the first of the users that programs run as, beyond those that systems give out
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/alternatives", "/nix/store")


class SandboxError(Exception):
    """Programs cannot be run here, and what to do."""


class Place(NamedTuple):
    """Where programs run. interpreter: its executable; tree: a folder that is copied for each; lane: the how manieth
    of those that run at once."""

    interpreter: Path
    tree: Path | None = None
    lane: int = 0


class Start(NamedTuple):
    """How a warm parent is started: argv, environment; without name spaces also the folder on this machine that is its
    to write, and the user of its programs, if that is not ours."""

    argv: list[str]
    environment: dict[str, str]
    folder: Path | None = None
    user: int | None = None


def start(level: Level, place: Place, modules: Sequence[str]) -> Start:
    """The command that starts a warm parent behind the wall level."""
    root = os.geteuid() == 0
    if level == "limits" and root and not readable_by_all(place.interpreter):
        raise SandboxError(
            f"{place.interpreter} lies in a folder that only root may read, and neither bubblewrap nor name spaces are"
            " to be had; install bubblewrap, or an interpreter that all users may read, or run this as a normal user"
        )
    folder = Path(tempfile.mkdtemp(prefix="coderet-")) if level == "limits" else None
    writable = "/tmp" if folder is None else str(folder)
    settings: dict[str, Any] = {
        "owner": os.getpid(),
        "modules": list(modules),
        "folder": f"{writable}/program",
        "tree": (str(place.tree.resolve()) if folder else "/tree") if place.tree else None,
        "wiped": [writable] if folder else [writable, "/dev/shm"],
        "uid": USERS + (os.getpid() << 6) % (1 << 28) + place.lane if root else None,
        "others": 0 if root or folder is None else processes_of_this_user(),
    }
    if folder is not None and root:
        folder.chmod(0o711)
    environment = surroundings(place.interpreter, f"{writable}/warm")
    code = HERE if folder is not None else INSIDE
    warm = [str(place.interpreter), "-s", "-u", str(code / "warm.py"), json.dumps(settings)]
    if level == "bubblewrap":
        return Start([*bubblewrap(place, environment, root), *warm], {"PATH": os.environ.get("PATH", os.defpath)})
    if level == "namespaces":
        world = json.dumps({"root": root, "mounts": mounts(place), "environment": environment})
        return Start([str(place.interpreter), "-I", str(HERE / "enclosing.py"), world, *warm], {})
    return Start(warm, environment, folder, settings["uid"])


def surroundings(interpreter: Path, home: str) -> dict[str, str]:
    """The environment of programs: nothing of ours leaks into it."""
    threads = "OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS NUMEXPR_NUM_THREADS NUMBA_NUM_THREADS"
    threads += " TF_NUM_INTRAOP_THREADS TF_NUM_INTEROP_THREADS"
    return {
        "PATH": f"{interpreter.parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "MPLCONFIGDIR": home,
        "XDG_CACHE_HOME": home,
        "USER": "nobody",
        "LOGNAME": "nobody",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "MPLBACKEND": "Agg",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "JAX_PLATFORMS": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
        "MALLOC_ARENA_MAX": "2",
        **dict.fromkeys(threads.split(), "1"),
    }


def mounts(place: Place) -> list[tuple[str, str, str]]:
    """What the world consists of, in order: (kind, where from, where to); kinds are bind, link, proc, dev, memory."""
    world = []
    for each in SYSTEM:
        if os.path.islink(each):
            world.append(("link", os.readlink(each), each))
        elif os.path.isdir(each):
            world.append(("bind", each, each))
    world += [("bind", each, each) for each in SYSTEM_FILES if os.path.exists(each)]
    world += [("proc", "", "/proc"), ("dev", "", "/dev")]
    world += [("memory", str(SHARED_BYTES), "/dev/shm"), ("memory", str(TEMPORARY_BYTES), "/tmp")]
    for each in needed(place.interpreter):
        if not any(each == above or each.startswith(above + "/") for above in SYSTEM):
            world.append(("bind", each, each))
    world += [("bind", str(HERE / name), str(INSIDE / name)) for name in ("warm.py", "proving.py")]
    if place.tree is not None:
        world.append(("bind", str(place.tree.resolve()), "/tree"))
    return world


def bubblewrap(place: Place, environment: dict[str, str], root: bool) -> list[str]:
    argv = "bwrap --unshare-ipc --unshare-pid --unshare-net --unshare-uts --unshare-cgroup-try".split()
    argv += "--as-pid-1 --die-with-parent --new-session --clearenv --cap-drop ALL --hostname sandbox".split()
    if root:
        for each in "SETUID SETGID KILL CHOWN DAC_OVERRIDE FOWNER".split():
            argv += ["--cap-add", f"CAP_{each}"]
    else:
        argv += ["--unshare-user"]
    for name, value in environment.items():
        argv += ["--setenv", name, value]
    made = set(SYSTEM)
    for kind, source, target in mounts(place):
        for above in reversed(Path(target).parents[:-1]):
            if str(above) not in {*made, "/tmp", "/dev"}:
                argv += ["--perms", "0755", "--dir", str(above)]
                made.add(str(above))
        made.add(target)
        if kind == "bind":
            argv += ["--ro-bind", source, target]
        elif kind == "link":
            argv += ["--symlink", source, target]
        elif kind == "memory":
            argv += ["--perms", "1777", "--size", source, "--tmpfs", target]
        else:
            argv += [f"--{kind}", target]
    return [*argv, "--dir", "/tmp/warm", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp", "--"]


@cache
def needed(interpreter: Path) -> list[str]:
    """The folders without which interpreter does not run, each named once."""
    code = (
        "import json, os, sys; print(json.dumps([sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix,"
        " os.path.dirname(sys.executable), os.path.dirname(os.path.realpath(sys.executable))]))"
    )
    try:
        said = subprocess.run([str(interpreter), "-s", "-c", code], capture_output=True, text=True, check=True, cwd="/")
    except (OSError, subprocess.CalledProcessError) as error:
        raise SandboxError(f"{interpreter} does not run: {error}; a Python of 3.9 or newer is wanted") from error
    folders = {os.path.abspath(each) for each in json.loads(said.stdout) if each and os.path.isdir(each)}
    folders |= {os.path.realpath(each) for each in folders}
    return sorted(
        each for each in folders if not any(each.startswith(above.rstrip("/") + "/") for above in folders - {each})
    )


def readable_by_all(path: Path) -> bool:
    above = [path, *path.parents, path.resolve(), *path.resolve().parents]
    return all(each.stat().st_mode & 0o001 for each in above)


def processes_of_this_user() -> int:
    """Where name spaces do not count apart, the limit on processes counts ours too."""
    mine = 0
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                if each.stat().st_uid == os.geteuid():
                    mine += len(os.listdir(each / "task"))
            except OSError:
                continue
    return mine


@cache
def available(level: Level, interpreter: Path = Path(sys.executable)) -> str:
    """Why level cannot be had here; the empty text if it can. Found out by trying."""
    if level == "limits":
        return ""
    if level == "bubblewrap" and shutil.which("bwrap") is None:
        return "bwrap is not installed (Debian and Fedora: the package bubblewrap)"
    started = start(level, Place(interpreter), ())
    tried = subprocess.run(started.argv, input=b"", capture_output=True, env=started.environment, timeout=60)
    if b'"ready"' in tried.stdout:
        return ""
    return tried.stderr.decode("utf-8", "replace").strip()[-300:] or f"it ended with status {tried.returncode}"


def strongest(interpreter: Path = Path(sys.executable)) -> Level:
    """The strongest wall that this machine allows."""
    return next(level for level in LEVELS if not available(level, interpreter))
