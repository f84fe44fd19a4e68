"""Functions that are copies, exactly or nearly, of each other or of a benchmark's documents.

The measure is that of CodeSearchNet's de-duplication (Allamanis, 2019, arXiv 1812.06469): the identifiers of a
function, less the keywords of its language; two functions are near copies if the Jaccard index of their identifier sets
and that of their multisets both reach a threshold. Candidates come from MinHash (datasketch), and every one is checked
exactly, so no false pair is ever reported; a true pair at the threshold itself is missed about twice in a thousand.

Unlike the original, a function with too few identifiers to compare is kept, for only an exact copy of it is a copy, and
of a group of copies the first in the given order stays, not an arbitrary one. Words in comments and strings count as
identifiers.
"""

import hashlib
import keyword
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from coderet.words import code_words

PERMUTATIONS, BANDS, ROWS_A_BAND = 80, 16, 5  # misses 0.2 % of pairs whose sets have a Jaccard index of 0.8
SEED = 1

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_FUNCTIONS_AT_A_TIME = 4096

KEYWORDS: dict[str, frozenset[str]] = {
    "python": frozenset(keyword.kwlist),
    "go": frozenset(
        "break case chan const continue default defer else fallthrough for func go goto if import interface "
        "map package range return select struct switch type var".split()
    ),
    "java": frozenset(
        "abstract assert boolean break byte case catch char class const continue default do double else enum "
        "extends false final finally float for goto if implements import instanceof int interface long native "
        "new null package private protected public return short static strictfp super switch synchronized "
        "this throw throws transient true try void volatile while".split()
    ),
    "javascript": frozenset(
        "async await break case catch class const continue debugger default delete do else export extends "
        "false finally for function if import in instanceof let new null return static super switch this "
        "throw true try typeof undefined var void while with yield".split()
    ),
    "php": frozenset(
        "abstract and array as break callable case catch class clone const continue declare default do echo "
        "else elseif empty extends false final finally fn for foreach function global if implements include "
        "include_once instanceof insteadof interface isset list namespace new null or print private protected "
        "public require require_once return static switch this throw trait true try unset use var while xor "
        "yield".split()
    ),
    "typescript": frozenset(
        "abstract any as async await boolean break case catch class const constructor continue debugger declare "
        "default delete do else enum export extends false finally for from function get if implements import in "
        "infer instanceof interface is keyof let module namespace never new null number object of override package "
        "private protected public readonly require return satisfies set static string super switch symbol this "
        "throw true try type typeof undefined unique unknown var void while with yield".split()
    ),
    "ruby": frozenset(
        "alias and begin break case class def defined do else elsif end ensure false for if in module next "
        "nil not or redo rescue retry return self super then true undef unless until when while yield".split()
    ),
}


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """The identifiers of N functions in columns.

    exact is (N,) 16 bytes each, equal for functions of equal tokens. Function i has the distinct identifiers
    identifiers[offsets[i]:offsets[i + 1]], hashed to ascending uint32, as often as counts says.
    """

    exact: np.ndarray
    offsets: np.ndarray
    identifiers: np.ndarray
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.exact)

    def of(self, place: int) -> tuple[np.ndarray, np.ndarray]:
        """Identifiers and counts of one function."""
        span = slice(self.offsets[place], self.offsets[place + 1])
        return self.identifiers[span], self.counts[span]

    def totals_of(self, places: Iterable[int]) -> list[int]:
        """Identifiers of some functions, every occurrence counted."""
        return [int(self.of(place)[1].sum()) for place in places]

    @property
    def totals(self) -> np.ndarray:
        """(N,) identifiers of each function, every occurrence counted."""
        return np.add.reduceat(np.append(self.counts, 0), self.offsets[:-1]) * (np.diff(self.offsets) > 0)

    @cached_property
    def bands(self) -> np.ndarray:
        """(BANDS, N) uint64: the bands of the functions' MinHashes, each mixed into one number.

        Different bands give equal numbers about once in 2**63, and then a pair is compared for nothing. Kept, because
        the same functions are held against many benchmarks.
        """
        from datasketch import MinHash

        empty = MinHash(num_perm=PERMUTATIONS, seed=SEED, hashfunc=int)
        factors = np.random.default_rng(SEED).integers(0, 2**64, ROWS_A_BAND, np.uint64) | np.uint64(1)
        bands = np.empty((BANDS, len(self)), np.uint64)
        for place in tqdm(range(len(self)), desc="fingerprints", unit="function", disable=None, mininterval=1):
            minhash = empty.copy()
            minhash.update_batch(self.of(place)[0].tolist())
            bands[:, place] = (minhash.hashvalues.astype(np.uint64).reshape(BANDS, ROWS_A_BAND) * factors).sum(1)
        return bands

    def take(self, places: np.ndarray) -> "Fingerprints":
        """Those of the functions in places, (M,) int, in that order."""
        sizes = np.diff(self.offsets)[places]
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        spans = np.repeat(self.offsets[places] - offsets[:-1], sizes) + np.arange(offsets[-1])
        taken = Fingerprints(self.exact[places], offsets, self.identifiers[spans], self.counts[spans])
        if "bands" in self.__dict__:
            taken.__dict__["bands"] = self.bands[:, places]
        return taken


