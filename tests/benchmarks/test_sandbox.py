import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from coderet.benchmarks import sandbox
from coderet.benchmarks.answering import Outcome, Program

SUM = "def plus(a, b):\n    return a + b\n"
SUM_CHECK = "assert plus(1, 2) == 3\nassert plus(5, -5) == 0\n"
HARMLESS = Program(SUM, SUM_CHECK)
ALONE = Program(
    SUM,
    SUM_CHECK
    + "import os\nassert sorted(int(each) for each in os.listdir('/proc') if each.isdigit()) == [1, os.getpid()]\n"
    "assert os.listdir('.') == [] and {'warm', 'program'} <= set(os.listdir('/tmp')) and len(os.listdir('/tmp')) <= 3\n"
    "assert os.listdir('/dev/shm') == []",
)  # passes where neither a process nor a file of another program is left
SHORT = 0.2  # a second of processor time, for that is the least, and less than three of wall time
WALLS = [level for level in sandbox.LEVELS if level != "limits"]


def outcome(source: str, check: str = SUM_CHECK, **fields) -> Outcome:
    return outcomes([Program(source, check, **fields)])[0]


def outcomes(programs: Sequence[Program], processes: int = 1, **how) -> list[Outcome]:
    found = dict(sandbox.run(programs, processes, **how))
    return [found[place] for place in range(len(programs))]


@pytest.fixture(scope="module", params=WALLS)
def wall(request) -> sandbox.Level:
    if lack := sandbox.available(request.param):
        pytest.skip(f"{request.param} cannot be had here: {lack}")
    return request.param


# Verdicts


def test_an_answer_that_satisfies_its_check_passes():
    assert outcome(SUM).verdict == "passed"


ENDS = [
    ("def plus(a, b):\n    return a - b\n", "failed"),
    ("def minus(a, b):\n    return a - b\n", "failed"),
    ("def plus(a, b:\n", "syntax error"),
    ("def plus(a, b):\n    return '\0'\n", "syntax error"),
    ("def plus(a, b):\n    return '\ud800'\n", "syntax error"),
    ("x = " + "(" * 100_000, "syntax error"),
    ("import no_such_module\n" + SUM, "import error"),
    ("while True: pass", "timeout"),
    ("import time; time.sleep(1000)", "timeout"),
    ("x = [0] * (10 << 30)", "memory"),
    ("x = bytearray(10 << 30)", "memory"),
    ("", "no code"),
    (" \n", "no code"),
    ("raise SystemExit", "failed"),
]


@pytest.fixture(scope="module")
def ends() -> list[Outcome]:
    """Each out of the same warm parents, so that none spoils what comes behind it."""
    return outcomes([Program(source, SUM_CHECK, seconds=SHORT, memory=512 << 20) for source, _ in ENDS], 2)


@pytest.mark.parametrize("place", range(len(ENDS)), ids=[f"{source[:40]!r}-{verdict}" for source, verdict in ENDS])
def test_every_end_has_its_verdict(place: int, ends: list[Outcome]):
    assert ends[place].verdict == ENDS[place][1], ends[place]


def test_a_program_without_a_check_has_no_tests():
    assert outcome(SUM, check="").verdict == "no tests"


def test_a_check_that_is_no_python_is_the_judges_error():
    assert outcome(SUM, check="assert plus(1, 2 ==").verdict == "judge error"


def test_the_detail_says_where_it_went_wrong():
    found = outcome("def plus(a, b):\n    return a / 0\n")
    assert found.detail == "answer line 2, in plus: ZeroDivisionError: division by zero"


def test_a_hundred_thousand_tokens_are_an_answer():
    assert outcome(SUM + "x = 1\n" * 100_000).verdict == "passed"


def test_the_outcomes_are_told_by_place_and_the_same_however_many_run_at_once():
    programs = [HARMLESS, Program("x = 1", "assert x == 2"), Program("def f(", "f"), HARMLESS] * 4
    assert [each.verdict for each in outcomes(programs, 4)] == [each.verdict for each in outcomes(programs, 1)]


