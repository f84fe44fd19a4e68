"""The warm parent: a process that has imported what programs need and forks a child for each of them.

It runs alone, by any interpreter from 3.9 on and without the suite, inside the containment that `containment` built:
everything here is of the standard library. `parent` sends it jobs and reads what became of them. It is one file, for
what runs inside must not be found there: it is the module `__main__`, whose place the answer takes, and its file is the
one whose frames the audit hook trusts.

A child passes by a proof. The proof is read from a pipe before the answer starts and then lies on the value stack of
one expression, where no name leads to it; the check comes through another pipe when the answer has run to its end, is
given once, and runs with builtins of its own. An audit hook that cannot be removed ends the child as `refused` when the
answer reaches for frames, the collector, raw memory or tracing.
"""

import _signal
import atexit
import builtins
import contextlib
import ctypes
import dis
import errno
import functools
import gc
import importlib
import json
import linecache
import marshal
import os
import pickle
import random
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import traceback
import types

PROOF_BYTES = 16
NO_PROOF = bytes(PROOF_BYTES)
FILE_BYTES = 64 << 20  # of one written file, its output among them
OUTPUT_BYTES = 8 << 20  # of its output, that is handed on
DETAIL_CHARACTERS = 600
PROCESSES = 256  # and threads
OPEN_FILES = 256
HEAP_TYPE = 1 << 9  # a class whose attributes can be set
TICK = 0.1  # seconds between looks at the memory of a program's processes
SPARE_MEMORY = 256 << 20  # the machine's own: below it programs end
FOLDERS_IN_MEMORY = 768 << 20  # at most: the two that a program may write
WALL = 3.0  # wall time over processor time: what a loaded machine may add
WALL_EXTRA = 2.0
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 36, 38

PLAIN_NAMES = frozenset(["__name__", "__doc__", "__package__", "__spec__", "__loader__"])
BUILTINS = dict(vars(builtins))
FRAME_NAMES = frozenset(["tb_frame", "gi_frame", "cr_frame", "ag_frame"])
CODE_NAMES = frozenset(["__code__", "__defaults__", "__kwdefaults__"])
EVENTS = frozenset(
    [
        "sys._getframe",
        "sys._current_frames",
        "sys._current_exceptions",
        "sys.settrace",
        "sys.setprofile",
        "sys.monitoring.register_callback",
        "sys.addaudithook",
        "gc.get_objects",
        "gc.get_referrers",
        "gc.get_referents",
        "object.__getattr__",
        "object.__setattr__",
        "object.__delattr__",
        "code.__new__",
        "compile",
        "ctypes.dlopen",
        "ctypes.dlsym",
        "ctypes.dlsym/handle",
        "ctypes.call_function",
        "ctypes.cdata",
        "ctypes.cdata/buffer",
        "ctypes.string_at",
        "ctypes.wstring_at",
    ]
)
PASS_ON_FRAMES = ("traceback.py", "logging/__init__.py", "asyncio/base_tasks.py", "bdb.py", "pdb.py", "trace.py")
HIDE_THEIR_CALLER = ("inspect.py", "ctypes/__init__.py", "ctypes/util.py", "cProfile.py", "profile.py", "threading.py")
DENIED = frozenset([errno.EACCES, errno.EPERM, errno.EROFS, errno.ENETUNREACH])


def main():
    settings = json.loads(sys.argv[1])
    sys.path[:] = [each for each in sys.path if os.path.realpath(each or ".") != os.path.dirname(__file__)]
    inbox, outbox = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if os.getpid() != 1:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        for module in settings["modules"]:
            importlib.import_module(module)
    except BaseException as error:
        send(outbox, {"import error": last_line(error)})
        return
    known = Known()
    kept = {folder: set(os.listdir(folder)) for folder in settings["wiped"]}
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    send(outbox, {"ready": True})
    while True:
        job = receive(inbox)
        if job is None:
            return
        known.learn(job["check"])
        outcome = judged(job, settings, known)
        outcome["hurt"] = not wiped(kept)
        send(outbox, outcome)


def prctl(option, value):
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


# Messages: in come pickles, which the trusted side wrote; out goes JSON, so that nothing in here can hurt out there.


def receive(inbox):
    head = exactly(inbox, 8)
    return None if head is None else pickle.loads(exactly(inbox, struct.unpack("<Q", head)[0]))


def exactly(file, size):
    parts = []
    while size:
        part = os.read(file, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def send(outbox, message):
    content = json.dumps(message).encode("ascii")
    everything(outbox, struct.pack("<Q", len(content)) + content)


def everything(file, content):
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]


class Known:
    """What modules and their classes held when nobody had touched them, so that a check can have them back."""

    def __init__(self):
        folders = library_folders()
        self.libraries = tuple(folders | {os.path.realpath(each) + os.sep for each in folders})
        self.names = set()
        self.modules = {}  # of each package: name, module, its functions and classes
        self.classes = {}  # of each package: class, what it holds
        self.asked = set()
        self.look()

    def look(self):
        for name, module in list(sys.modules.items()):
            if type(module) is not types.ModuleType or name in self.names or name == "__main__":
                continue
            package = name.partition(".")[0]
            held = {key: value for key, value in vars(module).items() if callable(value)}
            self.names.add(name)
            self.modules.setdefault(package, []).append((name, module, held))
            classes = self.classes.setdefault(package, {})
            for value in held.values():
                own = isinstance(value, type) and value.__flags__ & HEAP_TYPE and value not in classes
                if own and str(value.__module__).partition(".")[0] == package:
                    classes[value] = dict(vars(value))
        seed()
        gc.collect()
        gc.freeze()

    def learn(self, check):
        """Import what a check imports, so that it gets the true modules and they cost the program no time."""
        code = None if check is None else compiled(check)
        if isinstance(code, types.CodeType):
            wanted = imported(code) - self.asked
            self.asked |= wanted
            found = len(sys.modules)
            for name in sorted(wanted):
                try:
                    importlib.import_module(name)
                except BaseException:  # the check itself will say so
                    continue
            if len(sys.modules) != found:
                self.look()

    def restore(self, packages, names):
        """Put back every function, class and method of packages that is not what it was; returns what was not.

        Libraries set some of their own only when they are used: what libraries put in its place stays, unless it bears
        one of names, those that the check speaks of.
        """
        changed = []

        def own(key, value):
            return key not in names and self.of_libraries(value)

        for package in packages & set(self.modules):
            for name, module, held in self.modules[package]:
                if sys.modules.get(name) is not module:
                    sys.modules[name] = module
                    changed.append(name)
                inside = vars(module)
                for key, value in held.items():
                    if inside.get(key) is not value and not own(key, inside.get(key)):
                        inside[key] = value
                        changed.append(name + "." + key)
            for kind, held in self.classes[package].items():
                inside = vars(kind)
                if len(inside) == len(held) and all(inside.get(key) is value for key, value in held.items()):
                    continue
                for key in [*held, *(set(inside) - set(held))]:
                    value = inside.get(key)
                    if own(key, value):
                        continue
                    if (
                        key in held
                        and value is not held[key]
                        and (callable(held[key]) or hasattr(held[key], "__get__"))
                    ):
                        setattr(kind, key, held[key])
                    elif key not in held and callable(value) and any(key in vars(base) for base in kind.__mro__[1:]):
                        delattr(kind, key)
                    else:
                        continue
                    changed.append(kind.__name__ + "." + key)
        return changed

    def of_libraries(self, value):
        """Whether value, or what is wrapped in it, comes from a library rather than from an answer."""
        for _ in range(10):
            if isinstance(value, types.FunctionType):
                return value.__code__.co_filename.startswith(self.libraries)
            kind = type(value)
            inner = {functools.partial: "func", property: "fget", staticmethod: "__func__", classmethod: "__func__"}
            if kind not in inner:
                break
            value = getattr(value, inner[kind])
        if kind is types.BuiltinFunctionType:
            return False
        return (value if isinstance(value, type) else kind).__module__ not in ("answer", "__main__")


