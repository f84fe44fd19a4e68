"""Lines that several processes append stand whole, one below the other."""

import subprocess
import sys
from pathlib import Path

from coderet import journal

WRITER = """
import sys
from pathlib import Path
from coderet import journal
for number in range(50):
    with journal.opened(Path(sys.argv[1])) as handle:
        journal.append(handle, (sys.argv[2] * 5000).encode())
"""


def test_lines_of_several_processes_do_not_mix(tmp_path):
    path, source = tmp_path / "new" / "lines", str(Path(__file__).parents[1] / "src")
    command = [sys.executable, "-c", WRITER, path]
    writers = [subprocess.Popen([*command, letter], env={"PYTHONPATH": source}) for letter in "ab"]
    assert [each.wait() for each in writers] == [0, 0]
    lines = path.read_text().splitlines()
    assert sorted(lines) == ["a" * 5000] * 50 + ["b" * 5000] * 50


def test_a_last_line_without_an_end_is_torn(tmp_path):
    path = tmp_path / "lines"
    told = []
    for content in (b"", b"whole\n", b"whole\nhal"):
        path.write_bytes(content)
        with journal.opened(path) as handle:
            told.append(journal.torn(handle))
    assert told == [False, False, True]
