import errno

import pytest

from coderet import stage


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "data/runs"), "make room and run it again"),
        (OSError(errno.EFBIG, "File too large"), "raise that limit and run it again"),
        (RuntimeError("I/O error: No space left on device (os error 28)"), "make room and run it again"),
        (OSError("7404 requested and 7136 written"), "make room and run it again"),
        (PermissionError(errno.EACCES, "Permission denied", "data/runs"), "the right to write there"),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", "data/raw/b/x"), "move it away"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "data/raw/b/x"), "move it away"),
        (FileExistsError(errno.EEXIST, "File exists", "data/raw/b"), "move it away"),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_what_a_person_can_mend_is_said_without_a_traceback(monkeypatch, capsys, error, said):
    def main() -> None:
        """A stage."""
        raise error

    monkeypatch.setattr("sys.argv", ["search.py"])
    monkeypatch.delenv("CODERET_TRACEBACK", raising=False)
    with pytest.raises(SystemExit):
        stage.run(main)
    assert said in capsys.readouterr().err


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch):
    def main() -> None:
        """A stage."""
        raise FileNotFoundError(errno.ENOENT, "No such file", "data/runs")

    monkeypatch.setattr("sys.argv", ["search.py"])
    with pytest.raises(FileNotFoundError):
        stage.run(main)


@pytest.mark.parametrize(("given", "taken"), [(["a"], ("a", "1")), (["a", "5"], ("a", "5")), (["a", ""], ("a", "1"))])
def test_arguments_that_have_a_default_may_be_left_out_or_be_empty(monkeypatch, given, taken):
    seen = []

    def main(one: str, every: str = "1") -> None:
        """A stage."""
        seen.append((one, every))

    monkeypatch.setattr("sys.argv", ["selfcheck.py", *given])
    stage.run(main)
    assert seen == [taken]