def set_by(code):
    """The attributes that code itself sets, such as mocks."""
    return {step.argval for each in codes(code) for step in dis.get_instructions(each) if step.opname == "STORE_ATTR"}


def seed():
    """Fix the random numbers of libraries here, where it costs once: children start from what their parent has."""
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
    if "tensorflow" in sys.modules:
        sys.modules["tensorflow"].random.set_seed(0)


def compiled(check):
    """The check's code, or what is wrong with it."""
    try:
        return compile(check, "<check>", "exec", dont_inherit=True)
    except BaseException as error:
        return last_line(error)


def codes(code):
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from codes(each)


def imported(code):
    """The modules that code imports; read from its names, so some may be no modules."""
    return {
        step.argval
        for each in codes(code)
        for step in dis.get_instructions(each)
        if step.opname == "IMPORT_NAME" and step.argval
    }


def judged(job, settings, known):
    """One program in one child. Returns verdict, detail, seconds and output; all its processes are gone."""
    folder = settings["folder"]
    uid = settings["uid"]
    prepare(folder, job, settings)
    files = {name: os.memfd_create(name) for name in ("stdin", "stdout", "stderr", "check")}
    everything(files["stdin"], job["stdin"])
    os.lseek(files["stdin"], 0, os.SEEK_SET)
    proof_in, proof = os.pipe()
    report, report_out = os.pipe()
    ask, ask_out = os.pipe()
    everything(proof, job["proof"])
    size, _ = held_by("self")
    limits = {
        "RLIMIT_CORE": (0, 0),
        "RLIMIT_CPU": (-int(-job["seconds"] // 1), -int(-job["seconds"] // 1) + 1),
        "RLIMIT_AS": (size + job["memory"],) * 2,
        "RLIMIT_FSIZE": (FILE_BYTES,) * 2,
        "RLIMIT_NPROC": (PROCESSES + settings["others"],) * 2,
        "RLIMIT_NOFILE": (OPEN_FILES,) * 2,
    }
    shared = machine_memory()[1]
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            for target, name in enumerate(("stdin", "stdout", "stderr")):
                os.dup2(files[name], target)
            keep_only([proof_in, report_out, ask_out, files["check"]])
            confine(limits, uid)
            os.chdir(folder)
            surroundings(folder)
            if job["command"]:
                become(job, proof_in, report_out)
            else:
                trial(job, known, proof_in, report_out, ask_out, files["check"], folder)
        except BaseException as error:
            os.write(report_out, NO_PROOF + described(error))
        finally:
            os._exit(1)
    for each in (proof_in, report_out, ask_out, files["stdin"]):
        os.close(each)
    child = os.pidfd_open(pid)
    wall = job["seconds"] * WALL + WALL_EXTRA
    told, asked, ended, code = b"", 0, None, None
    waiting = select.poll()
    for each in (ask, report, child):
        waiting.register(each, select.POLLIN)
    while ended is None:
        left = began + wall - time.monotonic()
        if left <= 0:
            ended = "timeout", f"ran for {wall:.0f} seconds"
            break
        ready = [each for each, _ in waiting.poll(max(1, min(TICK, left) * 1000))]
        if not ready and time.monotonic() - began > TICK:
            ended = memory_spent(job["memory"], shared, settings)
        if report in ready:
            part = os.read(report, 1 << 16)
            told += part[: (1 << 16) - len(told)]
            if not part:
                waiting.unregister(report)
        if ask in ready:
            part = os.read(ask, 16)
            if not part:
                waiting.unregister(ask)
            elif job["check"] is None or asked or len(part) > 1:
                ended = "refused", "asked for the check itself"
            else:
                asked = 1
                code = compiled(job["check"])
                if not isinstance(code, types.CodeType):
                    ended = "judge error", code
                else:
                    everything(files["check"], marshal.dumps(code))
                    os.write(proof, b"!")
        if child in ready:
            break
    seconds = time.monotonic() - began
    if ended:
        kill(pid)
    _, status, spent = os.wait4(pid, 0)
    os.set_blocking(report, False)
    with contextlib.suppress(BlockingIOError):
        told += os.read(report, 1 << 16)
    stragglers(settings)
    output = content_of(files["stdout"], OUTPUT_BYTES + 1)
    errors = content_of(files["stderr"], OUTPUT_BYTES)
    for each in (proof, report, ask, child, files["stdout"], files["stderr"], files["check"]):
        os.close(each)
    verdict, detail = ended or verdict_of(job, told, asked, status, spent, output, errors)
    return {
        "verdict": verdict,
        "detail": detail[-DETAIL_CHARACTERS:],
        "seconds": spent.ru_utime + spent.ru_stime,
        "wall": seconds,
        "output": output.decode("utf-8", "replace"),
    }


def prepare(folder, job, settings):
    uid = settings["uid"]
    os.mkdir(folder, 0o700)
    if settings["tree"]:
        shutil.copytree(settings["tree"], folder, symlinks=True, dirs_exist_ok=True)
    for name, content in job["files"].items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.lexists(path):
            os.remove(path)
        with open(path, "wb") as file:
            file.write(content)
    if uid is not None:
        os.chown(folder, uid, uid)
        for above, folders, names in os.walk(folder) if settings["tree"] or job["files"] else ():
            for name in folders + names:
                os.chown(os.path.join(above, name), uid, uid, follow_symlinks=False)


def keep_only(files):
    below = 2
    for each in sorted(files):
        os.closerange(below + 1, each)
        below = each
    os.closerange(below + 1, 1 << 16)


def confine(limits, uid):
    for name, value in limits.items():
        resource.setrlimit(getattr(resource, name), value)
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    for each in (signal.SIGXCPU, signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(each, signal.SIG_DFL)


def surroundings(folder):
    for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "PWD"):
        os.environ[name] = folder


def become(job, proof, report):
    """The command in the place of this process."""
    if job["pytest"]:
        os.environ["CODERET_PROOF"] = f"{proof},{report}"
        os.environ["PYTHONPATH"] = os.path.dirname(__file__)
        os.environ["PYTEST_ADDOPTS"] = "-p proving"
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # what else is installed moves no verdict, and costs seconds
        os.set_inheritable(proof, True)
        os.set_inheritable(report, True)
    else:
        os.closerange(3, 1 << 16)
        report = None
    os.execvpe(job["command"][0], job["command"], os.environ)


def trial(job, known, proof, report, ask, check, folder):
    """The answer, then the check, then the proof. What comes back through `report` without the proof is no pass."""
    for target, name in enumerate(("stdin", "stdout", "stderr")):
        mode = "r" if target == 0 else "w"
        stream = open(target, mode, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv[:] = ["answer.py"]
    sys.path.insert(0, folder)
    random.seed(0)  # in the child, for a fork shuffles it
    own = sys.modules["__main__"]
    answer = types.ModuleType("answer" if job["check"] is not None else "__main__")
    names = vars(answer)
    sys.modules["answer"] = sys.modules["__main__"] = answer
    source, wanted, tested = job["source"], job["check"] is not None, frozenset(job["tested"])
    job.clear()
    write, read, end = os.write, os.read, os._exit
    shield(known, report, write, end)
    try:
        linecache.cache["<answer>"] = (len(source), None, source.splitlines(True), "<answer>")
        code = compile(source, "<answer>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError) as error:
        write(report, NO_PROOF + json.dumps(["syntax error", last_line(error)]).encode("ascii"))
        end(1)
    streams = sys.stdout, sys.stderr
    try:
        write(
            report, read(proof, PROOF_BYTES) + ran(code, names, wanted, tested, known, proof, ask, check, read, write)
        )
        status = 0
    except BaseException as error:
        status = 1
        if not wanted and isinstance(error, SystemExit):
            status = 0 if error.code in (None, 0) else 1
            write(report, NO_PROOF + json.dumps(["ended", f"exit status {error.code!r}"]).encode("ascii"))
        else:
            write(report, NO_PROOF + described(error))
    del own
    if not wanted:
        for finish in (threading._shutdown, atexit._run_exitfuncs):
            try:
                finish()
            except BaseException:
                status = 1
    for stream in {*streams, sys.stdout, sys.stderr}:
        try:
            stream.flush()
        except BaseException:
            status = 1
    end(status)


def ran(code, names, wanted, tested, known, proof, ask, check, read, write):
    """Run the answer, fetch the check, run it. Returns what is said beside the proof; raises what they raise."""
    restore, true_builtins, loads, slurped = known.restore, BUILTINS, marshal.loads, content_of
    exec(code, names)
    if wanted:
        write(ask, b"?")
        if read(proof, 1) != b"!":
            raise Touched("the check was taken away")
        vars(builtins).update(true_builtins)
        own = {
            name: value
            for name, value in names.items()
            if name not in true_builtins or name in tested or name in PLAIN_NAMES
        }
        own["__builtins__"] = dict(true_builtins)
        checked(own, restore, loads(slurped(check, 1 << 40)))
        if own["__builtins__"] != true_builtins:
            raise Touched("the check's builtins were replaced while it ran")
    return b"[]"


def checked(own, restore, code):
    used = {name for each in codes(code) for name in each.co_names}
    packages = {name.partition(".")[0] for name in used | imported(code)}
    packages |= {
        value.__name__.partition(".")[0]
        for name, value in own.items()
        if name in used and type(value) is types.ModuleType
    }
    restore(packages, used)
    exec(code, own)
    mocked = set_by(code)
    changed = [each for each in restore(packages, used) if each.rpartition(".")[2] not in mocked]
    if changed:
        raise Touched("replaced while the check ran: " + ", ".join(changed[:5]))


class Touched(BaseException):
    """The answer reached for what judges it."""


def shield(known, report, write, end):
    """Let nobody but libraries see frames, tracing, the collector or raw memory from here on."""
    getframe, inside, me = sys._getframe, set(), threading.get_ident
    libraries = known.libraries
    passing = frozenset(each + name for each in libraries for name in PASS_ON_FRAMES)
    hiding = frozenset(each + name for each in libraries for name in HIDE_THEIR_CALLER)
    events, frame_names, code_names = EVENTS, FRAME_NAMES, CODE_NAMES
    refused = NO_PROOF + b'["refused", "reached for %s"]'

    def trusted(name):
        return name.startswith(libraries) or name.startswith("<frozen ") or name == "<check>" or name == __file__

    def hook(event, arguments):
        if event not in events:
            return
        if event.startswith("object."):
            if arguments[1] not in (frame_names if event == "object.__getattr__" else code_names):
                return
        elif event == "compile" and (not isinstance(arguments[1], str) or not trusted(arguments[1])):
            return
        thread = me()
        if thread in inside:  # the hook's own look at frames
            return
        inside.add(thread)
        try:
            frame = getframe(1)
            if frame is not None and frame.f_code.co_filename in passing:
                frame = frame.f_back
            while frame is not None and frame.f_code.co_filename in hiding:
                frame = frame.f_back
            if frame is not None and not trusted(frame.f_code.co_filename):
                try:
                    write(report, refused % (arguments[1] if event.startswith("object.") else event).encode("ascii"))
                finally:
                    end(1)
        finally:
            inside.discard(thread)

    sys.addaudithook(hook)
    given = _signal.signal

    def without_frames(number, handler):
        return given(number, (lambda got, _: handler(got, None)) if callable(handler) else handler)

    _signal.signal = without_frames  # signal.signal asks it, and a handler's frame leads to whatever it interrupts


def library_folders():
    return {os.path.dirname(os.__file__) + os.sep, *(each + os.sep for each in sys.path if os.path.isdir(each))}


def last_line(error):
    try:
        return "".join(traceback.format_exception_only(type(error), error)).strip()[-DETAIL_CHARACTERS:]
    except BaseException:
        return type(error).__name__


def described(error):
    """JSON of verdict and detail for an exception; its __str__ may be the answer's."""
    where = ""
    try:
        for frame, line in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename in ("<answer>", "<check>"):
                where = f"{frame.f_code.co_filename[1:-1]} line {line}, in {frame.f_code.co_name}: "
    except BaseException:
        pass
    verdict = "failed"
    if isinstance(error, Touched):
        verdict = "refused"
    elif isinstance(error, SyntaxError):
        verdict = "syntax error"
    elif isinstance(error, ImportError):
        verdict = "import error"
    elif isinstance(error, MemoryError):
        verdict = "memory"
    elif denied(error):
        verdict = "refused"
    detail = where + last_line(error)
    if isinstance(error, SystemExit):
        detail = where + f"ended before the check had: SystemExit({error.code!r})"
    return json.dumps([verdict, detail[-DETAIL_CHARACTERS:]]).encode("ascii")


def denied(error):
    """Whether error, or what it came from, is the containment saying no."""
    for _ in range(20):
        if error is None:
            return False
        if isinstance(error, OSError) and (error.errno in DENIED or type(error).__name__ == "gaierror"):
            return True
        error = error.__cause__ or error.__context__
    return False


def verdict_of(job, told, asked, status, spent, output, errors):
    code = os.waitstatus_to_exitcode(status)
    proven = told.startswith(job["proof"])
    seconds = spent.ru_utime + spent.ru_stime
    last = (errors if job["command"] is None else output + b"\n" + errors).decode("utf-8", "replace").strip()
    last = last[-DETAIL_CHARACTERS:]
    limit = -int(-job["seconds"] // 1)
    if (code in (-signal.SIGXCPU, -signal.SIGKILL) and seconds > limit - 0.5) or seconds > limit + 0.5:
        return "timeout", f"used {seconds:.1f} seconds of processor time"
    message = []
    if told and not proven:
        try:
            message = json.loads(told[PROOF_BYTES:])
        except ValueError:
            return "refused", "wrote into the report"
        if not told.startswith(NO_PROOF) or not (
            isinstance(message, list) and len(message) == 2 and all(isinstance(each, str) for each in message)
        ):
            return "refused", "wrote into the report"
        if message[0] not in ("failed", "refused", "import error", "syntax error", "memory", "ended"):
            return "refused", "wrote into the report"
    if code < 0:
        if b"bad_alloc" in errors or b"MemoryError" in errors or b"out of memory" in errors:
            return "memory", last
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return "failed", f"ended by {name}\n{last}".strip()
    if job["command"] is not None:
        if message:
            return "failed", message[1]
        if code:
            return "failed", f"status {code}\n{last}".strip()
        if job["pytest"] and not proven:
            return "failed", "ended before the tests had"
        return "passed", ""
    if job["check"] is None:
        if message and message[0] != "ended":
            return message[0], message[1]
        if code:
            return "failed", (message[1] if message else f"status {code}\n{last}").strip()
        if len(output) > OUTPUT_BYTES:
            return "failed", f"wrote more than {OUTPUT_BYTES} bytes"
        return "passed", ""
    if proven:
        return ("passed", "") if asked else ("refused", "proved what was not checked")
    if message:
        return "failed" if message[0] == "ended" else message[0], message[1]
    return "failed", f"ended before the check had, with status {code}\n{last}".strip()


def content_of(file, most):
    parts, at = [], 0
    while at < most:
        part = os.pread(file, min(1 << 20, most - at), at)
        if not part:
            break
        parts.append(part)
        at += len(part)
    return b"".join(parts)


# What a program started: it must not outlive it, nor take all memory by being many.


def held_by(process):
    """Bytes of a process: what it may address, and what it holds for itself; nothing if it has ended."""
    try:
        with open(f"/proc/{process}/statm") as file:
            fields = [int(each) * os.sysconf("SC_PAGE_SIZE") for each in file.read().split()]
    except (OSError, ValueError):
        return 0, 0
    return fields[0], fields[1] - fields[2]


def machine_memory():
    """Bytes of the machine's memory that are to be had, and that are held in common: in files of memory, or mapped."""
    with open("/proc/meminfo") as file:
        told = dict(line.split(":") for line in file)
    return tuple(int(told[name].split()[0]) << 10 for name in ("MemAvailable", "Shmem"))


def memory_spent(memory, shared, settings):
    """What says that a program has too much; shared: what the machine held in common before it began.

    What is in a file without a name, or in pages that several processes have, no process holds for itself: it is seen
    only in what the machine holds in common, of which programs that run beside this one may fill their folders.
    """
    own = held_by("self")[1]  # which every fork of this one shows as its own
    total = sum(max(0, held_by(each)[1] - own) for each in processes_of(settings))
    if total > memory:
        return "memory", f"its processes held {total >> 20} MiB"
    available, common = machine_memory()
    if common - shared > memory + 2 * FOLDERS_IN_MEMORY:
        return "memory", f"{(common - shared) >> 20} MiB more are held in common than before it"
    if available < SPARE_MEMORY:
        return "memory", "the machine had no more"
    return None


def processes_of(settings):
    """The processes of the program that runs: all in this name space, or all that come from here or have its user."""
    me = os.getpid()
    if me == 1:
        return [int(each) for each in os.listdir("/proc") if each.isdigit() and each != "1"]
    parents, found = {}, set()
    for each in os.listdir("/proc"):
        if each.isdigit():
            try:
                with open(f"/proc/{each}/stat") as file:
                    parents[int(each)] = int(file.read().rpartition(")")[2].split()[1])
                if settings["uid"] is not None and os.stat("/proc/" + each).st_uid == settings["uid"]:
                    found.add(int(each))
            except (OSError, ValueError, IndexError):
                continue
    more = {me}
    while more:
        more = {each for each, parent in parents.items() if parent in more} - found
        found |= more
    return sorted(found - {me})


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def stragglers(settings):
    """End and reap what is left. In a name space of its own all at once; elsewhere until nobody is found."""
    if os.getpid() == 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        reap(os.WNOHANG if not processes_of(settings) else 0)
        return
    until = time.monotonic() + 10
    while time.monotonic() < until:
        left = processes_of(settings)
        for each in left:
            kill(each)
        reap(os.WNOHANG)
        if not left:
            return


def reap(options):
    try:
        while os.waitpid(-1, options)[0]:
            pass
    except ChildProcessError:
        pass


def wiped(kept):
    """Remove what programs left in the folders that they may write; whether nothing is left."""
    for folder, names in kept.items():
        for name in set(os.listdir(folder)) - names:
            path = os.path.join(folder, name)
            try:
                os.rmdir(path)
            except OSError:
                remove(path)
        if set(os.listdir(folder)) != names:
            return False
    return True


def remove(path):
    try:
        if os.path.islink(path) or not os.path.isdir(path):
            os.remove(path)
        else:
            shutil.rmtree(path)
    except (OSError, RecursionError):
        subprocess.run(["chmod", "-R", "u+rwx", path], stderr=subprocess.DEVNULL)
        subprocess.run(["rm", "-rf", path], stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
