"""Pickles of plain data, read one record at a time and without running anything that they say.

`pickle.load` runs whatever code a file names and holds all of its objects at once; CodeSearchNet's are of 6 GB, from a
stranger. Here a small machine of our own goes through the opcodes as `pickletools` reads them. It knows numbers, texts,
bytes, lists, tuples, dicts and references among them. Whatever else an opcode asks for (a class, a call, an object's
state) is refused; nothing is imported or called. One exception is inert: a number of NumPy's is read over and stands as
OPAQUE.

The file is read twice: first for what is referred to again, then for the records, so that only that is kept in memory.
"""

import pickletools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import IO, Any

from coderet.records import DataError

OPAQUE = object()
INERT = {
    "numpy.core.multiarray scalar",
    "numpy._core.multiarray scalar",
    "numpy dtype",
    "_codecs encode",  # how protocol 2 writes bytes
}

_VALUES = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8"),
}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_PUTS = {"PUT", "BINPUT", "LONG_BINPUT"}
_GETS = {"GET", "BINGET", "LONG_BINGET"}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_SILENT = {"PROTO", "FRAME"}


def records(opened: Callable[[], AbstractContextManager[IO[bytes]]], place: str) -> Iterator[Any]:
    """The members of the list that a pickle holds, in order; opened opens it, place names it in errors.

    DataError if it names code, is cut short, or is no list: members before the flaw are given, so use none before all
    are there.
    """
    try:
        with opened() as content:
            again = {int(value) for name, value in _opcodes(content) if name in _GETS}
        with opened() as content:
            yield from _members(content, again, place)
    except DataError:
        raise
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError, MemoryError) as error:
        raise DataError(f"{place} is no whole pickle of plain data ({error}); fetch it again") from None


def _opcodes(content: IO[bytes]) -> Iterator[tuple[str, Any]]:
    return ((opcode.name, value) for opcode, value, _ in pickletools.genops(content))


def _members(content: IO[bytes], again: set[int], place: str) -> Iterator[Any]:
    """What the outermost list is given, as it is given."""
    outermost: list[Any] | None = None
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    memoised = 0

    def since_mark() -> list[Any]:
        start = marks.pop()
        items = stack[start:]
        del stack[start:]
        return items

    for name, value in _opcodes(content):
        if name in _VALUES:
            stack.append(value)
        elif name == "MEMOIZE" or name in _PUTS:
            index = memoised if name == "MEMOIZE" else int(value)
            memoised += 1
            if index in again:
                if stack[-1] is outermost:
                    raise DataError(f"{place} holds itself; wanted a list of records")
                memo[index] = stack[-1]
        elif name in _GETS:
            stack.append(memo[int(value)])
        elif name == "MARK":
            marks.append(len(stack))
        elif name in ("APPENDS", "APPEND", "LIST"):
            items = [stack.pop()] if name == "APPEND" else since_mark()
            if name == "LIST":
                stack.append(items)
            else:
                stack[-1].extend(items)
            if outermost is None and len(stack) == 1 and name == "LIST":
                outermost = stack[0]
            if outermost is not None and stack[-1] is outermost:
                yield from items
                outermost.clear()
        elif name in ("SETITEMS", "SETITEM", "DICT"):
            items = [stack.pop(-2), stack.pop()] if name == "SETITEM" else since_mark()
            if name == "DICT":
                stack.append({})
            stack[-1].update(zip(items[::2], items[1::2], strict=True))
        elif name == "EMPTY_LIST":
            stack.append([])
            if outermost is None and len(stack) == 1:
                outermost = stack[0]
        elif name == "EMPTY_DICT":
            stack.append({})
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name == "TUPLE":
            stack.append(tuple(since_mark()))
        elif name in _TUPLES:
            stack[-_TUPLES[name] :] = [tuple(stack[-_TUPLES[name] :])]
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            if name == "STACK_GLOBAL":
                value = f"{stack.pop(-2)} {stack.pop()}"
            if value not in INERT:
                raise DataError(
                    f"{place} names code, {value.replace(' ', '.')}, which a file of data has no use for; it was not "
                    "run: take the file away and fetch it from its authors"
                )
            stack.append(OPAQUE)
        elif name in ("REDUCE", "BUILD") and stack[-2] is OPAQUE:
            stack.pop()
        elif name == "STOP":
            if len(stack) != 1 or stack[0] is not outermost:
                raise DataError(f"{place} holds one {type(stack[-1]).__name__}; wanted a list of records")
        elif name not in _SILENT:
            raise DataError(f"{place} asks for {name}, which plain data never does; it was not run")
