"""dvc.yaml, params.yaml and paths.py say the same."""

import ast
import re
from pathlib import Path

import pytest
import yaml

from coderet import params, paths
from coderet.benchmarks import contexts

ROOT = Path(__file__).parents[1]
PIPELINE = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
PRESETS = sorted((ROOT / "presets").glob("*/params.yaml"))
MEMBER = re.compile(r"\$\{fusions\.([\w-]+)\.members\[(\d)\]\}")
ITEM = re.compile(r"\$\{item\.(\w+)\}")


def listed(stage: dict, key: str) -> set[str]:
    names = [each if isinstance(each, str) else next(iter(each)) for each in stage.get(key, [])]
    return {ITEM.sub(lambda found: found[1].upper(), name) for name in names}


def outs(name: str) -> set[str]:
    return listed(PIPELINE[name], "outs") | listed(PIPELINE[name], "metrics")


def test_every_stage_writes_where_paths_says():
    assert outs("fetch") == {str(paths.source("SOURCE"))}
    assert outs("gather") == {str(paths.raw("BENCHMARK"))}
    collected = {str(paths.benchmark("BENCHMARK") / part) for part in ("corpora", "queries", "qrels", "problems")}
    assert outs("collect") == collected | {str(paths.result("BENCHMARK", "collect"))}
    assert outs("mine") == {str(paths.PAIRS), str(paths.MINING_REPORT)}
    assert outs("vocabulary") == {str(paths.TOKENIZERS)}
    assert outs("fit") == {str(paths.retriever("RETRIEVER")), str(paths.training_result("RETRIEVER"))}
    assert outs("fit-on-negatives") == outs("fit")
    assert outs("negatives") == {str(paths.negatives("RETRIEVER")), str(paths.negatives_result("RETRIEVER"))}
    rescored = params.rescoring("RETRIEVER", "RESCORER")
    assert outs("rescore") == {str(paths.negatives(rescored)), str(paths.negatives_result(rescored))}
    assert outs("distil") == outs("fit")
    assert outs("prepare") == {str(paths.retriever("RETRIEVER"))}
    for stage, folder in (("index", paths.index), ("search", paths.runs)):
        result = paths.result("BENCHMARK", "RETRIEVER", stage)
        assert outs(stage) == {str(folder("BENCHMARK", "RETRIEVER")), str(result)}
    assert outs("tune-hybrid") == {str(paths.fusion("FUSION"))}
    assert outs("prepare-reranker") == {str(paths.reranker("RERANKER"))}
    reranked = params.reranking("RUN", "RERANKER")
    rerank = {str(paths.runs("BENCHMARK", reranked)), str(paths.result("BENCHMARK", reranked, "rerank"))}
    assert outs("rerank") == rerank
    assert outs("score") == {str(paths.scores("BENCHMARK", "RUN")), str(paths.result("BENCHMARK", "RUN", "score"))}
    assert outs("refer") == {str(paths.runs("BENCHMARK", each)) for each in contexts.REFERENCES}
    assert outs("prepare-generator") == {str(paths.generator("GENERATOR"))}
    answerer = params.answerer("CONTEXT", "GENERATOR")
    for stage, folder in (("generate", paths.completions), ("judge", paths.scores)):
        assert outs(stage) == {str(folder("BENCHMARK", answerer)), str(paths.result("BENCHMARK", answerer, stage))}
    assert outs("compare") == {str(paths.REPORT_HTML), str(paths.REPORT_MARKDOWN), str(paths.SUMMARY)}


def test_what_is_read_is_asked_by_the_stages_of_what_is_answered_over_lists_of_its_own():
    other = {"${grid.answered}": "${grid.read}", "${grid.contexts}": "${grid.reading}"}
    for name in OF_ANSWERED:
        own, read = (dict(PIPELINE[each]) for each in (name, f"{name}-needles"))
        assert own.pop("desc") != read.pop("desc")
        axes = own.pop("matrix").items()
        assert read.pop("matrix") == {axis: other.get(entries, entries) for axis, entries in axes}
        assert own == read


def test_every_fusion_of_the_grid_has_a_stage_of_its_own():
    for path in (ROOT / "params.yaml", *PRESETS):
        for name in params.read(path).grid.fusions:
            stage = PIPELINE[f"fuse-{name}"]
            assert outs(f"fuse-{name}") == {str(paths.runs("BENCHMARK", name))}
            assert f"fusions.{name}" in stage["params"]


