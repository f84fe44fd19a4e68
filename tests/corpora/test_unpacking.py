import io
import stat
import tarfile
import zipfile

import pytest

from coderet.corpora import unpacking
from coderet.corpora.unpacking import UnpackError, unpack


def tarball(path, *entries):
    """A .tar.gz of (name, content) files and of (name, type, target) links and the like."""
    with tarfile.open(path, "w:gz") as archive:
        for name, *rest in entries:
            info = tarfile.TarInfo(name)
            if len(rest) == 1:
                info.size = len(rest[0])
                archive.addfile(info, io.BytesIO(rest[0]))
            else:
                info.type, info.linkname = rest
                archive.addfile(info)
    return path


def zipped(path, *entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return path


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_wheel_is_unpacked_as_it_lies(tmp_path):
    archive = zipped(tmp_path / "a-1-py3-none-any.whl", ("a/__init__.py", b"x"), ("a-1.dist-info/METADATA", b"m"))
    assert unpack(archive, tmp_path / "out") == 2
    assert files(tmp_path / "out") == {"a/__init__.py": b"x", "a-1.dist-info/METADATA": b"m"}


def test_the_top_folder_of_a_source_distribution_is_taken_away(tmp_path):
    archive = tarball(tmp_path / "a-1.tar.gz", ("a-1", tarfile.DIRTYPE, ""), ("a-1/a/b.py", b"x"), ("a-1/PKG", b"y"))
    unpack(archive, tmp_path / "out")
    assert files(tmp_path / "out") == {"a/b.py": b"x", "PKG": b"y"}


def test_a_folder_of_the_same_name_inside_the_top_folder_survives(tmp_path):
    unpack(tarball(tmp_path / "a.tar.gz", ("a/a/b.py", b"x")), tmp_path / "out")
    assert files(tmp_path / "out") == {"a/b.py": b"x"}


def test_a_tarball_with_two_tops_keeps_both(tmp_path):
    unpack(tarball(tmp_path / "a.tar.gz", ("a/x", b"1"), ("b/x", b"2")), tmp_path / "out")
    assert files(tmp_path / "out") == {"a/x": b"1", "b/x": b"2"}


def test_a_top_folder_is_judged_by_all_members_not_by_those_kept(tmp_path):
    archive = tarball(tmp_path / "a.tar.gz", ("a/x.py", b"1"), ("setup.cfg", b"2"))
    unpack(archive, tmp_path / "out", keep=["*.py"])
    assert files(tmp_path / "out") == {"a/x.py": b"1"}


def test_only_members_that_are_kept_and_not_dropped_are_written(tmp_path):
    archive = zipped(tmp_path / "a.whl", ("a/x.py", b"1"), ("a/x.so", b"2"), ("a/tests/t.py", b"3"))
    assert unpack(archive, tmp_path / "out", keep=["*.py"], drop=["*/tests/*"]) == 1
    assert files(tmp_path / "out") == {"a/x.py": b"1"}


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/evil", "a/..", "..\\evil", "C:/evil", "C:evil"])
def test_a_tar_member_that_climbs_out_is_refused(tmp_path, name):
    with pytest.raises(UnpackError, match=r"a\.tar\.gz: member .*evil.* outside|a\.tar\.gz: member 'a/\.\.' .*outside"):
        unpack(tarball(tmp_path / "a.tar.gz", ("fine", b"1"), (name, b"x")), tmp_path / "in" / "out")
    assert not (tmp_path / "evil").exists() and not (tmp_path / "in" / "evil").exists()


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/evil"])
def test_a_zip_member_that_climbs_out_is_refused(tmp_path, name):
    with pytest.raises(UnpackError, match="evil"):
        unpack(zipped(tmp_path / "a.whl", (name, b"x")), tmp_path / "in" / "out")
    assert not (tmp_path / "evil").exists() and not (tmp_path / "in" / "evil").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("target", ["/etc/passwd", "../../secret"])
def test_a_link_that_leads_out_is_refused(tmp_path, kind, target):
    with pytest.raises(UnpackError, match="link 'a/link' leads out"):
        unpack(tarball(tmp_path / "a.tar.gz", ("a/link", kind, target)), tmp_path / "out")


def test_a_file_cannot_be_written_through_a_link(tmp_path):
    archive = tarball(tmp_path / "a.tar.gz", ("a", tarfile.SYMTYPE, "b"), ("a/x", b"1"), ("b/y", b"2"))
    unpack(archive, tmp_path / "out")
    assert files(tmp_path / "out") == {"a/x": b"1", "b/y": b"2"}
    assert not (tmp_path / "out" / "a").is_symlink()


def test_a_link_inside_becomes_a_copy_of_what_it_points_at(tmp_path):
    archive = tarball(
        tmp_path / "a.tar.gz",
        ("a/soft", tarfile.SYMTYPE, "../b/x"),
        ("b/x", b"1"),
        ("a/hard", tarfile.LNKTYPE, "b/x"),
        ("a/nowhere", tarfile.SYMTYPE, "gone"),
    )
    unpack(archive, tmp_path / "out")
    assert files(tmp_path / "out") == {"a/soft": b"1", "b/x": b"1", "a/hard": b"1"}
    assert not any(path.is_symlink() for path in (tmp_path / "out").rglob("*"))


def test_a_link_in_a_zip_that_leads_out_is_refused(tmp_path):
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(UnpackError, match="link 'link' leads out"):
        unpack(zipped(tmp_path / "a.zip", (info, "/etc/passwd")), tmp_path / "out")


def test_a_device_is_refused(tmp_path):
    with pytest.raises(UnpackError, match="'a' is a device"):
        unpack(tarball(tmp_path / "a.tar.gz", ("a", tarfile.FIFOTYPE, "")), tmp_path / "out")


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "MAX_BYTES", 999)
    with pytest.raises(UnpackError, match="more than 999 bytes unpacked"):
        unpack(zipped(tmp_path / "a.whl", ("a", b"0" * 500), ("b", b"0" * 500)), tmp_path / "out")
    with pytest.raises(UnpackError, match="more than 999 bytes unpacked"):
        unpack(tarball(tmp_path / "a.tar.gz", ("a", b"0" * 1000)), tmp_path / "out")


def test_links_count_as_what_they_unpack_to(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "MAX_BYTES", 999)
    entries = [("a", b"0" * 500), ("b", tarfile.LNKTYPE, "a")]
    with pytest.raises(UnpackError, match="more than 999 bytes unpacked"):
        unpack(tarball(tmp_path / "a.tar.gz", *entries), tmp_path / "out")


def test_too_many_members_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "MAX_MEMBERS", 1)
    with pytest.raises(UnpackError, match="more than 1 members"):
        unpack(zipped(tmp_path / "a.whl", ("a", b""), ("b", b"")), tmp_path / "out")


@pytest.mark.parametrize("name", ["a.whl", "a.tar.gz"])
def test_a_truncated_archive_is_no_sound_archive(tmp_path, name):
    make = zipped if name.endswith("whl") else tarball
    whole = make(tmp_path / name, ("a.py", bytes(range(256)) * 400)).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnpackError, match=r"not a sound archive|could not be unpacked"):
        unpack(tmp_path / name, tmp_path / "out")


def test_a_file_where_a_folder_must_be_is_an_error_not_a_crash(tmp_path):
    with pytest.raises(UnpackError, match="could not be unpacked"):
        unpack(zipped(tmp_path / "a.whl", ("a", b"1"), ("a/b", b"2")), tmp_path / "out")