def test_lanes_share_out_what_is_to_be_imported_and_help_each_other_at_the_end():
    one, two, three = (sandbox.Warmth(Path("python"), (name,), None) for name in ("one", "two", "three"))
    waiting = sandbox.Waiting({one: [0, 1], two: [2], three: [3, 4, 5]})
    asked = [waiting.next(lane) for lane in (0, 1, 0, 1, 0, 1, 0)]
    assert asked == [(one, 0), (two, 2), (one, 1), (three, 3), (three, 4), (three, 5), None]


def test_a_program_reads_its_input_and_what_it_wrote_is_judged_outside():
    source = "if __name__ == '__main__':\n    print(sum(map(int, input().split())))\n    raise SystemExit"
    assert outcome(source, "", stdin="1 2 3\n", accepts="6\n".__eq__).verdict == "passed"
    assert outcome(source, "", stdin="1 2 4\n", accepts="6\n".__eq__).verdict == "failed"
    assert outcome(source + "(3)", "", stdin="1 2 3\n", accepts="6\n".__eq__).verdict == "failed"


def test_a_thread_that_the_main_program_does_not_wait_for_may_still_write():
    source = "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()"
    assert outcome(source, "", accepts="late\n".__eq__).verdict == "passed"


def test_without_input_there_is_none():
    assert "EOFError" in outcome("input()").detail


def test_files_lie_beside_the_program():
    check = "import helper\nassert helper.three == open('folder/three').read()"
    files = {"helper.py": b"three = '3'", "folder/three": b"3"}
    assert outcome("pass", check, files=files).verdict == "passed"


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "."])
def test_a_file_outside_the_folder_is_refused_before_anything_runs(name: str):
    with pytest.raises(ValueError, match="wanted a relative path"):
        outcome(SUM, files={name: b""})


def test_two_runs_draw_the_same_numbers_and_order_the_same_sets():
    source = "import random\nimport time\nprint(random.random(), {'a', 'b', 'c'}, hash('x'), time.tzname)"
    first, second = outcomes([Program(source, "1")] * 2, 2)
    assert first.output == second.output != ""


def test_modules_are_imported_before_the_clock_starts():
    found = outcome("import numpy\n" + SUM, modules=("numpy",))
    assert found.verdict == "passed" and found.seconds < 0.1


def test_a_module_that_is_not_there_is_said_for_every_program_that_wants_it():
    found = outcomes([Program(SUM, SUM_CHECK, modules=("no_such_module",))] * 2)
    assert [each.verdict for each in found] == ["import error"] * 2 and "no_such_module" in found[1].detail


def test_an_environment_that_was_not_built_says_how_to():
    with pytest.raises(sandbox.SandboxError, match="make env ENV=nowhere"):
        outcome(SUM, environment="nowhere")


def test_an_environment_is_its_interpreter():
    check = f"import sys; assert sys.executable == {sys.executable!r}, sys.executable"
    found = outcomes([Program("pass", check, environment="mine")], interpreters={"mine": Path(sys.executable)})
    assert found[0].verdict == "passed"


# Commands


TESTS = b"import mine\ndef test_plus():\n    assert mine.plus(1, 2) == 3\n"
PYTEST = ("{python}", "-m", "pytest", "-q", "test_mine.py")
SESSIONS = {
    "all tests pass": (SUM.encode(), TESTS),
    "a test fails": (b"def plus(a, b): return None", TESTS),
    "it ends when it is imported": (b"import os; os._exit(0)", TESTS),
    "it ends when it is called": (b"import os\ndef plus(a, b): os._exit(0)", TESTS),
    "it ends the session": (b"import pytest; pytest.exit('enough', 0)", TESTS),
    "there are no tests": (SUM.encode(), b"def nothing(): pass"),
}


