"""Guesses are what followed the same three tokens before, and are trusted as far as they were right."""

from coderet.generators.guessing import MOST, Echo


def trusting(ids, times=3):
    echo = Echo(ids)
    for _ in range(times):
        echo.checked(1, 1)
    return echo


def test_what_followed_the_last_three_tokens_is_guessed():
    assert trusting([1, 2, 3, 4, 5, 6, 1, 2, 3]).guess(3) == [4, 5, 6]


def test_nothing_is_guessed_where_they_never_stood_together():
    assert trusting([1, 2, 3, 4, 2, 3]).guess(3) == [] == Echo([1, 2]).guess(3)


def test_the_latest_place_counts():
    assert trusting([1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3]).guess(1) == [5]


def test_a_guess_goes_on_with_itself_where_the_text_ends():
    assert trusting([7, 8, 7, 8, 7, 8]).guess(5) == [7, 8, 7, 8, 7]


def test_trust_doubles_after_a_right_guess_and_falls_to_what_was_right():
    echo = Echo([1] * 20)
    lengths = []
    for right in (1, 2, 4, 8, 8, 3, 0):
        lengths.append(len(echo.guess(99)))
        echo.checked(lengths[-1], min(right, lengths[-1]))
    assert lengths == [1, 2, 4, 8, MOST, 8, 3] and len(echo.guess(99)) == 1
    echo.checked(0, 0)  # nothing was guessed, which says nothing
    assert len(echo.guess(99)) == 1


def test_no_more_is_guessed_than_asked_for():
    assert trusting([1] * 20).guess(2) == [1, 1] and trusting([1] * 20).guess(0) == []