@dataclass(frozen=True)
class Threshold:
    """When two functions are near copies; those of fewer identifiers than `identifiers` are compared exactly only."""

    set_jaccard: float = 0.8
    multiset_jaccard: float = 0.7
    identifiers: int = 10


def fingerprint(codes: pa.ChunkedArray, languages: pa.ChunkedArray) -> Fingerprints:
    """The fingerprints of functions; an unknown language has no keywords."""
    exact = np.empty(len(codes), "V16")
    sizes = np.zeros(len(codes) + 1, np.int64)
    identifiers, counts = array("I"), array("i")
    for place, (code, language) in enumerate(_rows(codes, languages)):
        exact[place] = hashlib.blake2b("\0".join(_TOKEN.findall(code)).encode(), digest_size=16).digest()
        found = Counter(_IDENTIFIER.findall(code))
        for word in KEYWORDS.get(language, ()):
            found.pop(word, None)
        hashes = np.fromiter((zlib.crc32(word.encode()) for word in found), np.uint32, len(found))
        distinct, inverse = np.unique(hashes, return_inverse=True)
        identifiers.frombytes(distinct.tobytes())
        counts.frombytes(np.bincount(inverse, list(found.values()), len(distinct)).astype(np.int32).tobytes())
        sizes[place + 1] = len(distinct)
    return Fingerprints(exact, np.cumsum(sizes), np.frombuffer(identifiers, np.uint32), np.frombuffer(counts, np.int32))


def first_copies(prints: Fingerprints, threshold: Threshold) -> tuple[np.ndarray, dict[str, int]]:
    """(N,) the first function of each one's group of copies, itself if it is the first, and the counts for the report.

    Groups are the connected components of "is an exact or near copy of".
    """
    parent = np.arange(len(prints))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    def join(one: int, other: int) -> None:
        low, high = sorted((root(one), root(other)))
        parent[high] = low

    _, first, inverse = np.unique(prints.exact, return_index=True, return_inverse=True)
    for place, same in enumerate(first[inverse].tolist()):
        if place != same:
            join(place, same)
    exact = int((parent != np.arange(len(parent))).sum())
    comparable = prints.totals >= threshold.identifiers
    places = np.flatnonzero((parent == np.arange(len(parent))) & comparable)
    bands = prints.bands[:, places]
    for number, found in enumerate(_Alike(bands).of(bands)):
        place = int(places[number])
        for other in places[found[found < number]].tolist():
            if root(other) != root(place) and near(prints.of(place), prints.of(other), threshold):
                join(place, other)
    roots = np.array([root(place) for place in range(len(parent))], np.int64)
    copies = int((roots != np.arange(len(roots))).sum())
    return roots, {
        "exact_copies": exact,
        "near_copies": copies - exact,
        "too_short_to_compare": int((~comparable).sum()),
    }