def test_a_command_passes_by_its_status():
    argvs = [("{python}", "-c", "pass"), ("{python}", "-c", "raise SystemExit(2)"), ("no-such-command",)]
    found = outcomes([Program("", command=argv) for argv in argvs])
    assert [each.verdict for each in found] == ["passed", "failed", "failed"]


@pytest.fixture(scope="module")
def sessions() -> dict[str, Outcome]:
    programs = [
        Program("", command=PYTEST, files={"mine.py": mine, "test_mine.py": tests}, seconds=20)
        for mine, tests in SESSIONS.values()
    ]
    return dict(zip(SESSIONS, outcomes(programs, 2), strict=True))


@pytest.mark.parametrize("name", SESSIONS)
def test_only_a_session_of_pytest_that_came_to_its_end_with_all_tests_passed_is_a_pass(
    name: str, sessions: dict[str, Outcome]
):
    assert sessions[name].verdict == ("passed" if name == "all tests pass" else "failed"), sessions[name]


def test_a_tree_is_copied_for_each_program(tmp_path: Path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "old.py").write_text("x = 1")
    script = "import package.old as o; open('package/old.py', 'a').write('\\ny = 1'); assert not hasattr(o, 'y')"
    programs = [Program("", command=("{python}", "-c", script), tree=tmp_path)] * 2
    assert [each.verdict for each in outcomes(programs)] == ["passed"] * 2
    assert (tmp_path / "package" / "old.py").read_text() == "x = 1"
    changed = Program("", command=("{python}", "-c", "import package.old as o; assert o.x == 2"), tree=tmp_path)
    assert outcomes([changed._replace(files={"package/old.py": b"x = 2"})])[0].verdict == "passed"


# A pass is proved


WRONG = "def plus(a, b):\n    return None\n"
EARLY = "def plus(a, b):\n    {}\n"
CHEATS = {
    "os._exit": "import os; os._exit(0)",
    "os._exit in the check": EARLY.format("import os; os._exit(0)"),
    "sys.exit": "import sys; sys.exit(0)",
    "sys.exit in the check": EARLY.format("import sys; sys.exit(0)"),
    "quit": EARLY.format("quit()"),
    "a signal": EARLY.format("import os, signal; os.kill(os.getpid(), signal.SIGTERM)"),
    "exec of another program": EARLY.format("import os; os.execv('/bin/true', ['true'])"),
    "the child of a fork": EARLY.format("import os; os.fork() or os._exit(0); raise ValueError"),
    "atexit": "import atexit, os\natexit.register(os._exit, 0)\n" + WRONG,
    "an excepthook": "import sys, os\nsys.excepthook = lambda *_: os._exit(0)\n" + WRONG,
    "a thread that ends the process": "import os, threading\nthreading.Thread(target=os._exit, args=(0,)).start()\n"
    + WRONG,
    "no frames any more": EARLY.format("import sys; sys.setrecursionlimit(5); return plus(a, b)"),
    "the AssertionError": "import builtins\nclass AssertionError(BaseException): pass\n"
    "builtins.AssertionError = AssertionError\n" + WRONG,
    "a writer into all files": "import os\nfor each in range(200):\n    try: os.write(each, b'x' * 16 + b'[]')\n"
    "    except OSError: pass\n" + WRONG,
    "a reader of all files": "import os\nfor each in range(3, 200):\n    try:\n        os.set_blocking(each, False)\n"
    "        got = os.read(each, 999)\n    except OSError: continue\n    for other in range(3, 200):\n"
    "        try: os.write(other, got + b'[]')\n        except OSError: pass\n" + WRONG,
    "a closer of all files": EARLY.format("import os; os.closerange(3, 200)"),
    "frames": EARLY.format("import sys; return sys._getframe(1).f_code.co_consts[2]"),
    "frames by inspect": EARLY.format("import inspect; return inspect.stack()[1].frame.f_code.co_consts[2]"),
    "frames by a traceback": EARLY.format(
        "try: 1 / 0\n    except Exception as error: return error.__traceback__.tb_frame.f_back.f_code.co_consts[2]"
    ),
    "frames by walking": EARLY.format("import traceback; return [f for f, _ in traceback.walk_stack(None)][1].f_code"),
    "frames by a generator": EARLY.format("g = (g.gi_frame.f_back for _ in '1'); return list(g)"),
    "frames by a signal": EARLY.format(
        "import signal; got = []; signal.signal(signal.SIGUSR1, lambda n, f: got.append(f.f_back.f_code.co_consts))\n"
        "    signal.raise_signal(signal.SIGUSR1); return got[0][2]"
    ),
    "frames of all threads": EARLY.format("import sys; return sys._current_frames()"),
    "frames under a library's name": "import collections\n"
    "exec(compile('def plus(a, b):\\n    import sys; return sys._getframe(1)', collections.__file__, 'exec'))",
    "tracing": "import sys; sys.settrace(lambda *_: None)\n" + WRONG,
    "profiling": "import cProfile; p = cProfile.Profile(); p.enable()\n" + WRONG,
    "an audit hook": "import sys; sys.addaudithook(lambda *_: None)\n" + WRONG,
    "the collector": "import gc\nfor each in gc.get_objects(): pass\n" + WRONG,
    "raw memory": "import ctypes; ctypes.string_at(id(1), 8)\n" + WRONG,
    "its own memory file": "open('/proc/self/mem', 'rb')\n" + WRONG,
    "a library of C": "import ctypes; ctypes.CDLL(None)\n" + WRONG,
    "another check": "import builtins; builtins.exec = lambda *_: None; builtins.compile = lambda *_: None\n" + WRONG,
}


