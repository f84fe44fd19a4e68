"""Other texts for the same pair: a function's name as the query, questions made of doc comments, renamed variables.

The name as the query is CodeSearchNet's (Husain et al., 2019), with two of its faults mended: the name is looked for as
it stands in the code, not with its class in front, and it is masked by what no tokenizer reads as a word. Questions are
made by rules alone: people who search write no sentences, and they ask for what a function does, not what it says.

Every text is made once, before training; which of them stands for a pair in an epoch is drawn by `Draws`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from coderet.corpora import renaming
from coderet.words import code_words

MASK = "_"  # a name in every language, and no code word
QUESTIONS = 4  # forms that `questions` knows
POOL = 4096  # functions whose local names are what others are called by


def bare_name(qualified_name: str) -> str:
    """The function's own name: what stands behind the last dot."""
    return qualified_name.rsplit(".", 1)[-1]


def name_query(qualified_name: str, letters: int) -> str | None:
    """The words of a function's own name; None if the name is shorter than so many characters or has no word."""
    name = bare_name(qualified_name)
    words = code_words(name) if len(name) >= letters else []
    return " ".join(words) or None


def masked(code: str, qualified_name: str) -> str:
    """code with MASK wherever the function's own name stands alone, its calls of itself and comments included."""
    name = re.escape(bare_name(qualified_name))
    return re.sub(rf"(?<![\w$]){name}(?![\w$])", MASK, code)


def questions(query: str, language: str) -> list[str]:
    """Up to QUESTIONS ways to ask for what a doc comment says, none equal to it, the plainest first.

    The first sentence, in small letters, without its full stop and the marks of code, and with a verb of its beginning
    as a command (`Returns the name.` gives `return the name`); then `how to ...`, if it begins with a verb; then the
    language before it; then its telling words alone. What would be left with a single word is no question.
    """
    words = _first_sentence(query).lower().split()
    if words[:1] == ["this"] and len(words) > 2 and words[1] in _SELVES:
        words = words[2:]
    verb = _command(words[0]) if words else None
    if verb is not None:
        words[0] = verb
    plain = " ".join(words)
    telling = " ".join(word for word in words if word not in _FILLERS)
    forms = [plain, f"how to {plain}" if verb else "", f"{language} {plain}" if language else "", telling]
    wanted = dict.fromkeys(form for form in forms if len(form.split()) > 1 and form != query)
    return list(wanted) if len(words) > 1 else []


def asked(queries: Sequence[str], languages: Sequence[str], share: float, seed: int) -> list[str]:
    """queries, of which a share, drawn by seed, stand in one of the forms that `questions` makes of them."""
    rows, draws = np.arange(len(queries)), Draws(seed, 0)
    which = draws.of(rows, 1)
    texts = list(queries)
    for row in np.flatnonzero(draws.of(rows, 0) < share).tolist():
        forms = questions(queries[row], languages[row])
        if forms:
            texts[row] = forms[int(which[row] * len(forms))]
    return texts


def pool_of(codes: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The local names of some functions (code, language) by language, as often as functions have them."""
    pool: dict[str, list[str]] = {}
    for code, language in codes:
        found = renaming.local_names(code, language)
        pool.setdefault(language, []).extend(found.names if found else ())
    return pool


def renamings(code: str, language: str, count: int, pool: list[str], random: np.random.Generator) -> Iterator[str]:
    """count forms of code with other local names, drawn from pool; none where it has no local name."""
    found = renaming.local_names(code, language)
    for _ in range(count if found else 0):
        assert found is not None
        yield found.renamed(found.drawn(random, pool))


class Draws(NamedTuple):
    """Random numbers of a pair in an epoch: they follow from (seed, epoch, row, what) alone, whatever else is drawn."""

    seed: int
    epoch: int

    def of(self, rows: np.ndarray, what: int) -> np.ndarray:
        """As many float64 in [0, 1) as rows, by SplitMix64 (Steele et al., 2014), one stream for each what."""
        with np.errstate(over="ignore"):
            start: Any = np.uint64(0)
            for number in (self.seed, self.epoch, what):
                start = _mixed(start + np.uint64(number) + _GOLDEN)
            bits = _mixed(start + (rows.astype(np.uint64) + np.uint64(1)) * _GOLDEN)
        return np.asarray((bits >> np.uint64(11)) * 2.0**-53)


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mixed(bits: Any) -> Any:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _first_sentence(text: str) -> str:
    return _SENTENCE_END.split(text.replace("`", "").strip(), maxsplit=1)[0].rstrip(" .:;,!?")


def _command(word: str) -> str | None:
    """The verb that word is, as a command; None if it is none of _VERBS."""
    for verb in (word, word[:-1], word[:-2], f"{word[:-3]}y"):
        if verb in _VERBS and word in (verb, f"{verb}s", f"{verb}es", f"{verb[:-1]}ies"):
            return verb
    return None


_SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)[.!?;](?=\s|$)|\n\s*\n")
_SELVES = frozenset("function method class decorator helper routine procedure property generator wrapper".split())
_FILLERS = frozenset(
    "a an the this that these those of for to in on at by with from as is are be it its and or if into using given "
    "which whether".split()
)
_VERBS = frozenset(
    "accept access acquire activate adapt add adjust align allocate allow analyze append apply approximate assert "
    "assign attach authenticate begin bind block build bypass calculate call cancel capture cast change check "
    "choose clean clear clip clone close collapse collect combine commit compare compile complete compose "
    "compress compute concatenate configure connect construct consume contain control convert copy count cover "
    "create crop cut deactivate deal decide declare decode decompress decorate decrease decrypt deduplicate "
    "define delete deliver deploy derive describe deserialize destroy detach detect determine disable disconnect "
    "discover dispatch display divide do download draw drop dump duplicate emit enable encode encrypt end ensure "
    "enter enumerate escape establish estimate evaluate examine exclude execute exit expand export expose extend "
    "extract fail fetch fill filter find finish fit fix flatten flip flush force format forward free generate get "
    "give go group guess handle hash hide identify ignore implement import include increase increment indicate "
    "infer inherit initialize inject insert inspect install instantiate interpolate interpret invert invoke issue "
    "iterate join keep kill launch let limit list listen load locate lock log look lower make manage map mark "
    "mask match measure merge mix modify monitor mount move multiply normalize notify obtain open optimize order "
    "output overwrite pad parse pass patch perform permute pick plot populate post predict prepare prevent print "
    "process produce project prompt propagate provide prune publish pull purge push put query queue raise "
    "randomize rank read receive recompute record recover recreate redirect reduce refresh register reject "
    "release reload remove rename render reorder repeat replace report represent request require reset reshape "
    "resize resolve restart restore resume retrieve retry return reverse revert revoke rewrite roll rotate round "
    "route run sample save scale scan schedule score search select send separate serialize serve set setup shift "
    "show shuffle shut simplify simulate skip slice sleep solve sort specify split stack start stop store stream "
    "strip submit subtract suggest sum suppress swap switch synchronize take tell terminate test throw toggle "
    "tokenize trace track train transfer transform translate transpose traverse trigger trim truncate try turn "
    "unlock unpack unregister unset unwrap update upgrade upload use validate verify view visit visualize wait "
    "walk warn wrap write yield zip".split()
)
