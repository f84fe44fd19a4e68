import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from coderet.corpora.licences import UNKNOWN, of_package


def wheel(path: Path, metadata: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/vendored/PKG-INFO", "License: of another\n")
        archive.writestr("a-1.dist-info/METADATA", metadata)
    return path


@pytest.mark.parametrize(
    ("metadata", "licence"),
    [
        ("Name: a\nLicense-Expression: MIT OR Apache-2.0\nLicense: other\n", "MIT OR Apache-2.0"),
        ("Name: a\nLicense: BSD-3-Clause\n", "BSD-3-Clause"),
        (
            "Name: a\nLicense: A whole\n text\nClassifier: License :: OSI Approved :: MIT License\n",
            "MIT License",
        ),
        ("Name: a\n\nLicense: in the description\n", UNKNOWN),
    ],
)
def test_the_licence_is_what_the_metadata_of_the_package_itself_say(tmp_path: Path, metadata: str, licence: str):
    assert of_package(wheel(tmp_path / "a-1-py3-none-any.whl", metadata)) == licence


def test_an_sdist_says_it_in_its_pkg_info(tmp_path: Path):
    content = b"Name: a\nLicense-Expression: MIT\n"
    with tarfile.open(tmp_path / "a-1.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("a-1/PKG-INFO")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    assert of_package(tmp_path / "a-1.tar.gz") == "MIT"


@pytest.mark.parametrize(
    ("metadata", "licence"),
    [('{"name": "a", "license": "ISC"}', "ISC"), ('{"license": {"type": "MIT"}}', UNKNOWN), ("no json", UNKNOWN)],
)
def test_a_package_of_npm_says_it_in_its_own_package_json(tmp_path: Path, metadata: str, licence: str):
    with tarfile.open(tmp_path / "a-1.tgz", "w:gz") as archive:
        for name, content in (
            ("package/lib/package.json", b'{"license": "other"}'),
            ("package/package.json", metadata.encode()),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    assert of_package(tmp_path / "a-1.tgz") == licence
