import random

import pytest

from coderet.metrics.needles import bleu, code_tokens, edit_similarity, similarity, token_f1, words


def distinct(number: int, first: int = 0) -> tuple[str, ...]:
    return tuple(f"t{each}" for each in range(first, first + number))


@pytest.mark.parametrize(("tokens", "wanted"), [(1, 1.0), (2, 0.22139), (3, 0.57572), (4, 1.0), (5, 1.0)])
def test_bleu_of_equal_texts_is_nltk_s(tokens, wanted):
    assert bleu(distinct(tokens), distinct(tokens)) == pytest.approx(wanted, abs=5e-6)


@pytest.mark.parametrize(("tokens", "wanted"), [(11, 0.90484), (41, 0.97531)])
def test_bleu_of_a_text_that_lacks_its_first_token_is_nltk_s(tokens, wanted):
    assert bleu(distinct(tokens)[1:], distinct(tokens)) == pytest.approx(wanted, abs=5e-6)


def test_bleu_of_the_right_forty_tokens_among_eighty_others_is_nltk_s():
    candidate = (*distinct(40, 1000), *distinct(40), *distinct(40, 2000))
    assert bleu(candidate, distinct(40)) == pytest.approx(0.32477, abs=5e-6)


def test_bleu_is_nothing_without_a_shared_token_or_without_tokens():
    assert bleu(("a",), ("b",)) == bleu((), ("b",)) == bleu(("a",), ()) == 0.0


def test_bleu_is_nltk_s_for_any_texts():
    from nltk.translate import bleu_score as translate

    smooth = translate.SmoothingFunction().method4
    draw = random.Random(1)
    for _ in range(200):
        candidate, reference = (draw.choices("abcde", k=draw.randint(1, 30)) for _ in range(2))
        wanted = translate.sentence_bleu([reference], candidate, smoothing_function=smooth)
        assert bleu(tuple(candidate), tuple(reference)) == pytest.approx(wanted)


def test_similarity_of_equal_texts_is_whole_however_short():
    assert similarity(("a", "b"), ("a", "b")) == 1.0
    assert similarity((), ()) == 0.0


def test_white_space_parts_words_and_does_not_part_code_tokens():
    assert words("a=b  c") == ("a=b", "c")
    assert code_tokens("a=b") == code_tokens("a = b") == ("a", "=", "b")


def test_edit_similarity_counts_tokens_to_change():
    assert edit_similarity("kitten", "sitting") == pytest.approx(1 - 3 / 7)
    assert edit_similarity("", "ab") == edit_similarity("ab", "") == 0.0
    assert edit_similarity("abc", "abc") == edit_similarity("", "") == 1.0


def test_token_f1_minds_no_order():
    assert token_f1("abc", "cab") == 1.0
    assert token_f1("aab", "abc") == pytest.approx(2 / 3)
    assert token_f1("", "a") == 0.0