def copies_of(prints: Fingerprints, others: Fingerprints, threshold: Threshold) -> np.ndarray:
    """(N,) int64: for each function one among others that it is an exact or near copy of, -1 where there is none."""
    match = np.full(len(prints), -1, np.int64)
    if not len(prints) or not len(others):
        return match
    known, first = np.unique(others.exact, return_index=True)
    places = np.minimum(np.searchsorted(known, prints.exact), len(known) - 1)
    equal = known[places] == prints.exact
    match[equal] = first[places[equal]]
    known_places = np.flatnonzero(others.totals >= threshold.identifiers)
    alike = _Alike(others.bands[:, known_places])
    places = np.flatnonzero((match < 0) & (prints.totals >= threshold.identifiers))
    for place, found in zip(places.tolist(), alike.of(prints.bands[:, places]), strict=True):
        for other in known_places[found].tolist():
            if near(prints.of(place), others.of(other), threshold):
                match[place] = other
                break
    return match


def near(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray], threshold: Threshold) -> bool:
    """Whether two functions' identifiers and counts, as `Fingerprints.of` gives them, are those of near copies."""
    (ours, our_counts), (theirs, their_counts) = one, other
    if min(len(ours), len(theirs)) < threshold.set_jaccard * max(len(ours), len(theirs)):
        return False
    places = np.minimum(np.searchsorted(theirs, ours), len(theirs) - 1)
    shared = theirs[places] == ours
    common = int(shared.sum())
    if common < threshold.set_jaccard * (len(ours) + len(theirs) - common):
        return False
    smaller = int(np.minimum(our_counts[shared], their_counts[places[shared]]).sum())
    return smaller >= threshold.multiset_jaccard * (int(our_counts.sum()) + int(their_counts.sum()) - smaller)


def equal_texts(texts: pa.ChunkedArray, others: pa.ChunkedArray, min_words: int) -> np.ndarray:
    """(N,) int64: for each text one among others of the same words, -1 where none is or it has fewer than min_words."""
    known: dict[bytes, int] = {}
    for place, text in enumerate(_strings(others)):
        known.setdefault(_digest(code_words(text)), place)
    match = np.full(len(texts), -1, np.int64)
    for place, text in enumerate(_strings(texts)):
        words = code_words(text)
        if len(words) >= min_words:
            match[place] = known.get(_digest(words), -1)
    return match


def _digest(words: list[str]) -> bytes:
    return hashlib.blake2b(" ".join(words).encode(), digest_size=16).digest()


class _Alike:
    """Functions by the bands of their MinHash, in columns: sorted keys and whose they are, a row a band."""

    def __init__(self, bands: np.ndarray) -> None:
        self._owners = np.argsort(bands, axis=1, kind="stable").astype(np.int32)
        self._keys = np.take_along_axis(bands, self._owners, 1)

    def of(self, bands: np.ndarray) -> Iterator[np.ndarray]:
        """For each function with these bands (BANDS, N) those that have one in common with it, ascending."""
        for start in range(0, bands.shape[1], _FUNCTIONS_AT_A_TIME):
            part = bands[:, start : start + _FUNCTIONS_AT_A_TIME]
            low, high = (
                [np.searchsorted(keys, asked, side) for keys, asked in zip(self._keys, part, strict=True)]
                for side in ("left", "right")
            )
            for spans in zip(zip(*low, strict=True), zip(*high, strict=True), strict=True):
                found = [owners[a:z] for owners, a, z in zip(self._owners, *spans, strict=True) if a < z]
                yield np.unique(np.concatenate(found)) if found else np.empty(0, np.int32)


def _rows(codes: pa.ChunkedArray, languages: pa.ChunkedArray) -> Iterator[tuple[str, str]]:
    return zip(_strings(codes), _strings(languages), strict=True)


def _strings(column: pa.ChunkedArray) -> Iterator[str]:
    for chunk in column.chunks:
        yield from chunk.to_pylist()
