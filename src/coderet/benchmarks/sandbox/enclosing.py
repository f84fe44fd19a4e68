"""Name spaces and an empty world around a command, for where bubblewrap is not installed.

Run alone: `python -I enclosing.py WORLD COMMAND...`. Makes name spaces for mounts, processes, network, IPC and names
(and users, unless started as root), builds the world out of mounts over a folder, all of it read-only but the folders
in memory that it names, makes that the root, and becomes the command as process 1 of its own.
"""

import contextlib
import ctypes
import json
import os
import signal
import sys

NEW_MOUNTS, NEW_NAMES, NEW_IPC, NEW_USERS, NEW_PROCESSES, NEW_NETWORK = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
READ_ONLY, NO_SUID, NO_DEVICES, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
DETACH = 2
SET_ATTRIBUTES, PIVOT_ROOT = 442, 155  # system calls; the latter's number is that of x86_64
ATTRIBUTES_READ_ONLY = (ctypes.c_uint64 * 4)(1 | 2 | 4, 0, 0, 0)
AT_RECURSIVE, AT_HERE = 0x8000, -100
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP = 1, 38, 24
KEPT_CAPABILITIES = {0, 1, 3, 5, 6, 7}  # chown, dac_override, fowner, kill, setgid, setuid

libc = ctypes.CDLL(None, use_errno=True)


def main():
    world, command = json.loads(sys.argv[1]), sys.argv[2:]
    uid, gid = os.geteuid(), os.getegid()
    flags = NEW_MOUNTS | NEW_NAMES | NEW_IPC | NEW_PROCESSES | NEW_NETWORK
    call("unshare", flags | (0 if world["root"] else NEW_USERS))
    if not world["root"]:
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"{uid} {uid} 1")
        write("/proc/self/gid_map", f"{gid} {gid} 1")
    pid = os.fork()
    if pid:
        os.close(0)
        os.close(1)
        _, status = os.waitpid(pid, 0)
        os._exit(0 if status == 0 else 1)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    loopback_up()
    root = build(world["mounts"])
    os.chdir(root)
    if libc.syscall(PIVOT_ROOT, b".", b"."):
        failed("pivot_root")
    call("umount2", b".", DETACH)
    os.chdir("/tmp")
    for folder in ("/dev", "/"):
        call("mount", None, folder.encode(), None, REMOUNT | BIND | READ_ONLY | NO_SUID, None)
    os.makedirs("/tmp/warm", exist_ok=True)
    libc.sethostname(b"sandbox", 7)
    for each in range(64):
        if each not in KEPT_CAPABILITIES:
            libc.prctl(PR_CAPBSET_DROP, each, 0, 0, 0)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.execve(command[0], command, world["environment"])


def build(mounts):
    call("mount", None, b"/", None, RECURSIVE | PRIVATE, None)
    root = next(
        each
        for each in ("/dev/shm", "/mnt", "/media", "/srv", "/opt")
        if os.path.isdir(each) and not any(source.startswith(each + "/") for _, source, _ in mounts)
    )  # what lies there is covered for us alone
    memory(root, "mode=755")
    for kind, source, target in mounts:
        path = root + target
        if kind == "link":
            os.symlink(source, path)
        elif kind == "bind":
            bind(source, path)
        elif kind == "proc":
            os.makedirs(path, exist_ok=True)
            call("mount", b"proc", path.encode(), b"proc", NO_SUID | NO_DEVICES, None)
        elif kind == "dev":
            devices(path)
        else:
            memory(path, "mode=1777,size=" + source)
    return root


def bind(source, path):
    if os.path.isdir(source):
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "a").close()
    call("mount", source.encode(), path.encode(), None, BIND | RECURSIVE, None)
    done = libc.syscall(SET_ATTRIBUTES, AT_HERE, path.encode(), AT_RECURSIVE, ATTRIBUTES_READ_ONLY, 32)
    if done:  # a kernel before 5.12: the mount itself, not what is mounted below
        locked = os.statvfs(path).f_flag & (NO_SUID | NO_DEVICES | 8 | 1024 | 2048)
        call("mount", None, path.encode(), None, BIND | REMOUNT | READ_ONLY | NO_SUID | NO_DEVICES | locked, None)


def devices(path):
    memory(path, "mode=755")
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        open(os.path.join(path, name), "a").close()
        call("mount", ("/dev/" + name).encode(), os.path.join(path, name).encode(), None, BIND, None)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", os.path.join(path, name))
    os.symlink("/proc/self/fd", os.path.join(path, "fd"))


def memory(path, options):
    os.makedirs(path, exist_ok=True)
    call("mount", b"tmpfs", path.encode(), b"tmpfs", NO_SUID | NO_DEVICES, options.encode())


def loopback_up():
    """Programs that talk to themselves want it; without it they are refused, which is no harm."""
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as each:
        request = struct.pack("16sH14s", b"lo", 1 | 64, b"")
        with contextlib.suppress(OSError):
            fcntl.ioctl(each, 0x8914, request)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def call(name, *arguments):
    if getattr(libc, name)(*arguments):
        failed(name)


def failed(name):
    number = ctypes.get_errno()
    sys.exit(f"{name}: {os.strerror(number)}")


if __name__ == "__main__":
    main()