@pytest.fixture(scope="module")
def cheated() -> dict[str, tuple[Outcome, Outcome]]:
    """What each came to and what the next program did, all out of one warm parent."""
    found = outcomes([each for cheat in CHEATS.values() for each in (Program(cheat, SUM_CHECK, seconds=2), HARMLESS)])
    return dict(zip(CHEATS, zip(found[::2], found[1::2], strict=True), strict=True))


@pytest.mark.parametrize("name", CHEATS)
def test_ending_early_or_reaching_for_the_checker_is_no_pass(name: str, cheated: dict[str, tuple[Outcome, Outcome]]):
    own, after = cheated[name]
    assert own.verdict in ("failed", "refused") and after.verdict == "passed", own


@pytest.mark.parametrize(
    "name", [each for each in CHEATS if each.startswith("frames") and "signal" not in each and "generator" not in each]
)
def test_reaching_for_frames_is_refused(name: str, cheated: dict[str, tuple[Outcome, Outcome]]):
    assert cheated[name][0].verdict == "refused"


NEAR = (
    "import math\ndef near(a, b):\n    assert abs(a - b) < 1e-6\n    assert math.isclose(a, b)\n"
    "    assert len([a, b]) == 2\n"
)
NEAR_CHECK = NEAR + "near(plus(1, 2), 3)"


@pytest.mark.parametrize(
    "touch",
    [
        "abs = lambda x: 0",
        "def len(x): return 2",
        "import builtins; builtins.abs = lambda x: 0",
        "import math; math.isclose = lambda *_: True",
        "import sys, types; sys.modules['math'] = types.SimpleNamespace(isclose=lambda *_: True)",
        "globals()['__builtins__']['abs'] = lambda x: 0",
        "print = exit = open = isinstance = min = max = all = any = lambda *_: True",
    ],
)
def test_a_check_has_true_builtins_and_modules(touch: str):
    wrong, right = outcomes([Program(f"{touch}\n{body}", NEAR_CHECK) for body in (EARLY.format("return 2.9"), SUM)])
    assert wrong.verdict == "failed" and "AssertionError" in wrong.detail
    assert right.verdict == "passed"