def test_every_dependency_is_a_file_of_the_project_or_lies_on_the_way_to_some_stage_s_output():
    written = {each for name in PIPELINE for each in outs(name)}
    roots = {re.sub(r"/[A-Z]+(?=/|\.|$).*", "", each) for each in written}
    for name, stage in PIPELINE.items():
        for dependency in listed(stage, "deps"):
            if dependency.startswith("${code}/"):
                assert (ROOT / dependency.removeprefix("${code}/")).exists(), f"{name} depends on {dependency}"
            else:
                assert any(dependency.startswith(root) or root.startswith(dependency) for root in roots), dependency


def test_every_script_named_by_a_stage_is_among_its_dependencies():
    for name, stage in PIPELINE.items():
        script = re.search(r"\$\{code\}/\S+\.py", stage["cmd"])
        assert script and script[0] in stage["deps"], name


COMPUTES = {"benchmarks", "corpora", "encoders", "metrics", "reports", "training"}
ONLY_READS_WRITES_OR_TIMES = {"coderet.corpora.answered", "coderet.corpora.store", "coderet.metrics.efficiency"}


def test_what_a_script_computes_with_is_among_the_dependencies_of_its_stage():
    for name, stage in PIPELINE.items():
        script = ROOT / re.search(r"\$\{code\}/(\S+\.py)", stage["cmd"])[1]
        dependencies = [each.removeprefix("${code}/") for each in stage["deps"]]
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not node.module.startswith("coderet"):
                continue
            for module in (f"{node.module}.{alias.name}" for alias in node.names):
                if module.split(".")[1] not in COMPUTES or module in ONLY_READS_WRITES_OR_TIMES:
                    continue
                place = "/".join(["src", *module.split(".")])
                assert any(
                    place.startswith(each.removesuffix(".py")) or each.startswith(place) for each in dependencies
                ), f"{name} computes with {module} and does not depend on it: a change there would leave old results"


AXES = {  # of a stage whose retrievers are not those of grid.retrievers
    "fit": "trained",
    "fit-on-negatives": "trained_on_negatives",
    "distil": "distilled",
    "negatives": "negatives",
    "prepare": "untrained",
}
OF_ANSWERED = ("refer", "generate", "judge")
OF_READ = tuple(f"{each}-needles" for each in OF_ANSWERED)


def test_every_parameter_named_by_a_stage_exists():
    for path in (ROOT / "params.yaml", *PRESETS):
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
        axes = {
            "source": "sources",
            "benchmark": "benchmarks",
            "retriever": "retrievers",
            "reranker": "rerankers",
            "rescorer": "rescorers",
            "fusion": "fusions",
            "context": "contexts",
            "generator": "generators",
        }
        for name, stage in PIPELINE.items():
            for key in stage.get("params", []):
                for named in MEMBER.finditer(key):
                    key = key.replace(named[0], raw["fusions"][named[1]]["members"][int(named[2])])
                found = ITEM.search(key)
                axis = axes[found[1]] if found else None
                axis = "answered" if axis == "benchmarks" and name in OF_ANSWERED else axis
                axis = {"benchmarks": "read", "contexts": "reading"}.get(axis, axis) if name in OF_READ else axis
                members = raw["grid"][AXES.get(name, axis)] if axis else [""]
                members = raw["rerankers"] if axis == "rerankers" else members  # the grid may have none
                for member in members:
                    value = raw
                    for part in ITEM.sub(member, key).split("."):
                        assert part in value, f"{path}: {name} needs {ITEM.sub(member, key)}"
                        value = value[part]


@pytest.mark.parametrize("path", [ROOT / "params.yaml", *PRESETS], ids=lambda path: path.parent.name)
def test_every_list_that_is_crossed_stands_in_the_grid(path: Path):
    """DVC wants it even where the library has a default."""
    named = set(re.findall(r"\$\{grid\.(\w+)\}", (ROOT / "dvc.yaml").read_text(encoding="utf-8")))
    assert "tuned" in named and named <= set(yaml.safe_load(path.read_text(encoding="utf-8"))["grid"])


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.parent.name)
def test_a_preset_has_the_same_pipeline_and_points_to_the_same_code(preset: Path):
    assert (preset.parent / "dvc.yaml").read_text(encoding="utf-8") == (ROOT / "dvc.yaml").read_text(encoding="utf-8")
    assert (preset.parent / params.read(preset).code).resolve() == ROOT


def test_every_number_in_params_has_a_comment():
    number = re.compile(r"[:\[,]\s*-?\d[\d.e_-]*\s*(?:[,\]}]|$)")
    depth = re.compile(r"(?<=\{kind: )([\w-]+), depth: \d+(?=,)")  # said once, above the benchmarks of one line each
    for path in (ROOT / "params.yaml", *PRESETS):
        for place, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if number.search(depth.sub(r"\1", line.split(" # ")[0].rstrip())):
                assert " # " in line, f"{path.name}:{place} has a number and no comment: {line.strip()}"
