import gzip
import io
import random
import tarfile
import zipfile

import pytest

from coderet.corpora import archives
from coderet.records import DataError

FILES = {"pkg/b.py": b"b", "pkg/a.py": b"a", "pkg/data.bin": b"\0"}


def tree(tmp_path, form):
    if form == "folder":
        for name, content in FILES.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(content)
        return tmp_path
    path = tmp_path / f"pkg-1.0.{form}"
    if form == "whl":
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in FILES.items():
                archive.writestr(name, content)
    else:
        with tarfile.open(path, "w:gz") as tarball:
            for name, content in FILES.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tarball.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("form", ["folder", "whl", "tar.gz"])
def test_members_come_by_name_whatever_holds_them(tmp_path, form):
    assert list(archives.members(tree(tmp_path, form), (".py",))) == [("pkg/a.py", b"a"), ("pkg/b.py", b"b")]


@pytest.mark.parametrize("form", ["folder", "whl", "tar.gz"])
def test_names_are_those_of_members_and_some_may_be_chosen(tmp_path, form):
    path = tree(tmp_path, form)
    assert archives.names(path, (".py",)) == ["pkg/a.py", "pkg/b.py"]
    assert list(archives.members(path, (".py",), ["pkg/b.py"])) == [("pkg/b.py", b"b")]
    assert list(archives.members(path, (".py",), [])) == []


@pytest.mark.parametrize("form", ["whl", "tar.gz"])
def test_an_archive_cut_short_is_an_error_that_names_it(tmp_path, form):
    path = tree(tmp_path, form)
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(DataError, match="cannot be read"):
        list(archives.members(path, (".py",)))


def test_a_file_is_found_plain_gzipped_and_inside_a_wheel(tmp_path):
    with pytest.raises(DataError, match=r"no x.jsonl or x.jsonl.gz under"):
        archives.find(tmp_path, "x.jsonl")
    with zipfile.ZipFile(tmp_path / "p-1.whl", "w") as archive:
        archive.writestr("p/x.jsonl.gz", gzip.compress(b"inside"))
    assert archives.find(tmp_path, "x.jsonl") == b"inside"
    (tmp_path / "x.jsonl").write_bytes(b"plain")
    assert archives.find(tmp_path, "x.jsonl") == b"plain"
    whole = gzip.compress(b"inside")
    (tmp_path / "y.jsonl.gz").write_bytes(whole[:10] + b"\xff" * 3 + whole[13:])
    with pytest.raises(DataError, match=r"y.jsonl.gz is not whole"):
        archives.find(tmp_path, "y.jsonl")


def test_of_two_members_of_one_name_the_last_counts(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tarball:
        for content in (b"old", b"new"):
            member = tarfile.TarInfo("a.py")
            member.size = 3
            tarball.addfile(member, io.BytesIO(content))
    assert list(archives.members(tmp_path / "a.tar.gz", (".py",))) == [("a.py", b"new")]


def test_a_tarball_is_unpacked_once_in_whatever_order_its_members_lie(tmp_path, monkeypatch):
    noise = random.Random(1).randbytes(2**16)  # which does not compress
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as tarball:
        for number in reversed(range(20)):
            member = tarfile.TarInfo(f"{number:02}.js")
            member.size = len(noise)
            tarball.addfile(member, io.BytesIO(noise))
    rewound = []
    rewind = gzip._GzipReader._rewind
    monkeypatch.setattr(gzip._GzipReader, "_rewind", lambda self: (rewound.append(1), rewind(self))[1])
    names = [name for name, _ in archives.members(tmp_path / "a.tgz", (".js",))]
    assert names == [f"{number:02}.js" for number in range(20)]
    assert len(rewound) <= 1  # when tarfile has looked what it is