def test_what_is_exchanged_while_the_check_runs_is_refused():
    source = EARLY.format("import math; math.isclose = lambda *_: True; return 4")
    assert outcome(source, "import math\nfound = plus(1, 2)\nassert math.isclose(found, 3)").verdict == "refused"
    source = EARLY.format("import fractions; fractions.Fraction.__eq__ = lambda *_: True; return 4")
    assert outcome(source, "from fractions import Fraction\nassert Fraction(3) == plus(1, 2)").verdict == "refused"


def test_what_the_check_itself_exchanges_is_not_held_against_the_answer():
    check = (
        "import time, unittest.mock\ntime.time = unittest.mock.Mock(return_value=3)\nassert plus(1, 2) == time.time()"
    )
    assert outcome(SUM, check).verdict == "passed"


def test_the_methods_of_classes_are_put_back_too():
    source = "import unittest; unittest.TestCase.assertEqual = lambda *_: None\n" + WRONG
    assert outcome(source, "import unittest\nunittest.TestCase().assertEqual(plus(1, 2), 3)").verdict == "failed"


def test_an_answer_may_be_called_like_a_builtin_if_that_is_what_is_tested():
    source, check = "def sum(a, b): return a + b", "assert sum(1, 2) == 3"
    assert outcome(source, check).verdict == "failed"
    assert outcome(source, check, tested=("sum",)).verdict == "passed"


def test_an_answer_may_do_what_libraries_do_with_frames():
    source = (
        "import collections, dataclasses, enum, logging, traceback, typing, warnings, functools\n"
        "P = collections.namedtuple('P', 'x y')\nclass Q(typing.NamedTuple):\n    x: int\n"
        "E = enum.Enum('E', 'a b')\n@dataclasses.dataclass\nclass D:\n    x: int = 1\n"
        "logging.warning('hm'); warnings.warn('hm')\n"
        "try: 1 / 0\nexcept Exception: traceback.print_exc()\n" + SUM
    )
    assert outcome(source).verdict == "passed"


def test_an_answer_cannot_read_the_check_before_it_has_run():
    source = (
        "import os\nfound = []\nfor each in os.listdir('/proc/self/fd'):\n    try:\n"
        "        found.append(os.pread(int(each), 100000, 0))\n    except OSError: pass\n"
        "for above, _, names in os.walk('.'):\n    for name in names:\n"
        "        found.append(open(os.path.join(above, name), 'rb').read())\n"
        "assert b'secret' not in b''.join(found) and 'secret' not in repr(vars())\n"
    )
    assert outcome(source + SUM, "secret = 'se' 'cret'\n" + SUM_CHECK).verdict == "passed"


# Nothing gets out


DEAF = (
    "import signal, time\nfor each in range(1, 32):\n"
    "    try: signal.signal(each, signal.SIG_IGN)\n    except OSError: pass\n"
)


