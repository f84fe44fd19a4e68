import hashlib

import pytest

from coderet.corpora.pins import Source, SourceError, digest, parse

A = "a" * 64
REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (f"wheel:sympy==1.14.0#sha256={A}", "sympy"),
        (f"sdist:Zope.Interface==7.2.post1#sha256={A}", "zope-interface"),
        (f"npm:lodash==4.17.21#sha256={A}", "lodash"),
        (f"npm:@babel/core==8.0.0-beta.1#sha256={A}", "@babel+core"),
        (f"hub:sentence-transformers/all-MiniLM-L6-v2@{REVISION}", "all-MiniLM-L6-v2"),
        (f"hub:datasets/code-search-net/code_search_net@{REVISION}?include=*.json&include=a/*", "code_search_net"),
        (f"file:/somewhere/set.tar.gz#sha256={A}", "set"),
        (f"file:data#1#sha256={A}", "data#1"),
        (f"url:https://example.org/a/questions.jsonl.gz?raw=1#sha256={A}", "questions.jsonl.gz"),
        ("url:https://example.org/v1.0.zip", "v1.0"),
    ],
)
def test_a_line_names_a_source_and_the_source_the_line(spec, name):
    source = parse(spec)
    assert (str(source), source.name) == (spec, name)


def test_the_parts_of_a_wheel():
    assert parse(f"wheel:a==1#sha256={A.upper()}") == Source("wheel", "a", "a==1", A)


def test_no_name_leads_out_of_the_folder():
    assert parse("file:a/b/..").name == "a"
    assert parse("url:https://example.org/a/%2e%2e").name == "file"
    assert parse("url:https://example.org/%2e%2e%2fevil%00x").name == "evil_x"
    with pytest.raises(SourceError):
        parse(f"hub:a/..@{REVISION}")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (f"whel:a==1#sha256={A}", "known: wheel, sdist, npm, hub, file, url. Did you mean wheel?"),
        ("sympy", "begins with no known kind"),
        ("official", "is the only line of a benchmark's source"),
        ("wheel:a>=1", "not of the form wheel:<name>==<version>"),
        ("wheel:a[extra]==1", "not of the form"),
        ("npm:lodash@4.17.21", "not of the form npm:<name>==<version>"),
        ("npm:lodash==latest", "not of the form npm:"),
        ("npm:a/b==1", "not of the form npm:"),
        ("npm:@../b==1", "not of the form npm:"),
        ("wheel:a==1#sha256=abc", "64 hex digits, found 'abc'"),
        ("wheel:a==1#md5=abc", "only sha256"),
        ("hub:a/b@main", "a branch or a tag can move"),
        ("hub:a/b", "it names no commit; wanted hub:"),
        ("hub:a/b@<commit>?include=*.json", "a branch or a tag can move"),
        ("hub:a", "not of the form hub:"),
        (f"hub:a/b@{REVISION}?exclude=x", "'exclude=x' where include=... is wanted"),
        ("file:", "not of the form file:"),
        ("url:ftp://example.org/x", "not of the form url:https"),
    ],
)
def test_a_line_that_cannot_be_meant_is_refused(spec, message):
    with pytest.raises(SourceError) as error:
        parse(spec)
    assert message in str(error.value) and spec in str(error.value)


def test_the_digest_of_a_file_is_its_sha256(tmp_path):
    (tmp_path / "f").write_bytes(b"abc")
    assert digest(tmp_path / "f") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_the_digest_of_a_folder_is_that_of_its_sorted_paths_and_digests(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "b" / "x").write_bytes(b"1")
    (tmp_path / "a").write_bytes(b"2")
    one, two = hashlib.sha256(b"1").hexdigest(), hashlib.sha256(b"2").hexdigest()
    assert digest(tmp_path) == hashlib.sha256(f"a\0{two}\nb/x\0{one}\n".encode()).hexdigest()


def test_a_link_to_a_file_counts_as_the_file(tmp_path):
    (tmp_path / "plain").mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "plain" / "x").write_bytes(b"1")
    (tmp_path / "linked" / "x").symlink_to(tmp_path / "plain" / "x")
    assert digest(tmp_path / "linked") == digest(tmp_path / "plain")


def test_a_folder_with_a_link_to_a_folder_a_broken_link_or_nothing_has_no_digest(tmp_path):
    with pytest.raises(SourceError, match="holds no file"):
        digest(tmp_path)
    (tmp_path / "broken").symlink_to("gone")
    with pytest.raises(SourceError, match="broken link"):
        digest(tmp_path)
    (tmp_path / "broken").unlink()
    (tmp_path / "round").symlink_to(tmp_path)
    with pytest.raises(SourceError, match="link to a folder"):
        digest(tmp_path)
