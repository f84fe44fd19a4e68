import os
import subprocess

import pytest

from coderet.corpora import git_objects
from coderet.records import DataError


def git(folder, *arguments):
    identity = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """A clone with two commits; the second changes a.py and takes b.py away."""
    folder = tmp_path / "project"
    (folder / "ä b").mkdir(parents=True)
    (folder / "a.py").write_bytes(b"one\r\n")
    (folder / "ä b" / "b.py").write_bytes(b"\xff\0 two")
    (folder / "empty.py").write_bytes(b"")
    os.symlink("a.py", folder / "link.py")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    (folder / "a.py").write_bytes(b"changed\n")
    (folder / "ä b" / "b.py").unlink()
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "second")
    return folder


def read(folder, commit):
    entries = git_objects.tree(folder, commit)
    found = git_objects.contents(folder, [each.blob for each in entries])
    return {each.path: content for each, content in zip(entries, found, strict=True)}


@pytest.mark.parametrize("bare", [False, True])
def test_files_are_as_they_were_at_the_commit_links_left_out(repository, bare, tmp_path):
    first = git(repository, "rev-parse", "HEAD~1")
    if bare:
        git(tmp_path, "clone", "-q", "--bare", "project", "bare")
        repository = tmp_path / "bare"
    before = sorted(path.name for path in repository.iterdir())
    assert read(repository, first) == {"a.py": b"one\r\n", "ä b/b.py": b"\xff\0 two", "empty.py": b""}
    assert read(repository, "HEAD") == {"a.py": b"changed\n", "empty.py": b""}
    assert sorted(path.name for path in repository.iterdir()) == before


def test_a_commit_or_a_content_that_is_not_there_is_refused(repository):
    with pytest.raises(DataError, match=r"does not give commit 0{40} .*put a full clone there"):
        git_objects.tree(repository, "0" * 40)
    with pytest.raises(DataError, match=r"lacks the content 1{40}"):
        list(git_objects.contents(repository, ["1" * 40]))


def test_a_folder_inside_a_repository_is_not_that_repository(repository):
    inside = repository / "ä b"
    inside.mkdir(exist_ok=True)
    with pytest.raises(DataError, match="not a git repository"):
        git_objects.tree(inside, "HEAD")


def test_what_the_environment_calls_the_repository_is_not_asked(repository, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert read(repository, "HEAD") == {"a.py": b"changed\n", "empty.py": b""}


def test_many_contents_are_read_without_waiting_for_each_other(repository):
    big = b"x" * 300_000
    for number in range(5):
        (repository / f"big{number}.py").write_bytes(big + str(number).encode())
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "big")
    found = read(repository, "HEAD")
    assert [found[f"big{number}.py"][-1:] for number in range(5)] == [b"%d" % number for number in range(5)]