def loose(folder: Path) -> dict[str, str]:
    """Programs that want to hurt, by what they do; folder is one that they know of outside."""
    return {
        "loop": "while True: pass",
        "print for ever": "while True: print('x' * 1000)",
        "print for ever and mind nothing": "while True:\n    try: print('x' * 1000)\n    except OSError: pass",
        "allocate": "x = []\nwhile True: x.append(bytearray(64 << 20))",
        "allocate in many processes": "import os, time\nfor _ in range(6): os.fork()\n"
        "x = b'x' * (100 << 20); time.sleep(9)",
        "fork bomb": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        "daemon": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        f"        time.sleep(0.3); open({str(folder / 'kept')!r}, 'w').write('daemon'); time.sleep(100)\n"
        f"    os._exit(0)",
        "delete": "import shutil\nfor each in ('/usr', '/etc', '/root', '/home', '/tmp', '/dev', '/proc', "
        f"{str(folder)!r}): shutil.rmtree(each, ignore_errors=True)",
        "delete by hand": f"import os; os.remove({str(folder / 'kept')!r})",
        "write outside": f"open({str(folder / 'kept')!r}, 'w').write('hurt')",
        "write everywhere": "import os\nfor above, folders, names in os.walk('/'):\n"
        "    if above == '/proc': folders.clear()\n"
        "    for name in [*names, 'new']:\n        try: open(os.path.join(above, name), 'a').write('hurt')\n"
        "        except OSError: pass",
        "socket": "import socket; socket.create_connection(('127.0.0.1', PORT), 1).send(b'out')",
        "socket to the world": "import urllib.request; urllib.request.urlopen('http://192.0.2.1/', timeout=1)",
        "kill the parent": "import os, signal; os.kill(os.getppid(), signal.SIGKILL)",
        "stop the parent": "import os, signal; os.kill(os.getppid(), signal.SIGSTOP)",
        "kill all": "import os, signal; os.kill(-1, signal.SIGKILL)",
        "kill the group": "import os, signal; os.killpg(0, signal.SIGKILL)",
        "fill the disk": "n = 0\nwhile True:\n    n += 1\n"
        "    with open(f'/tmp/{n}', 'wb') as f: f.write(bytes(32 << 20))",
        "fill it with names": "n = 0\nwhile n < 20000:\n    n += 1\n    open(f'{n}', 'w').close()",
        "a deep folder": "import os\nfor _ in range(1500): os.mkdir('d'); os.chdir('d')",
        "a closed folder": "import os; os.makedirs('a/b'); open('a/b/c', 'w'); os.chmod('a/b', 0); os.chmod('a', 0)",
        "loop through signals": f"{DEAF}while True: pass",
        "sleep through signals": f"{DEAF}while True: time.sleep(100)",
        "read its input for ever": "import sys\nwhile True:\n    sys.stdin.read(); open('/dev/stdin').read(); input()",
        "read what it cannot": "import os\nfor each in (0, 1, 2):\n"
        "    try: os.read(each, 1)\n    except OSError: pass\nos.open('/dev/tty', os.O_RDWR)",
        "allocate where no process holds it": "import os\n"
        "for each in range(200): os.posix_fallocate(os.memfd_create('x'), 0, 60 << 20)",
        "change the clock": "import time; time.clock_settime(time.CLOCK_REALTIME, 0)",
        "change the environment": "import os; os.environ['PATH'] = os.environ['PYTHONPATH'] = "
        "'/nowhere'; os.environ.clear()",
        "change the limits": "import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
        "change the user": "import os; os.setuid(0)",
        "mount": "import subprocess; subprocess.run(['mount', '-o', 'remount,rw', '/usr'], check=True)",
        "read the secrets": "print(open('/etc/shadow').read())",
        "change the modules": "import sys; sys.modules.clear(); import os",
        "crash": "import sys; sys.setrecursionlimit(1 << 30)\nclass A:\n"
        "    def __repr__(self): return repr([self])\nrepr(A())",
        "a broken error": "class E(Exception):\n    def __str__(self): raise E\nraise E",
        "odd output": "import sys; sys.stdout.buffer.write(bytes(range(256))); print('\\ud800')",
    }


WORKS = (
    "print for ever",
    "allocate",
    "allocate in many processes",
    "allocate where no process holds it",
    "fill it with names",
    "fill the disk",
)
"""These end by themselves, for which a loaded machine needs more than a SHORT time."""

LIMITED = (
    *("loop", "print for ever", "print for ever and mind nothing", "allocate", "allocate in many processes"),
    *(
        "fill it with names",
        "a deep folder",
        "loop through signals",
        "sleep through signals",
        "change the environment",
        "change the limits",
    ),
    *("change the modules", "crash", "a broken error", "odd output"),
)
"""These meet the limits and not the wall, so behind one wall it is as behind another."""


