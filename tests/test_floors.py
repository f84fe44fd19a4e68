"""The floors of docs/architecture.md, read from the imports: each module imports from floors below its own only."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "coderet"
FLOORS = {
    "records": 0,
    "params": 0,
    "paths": 0,
    "registry": 0,
    "words": 0,
    "precision": 0,
    "serving": 0,
    "sampling": 0,
    "journal": 0,
    "encoders": 1,
    "indexes": 1,
    "generators": 1,
    "corpora": 1,
    "metrics": 1,
    "retrievers": 2,
    "training": 2,
    "benchmarks": 2,
    "stage": 3,
    "tracking": 3,
    "reports": 3,
}
# All stand on these.
OPEN_TO_ALL_ABOVE_AND_BESIDE = {"corpora", "metrics", "paths", "records", "registry", "words", "sampling", "journal"}
MAY_KNOW_ITS_NEIGHBOUR = {("training", "retrievers")}
HEAVY = {"torch", "transformers", "sentence_transformers", "faiss", "pyserini", "jnius", "mlflow", "lightning", "bm25s"}


def imports(path: Path) -> set[str]:
    """The modules that path imports, inside functions too; relative ones by their full names."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = path.relative_to(SOURCE.parent).parts[: -node.level] if node.level else ()
            module = ".".join([*above, *filter(None, [node.module])])
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


def family(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "coderet" and len(parts) > 1 and parts[1] in FLOORS else None


def library() -> list[tuple[str, Path]]:
    modules = []
    for path in sorted(SOURCE.rglob("*.py")):
        first = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if first != "__init__":
            modules.append((first, path))
    return modules


def scripts() -> list[Path]:
    return sorted([*(ROOT / "train").glob("*.py"), *(ROOT / "eval").glob("*.py")])


def test_every_family_has_a_floor():
    assert {first for first, _ in library()} <= set(FLOORS)


@pytest.mark.parametrize(("own", "path"), library(), ids=lambda each: str(getattr(each, "stem", each)))
def test_a_module_imports_only_from_floors_below_its_own(own: str, path: Path):
    for module in imports(path):
        other = family(module)
        if other is None or other == own or (own, other) in MAY_KNOW_ITS_NEIGHBOUR:
            continue
        below = FLOORS[other] < FLOORS[own]
        beside = FLOORS[other] == FLOORS[own] and other in OPEN_TO_ALL_ABOVE_AND_BESIDE
        assert below or beside, f"{path.name} ({own}, floor {FLOORS[own]}) imports {module} (floor {FLOORS[other]})"


@pytest.mark.parametrize("script", scripts(), ids=lambda path: path.stem)
def test_a_stage_script_imports_nothing_heavy(script: Path):
    assert not {module.split(".")[0] for module in imports(script)} & HEAVY


@pytest.mark.parametrize("script", scripts(), ids=lambda path: path.stem)
def test_what_a_stage_script_imports_at_the_top_brings_nothing_heavy_with_it(script: Path):
    code = (
        "import runpy, sys; "
        f"runpy.run_path({str(script)!r}, run_name='imported'); "
        f"print(' '.join(sorted({HEAVY!r} & set(sys.modules))))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == []


@pytest.mark.parametrize("script", scripts(), ids=lambda path: path.stem)
def test_a_stage_script_says_what_it_reads_and_writes(script: Path):
    doc = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    assert "\nreads " in doc and "\nwrites " in doc


@pytest.mark.parametrize("script", scripts(), ids=lambda path: path.stem)
def test_no_stage_script_is_named_like_a_module_of_the_standard_library(script: Path):
    assert script.stem not in sys.stdlib_module_names


def test_importing_the_package_brings_nothing_heavy_with_it():
    code = f"import sys, coderet; print(' '.join(sorted(({HEAVY!r} | {{'numpy', 'pyarrow'}}) & set(sys.modules))))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == []
