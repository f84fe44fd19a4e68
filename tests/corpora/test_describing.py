import pytest

from coderet.corpora.describing import description, prose

CODE = "def walk_tree(folder, n):\n    for name in listing(folder):\n        yield joined(folder, name, n)\n"
SAID = "Give every file below it, one after the other, folders first."


def described(text: str, names=("walk_tree", "Walker")) -> str:
    return description(text, CODE, names).text


def test_what_is_said_before_the_first_section_tag_or_example_is_the_description():
    for end in (
        "\n\nParameters\n----------\nfolder : str", "\n\nArgs:\n    folder: it", "\n:param folder: it", "\n@return it",
        "\n\n>>> walk_tree(1)", "\n\nReturns: all of it", "\n\nSome Heading\n============\nmore",
    ):  # fmt: skip
        assert described(SAID + end) == SAID


def test_blocks_of_code_and_directives_are_left_out():
    code, note = "\n\n    walk_tree(1)\n    more\n\n", "\n\n.. note::\n    folder is it\n\n"
    text = f"Give every file::{code}below it.{note}Folders come first."
    assert prose(text) == "Give every file: below it. Folders come first."


@pytest.mark.parametrize(
    ("said", "masked"),
    [
        ("walk_tree gives", "… gives"),
        ("A Walker gives", "A … gives"),
        ("Use `anything at all` or :meth:`~a.b` or ``c`` to give", "Use … or … or … to give"),
        ("Give os.path.join and some_name and camelCase and x1 and call()", "Give … and … and … and … and …"),
        ("The n best, e.g. a folder's", "The … best, e.g. a folder's"),
        ("name, folder and JSON", "name, folder and JSON"),
    ],
)
def test_names_are_masked_and_words_are_not(said, masked):
    rest = "every file below it, one after the other, with folders first."
    assert described(f"{said} {rest}") == f"{masked} {rest}"


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("Give all files.", "short"),
        ("Give a_b with c_d for e_f or g_h and so on with the i_j of it", "masked"),
        ("It does for name in listing folder yield joined folder name and so on.", "copied"),
    ],
)
def test_what_is_short_or_mostly_masked_or_repeats_the_code_is_none(said, cause):
    assert description(said, CODE, ["walk_tree"]) == ("", cause)


def test_a_long_description_ends_with_a_sentence():
    text = described(" ".join(["One sentence of these is said here again and again now."] * 30))
    assert text.endswith("now.") and len(text.split()) <= 120