class Felt(NamedTuple):
    """What a program that wants to hurt came to, what the next one did, and what was then changed outside."""

    outcome: Outcome
    next: Outcome
    changed: list[str]


def hostile(name: str, source: str) -> Program:
    return Program(f"{source}\n{WRONG}", SUM_CHECK, seconds=3 if name in WORKS else SHORT, memory=256 << 20)


def of(name: str, felt: dict[str, Felt]) -> Felt:
    if name not in felt:
        pytest.skip("tried behind the strongest wall")
    return felt[name]


@pytest.fixture(scope="module")
def felt(wall: sandbox.Level, tmp_path_factory) -> dict[str, Felt]:
    """Every one of them, each followed by one that is harmless, all out of one warm parent."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "kept").write_text("whole")
    environment, now = dict(os.environ), time.time() - time.monotonic()
    found: dict[str, Felt] = {}
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.01)
        sources = {
            name: source.replace("PORT", str(server.getsockname()[1]))
            for name, source in loose(folder).items()
            if wall == sandbox.strongest() or name not in LIMITED
        }
        programs = [program for name, source in sources.items() for program in (hostile(name, source), ALONE)]
        results = sandbox.run(programs, 1, level=wall)
        before = leftovers()
        for name in sources:
            (_, own), (_, after) = next(results), next(results)
            changed = []
            try:
                server.accept()
                changed.append("somebody called")
            except TimeoutError:
                pass
            if os.listdir(folder) != ["kept"] or (folder / "kept").read_text() != "whole":
                changed.append("the folder outside")
            if dict(os.environ) != environment or abs(time.time() - time.monotonic() - now) > 1:
                changed.append("the environment or the clock")
            if leftovers() != before:
                changed.append("folders for temporary files")
            found[name] = Felt(own, after, changed)
        results.close()
    assert not warm_parents()
    return found


@pytest.mark.parametrize("name", loose(Path("x")))
def test_a_program_that_wants_to_hurt_hurts_nobody(name: str, felt: dict[str, Felt]):
    own = of(name, felt)
    assert own.outcome.verdict in ("failed", "refused", "timeout", "memory", "import error"), own.outcome
    assert own.next.verdict == "passed" and own.changed == []


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("loop", "timeout"),
        ("print for ever", "failed"),
        ("print for ever and mind nothing", "timeout"),
        ("allocate", "memory"),
        ("allocate in many processes", "memory"),
        ("allocate where no process holds it", "memory"),
        ("delete by hand", "failed"),
        ("write outside", "failed"),
        ("socket", "failed"),
        ("socket to the world", "refused"),
        ("kill the group", "failed"),
        ("loop through signals", "timeout"),
        ("sleep through signals", "timeout"),
        ("read its input for ever", "failed"),
        ("read what it cannot", "failed"),
        ("change the clock", "refused"),
        ("change the user", "refused"),
        ("read the secrets", "failed"),
    ],
)
def test_what_wants_to_hurt_has_its_verdict(name: str, verdict: str, felt: dict[str, Felt]):
    assert of(name, felt).outcome.verdict == verdict, felt[name].outcome


@pytest.mark.parametrize(
    "name", ["loop", "fork bomb", "daemon", "kill all", "print for ever", "fill the disk", "crash"]
)
def test_programs_that_run_beside_one_that_wants_to_hurt_pass(name: str, tmp_path: Path):
    many = "import os\nfor _ in range(20):\n    if os.fork() == 0: os._exit(0)\n" + SUM
    found = outcomes([hostile(name, loose(tmp_path)[name]), *[Program(many, SUM_CHECK)] * 20], 3)
    assert [each.verdict for each in found[1:]] == ["passed"] * 20


def test_the_world_of_a_program_is_empty_and_read_only(wall: sandbox.Level):
    source = (
        "import os\nprint(sorted(os.listdir('/home') if os.path.exists('/home') else []), "
        "os.listdir('.'), dict(os.environ))"
    )
    found = outcomes([Program(source, "1", stdin="")], level=wall)[0]
    assert found.verdict == "passed" and found.output.startswith("[] [] {")
    assert not [name for name in os.environ if name.startswith("PYTEST") and name in found.output]


def test_a_program_may_import_what_its_interpreter_brings_wherever_that_lies(wall: sandbox.Level):
    """Also where only root may read the folders above it."""
    found = outcomes([Program("import array, cmath, colorsys, heapq, wave\n" + SUM, SUM_CHECK)], level=wall)
    assert found[0].verdict == "passed", found[0]


def test_a_normal_user_has_the_same_walls(wall: sandbox.Level):
    if os.geteuid() != 0:
        pytest.skip("this is a normal user already")
    python = next((each for each in (Path("/usr/bin/python3"), Path("/usr/local/bin/python3")) if each.exists()), None)
    if python is None:
        pytest.skip("no interpreter that all users may read")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            sources = ["import os, signal; os.kill(os.getppid(), signal.SIGKILL)\n", "open('/usr/hurt', 'w')\n"]
            sources += ["import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"]
            programs = [
                each for source in sources for each in (Program(source + WRONG, SUM_CHECK, seconds=SHORT), HARMLESS)
            ]
            found = outcomes(programs, level=wall, interpreters={"": python})
            os.write(write, json.dumps([each.verdict for each in found]).encode())
        except BaseException as error:
            os.write(write, json.dumps([repr(error)]).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    verdicts = json.loads(os.read(read, 1 << 16))
    os.close(read)
    if "namespaces" in str(verdicts) or "bubblewrap cannot" in str(verdicts):
        pytest.skip(str(verdicts))
    assert verdicts[1::2] == ["passed"] * 3 and "passed" not in verdicts[::2]


def test_without_walls_limits_and_proofs_still_hold(tmp_path: Path):
    python = Path("/usr/bin/python3")
    if not python.exists():
        pytest.skip("no interpreter that all users may read")
    programs = [
        HARMLESS,
        Program("while True: pass", "1", seconds=SHORT),
        Program("import os; os._exit(0)", "1"),
        HARMLESS,
    ]
    found = outcomes(programs, level="limits", interpreters={"": python})
    assert [each.verdict for each in found] == ["passed", "timeout", "failed", "passed"]


def test_leaving_a_run_early_ends_what_runs():
    running = sandbox.run([HARMLESS] * 50, 2)
    next(running)
    running.close()
    assert not warm_parents()


def leftovers() -> set[str]:
    return {each for folder in ("/tmp", "/dev/shm") for each in os.listdir(folder) if each.startswith("coderet-")}


def warm_parents() -> list[str]:
    """The processes that this one started, as they are called; a fork is called like what it was forked from."""
    running = subprocess.run(["ps", "-eo", "args", "-ww"], capture_output=True, text=True).stdout
    return [line for line in running.splitlines() if f'"owner": {os.getpid()},' in line]


# The references pass (those of MBPP in answers/test_mbpp.py)


def test_the_reference_of_every_humaneval_problem_passes(real_data: Path):
    rows = read(real_data / "humaneval" / "HumanEval.jsonl.gz")
    programs = [
        Program(row["prompt"] + row["canonical_solution"], f"{row['test']}\ncheck({row['entry_point']})")
        for row in rows
    ]
    assert {each.verdict for each in outcomes(programs, 2)} == {"passed"} and len(programs) == 164
    nothing = [
        Program(row["prompt"] + "    return None\n", each.check) for row, each in zip(rows, programs, strict=True)
    ]
    assert {each.verdict for each in outcomes(nothing, 2)} == {"failed"}


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        pytest.skip(f"no {path}")
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_signals_of_the_judge_are_its_own():
    before = signal.getsignal(signal.SIGINT)
    outcome(SUM)
    assert signal.getsignal(signal.SIGINT) is before
