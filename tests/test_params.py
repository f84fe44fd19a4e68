from pathlib import Path

import pytest
import yaml

from coderet import params
from coderet.params import ParamsError

ROOT = Path(__file__).parents[1]


def changed(**changes):
    raw = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    for key, value in changes.items():
        target = raw
        *parents, last = key.split("__")
        for parent in parents:
            target = target[parent]
        target[last] = value
    return raw


def test_the_project_s_own_params_are_read():
    read = params.read(ROOT / "params.yaml")
    assert read.retrievers["bm25"].search == {"k1": 1.2, "b": 0.75}
    assert set(read.grid.learned) | set(read.grid.untrained) == set(read.grid.retrievers)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sede": 1}, "'sede' is not a known key. Did you mean seed?"),
        ({"mining__min_doc_token": 3}, "'min_doc_token' is not a known key. Did you mean min_doc_tokens?"),
        ({"seed": "13"}, "seed is '13'; wanted int"),
        ({"seed": True}, "seed is True; wanted int"),
        ({"scoring": 5}, "scoring is 5; wanted a mapping"),
        ({"grid__benchmarks": "pypi"}, "benchmarks is 'pypi'; wanted a list"),
        ({"grid__benchmarks": ["humanevla"]}, "grid.benchmarks names 'humanevla', .* Did you mean humaneval?"),
        ({"grid__untrained": ["bm25"]}, "exactly one of grid.trained"),
        ({"grid__runs": ["bm25"]}, "grid.runs must be grid.retrievers, grid.fusions and every"),
        ({"grid__negatives": ["minlm"]}, "grid.negatives names 'minlm', which is not under retrievers.*Did you mean"),
        (
            {"grid__trained": ["minilm-code"], "grid__trained_on_negatives": ["nbow"], "grid__negatives": ["nbow"]},
            "grid.negatives names 'nbow', which is in grid.trained_on_negatives and would wait for itself",
        ),
        (
            {"grid__trained": ["minilm-code"], "grid__trained_on_negatives": ["nbow"], "grid__negatives": ["minilm"]},
            "retrievers.nbow.fit.pairs.negatives is None; wanted one that .* give: minilm",
        ),
        ({"grid__reranked": ["bm25"]}, r"grid.reranked is \['bm25'\] and grid.rerankers \[\]; wanted names in both"),
        ({"grid__tuned": ["hybird"]}, "grid.tuned names 'hybird', which is not in grid.fusions"),
        ({"grid__tuned": ["rrf"]}, "fusions.rrf lacks `tune` and grid.tuned is"),
        ({"fusions__rrf__tune": {"grid": {"k": [10]}}}, "fusions.rrf has `tune` and grid.tuned is"),
        ({"grid__rerankers": ["gbe"]}, "grid.rerankers names 'gbe', .* Did you mean bge?"),
        (
            {"grid__reranked": ["bm52"]},
            "'bm52', which is not in grid.retrievers or grid.fusions; .* Did you mean bm25?",
        ),
        ({"rerankers__bge__top": 0}, "bge: top is 0; wanted a number from 1 to"),
        ({"rerankers__bge__below": "keeps"}, "rerankers.bge.below is 'keeps'; wanted drop or keep"),
        ({"rerankers__bge": {"kind": "cross-encoder", "tpo": 5}}, "rerankers.bge lacks top. Did you mean tpo?"),
        ({"rerankers__a+b": {"kind": "cross-encoder", "top": 5}}, "rerankers has an entry named 'a.b'; wanted letters"),
        ({"fusions__rrf__members": ["bm52-code", "minilm"]}, "names 'bm52-code', .* Did you mean bm25-code?"),
        ({"compare__baseline": "bm25-cod"}, "compare.baseline is 'bm25-cod', .* Did you mean bm25-code?"),
        ({"seed": -1}, "seed is -1; wanted a number from 0 to 4294967295"),
        ({"scoring__confidence": 1.5}, "confidence is 1.5; wanted a number from 0 to 1"),
        ({"scoring__confidence": float("nan")}, "confidence is nan; wanted"),
        ({"scoring__resamples": 0}, "resamples is 0; wanted a number from 1 on"),
        ({"compare__permutations": 0}, "permutations is 0; wanted"),
        ({"efficiency__batch_queries": 0}, "batch_queries is 0; wanted"),
        ({"benchmarks__pypi__depth": 0}, "pypi: depth is 0; wanted"),
        ({"mining__processes": 0}, "processes is 0; wanted"),
        ({"grid__benchmarks": []}, "grid.benchmarks is empty"),
        ({"fusions__rrf__members": []}, "fusions.rrf.members is .*; wanted 2 different retrievers"),
        ({"fusions__rrf__members": ["bm25", "bm25"]}, "fusions.rrf.members is .*; wanted 2 different retrievers"),
        ({"sources__../x": []}, "sources has an entry named '../x'; wanted letters"),
        ({"grid__answered": ["pypi2"]}, "grid.answered names 'pypi2', which is not in grid.benchmarks; .* mean pypi"),
        ({"grid__contexts": ["non"]}, "grid.contexts names 'non', .* Did you mean none?"),
        ({"grid__generators": []}, r"grid.generators \[\]; wanted names in all three"),
        ({"grid__reading": []}, r"grid.reading \[\] and grid.generators .* wanted names in all three"),
        ({"grid__reading": ["orcale"]}, "grid.reading names 'orcale', which is not under contexts; .* mean oracle"),
        ({"grid__read": ["pipy"]}, "grid.read names 'pipy', which is not in grid.benchmarks; .* Did you mean pypi?"),
        ({"grid__read": ["humaneval"]}, "'humaneval' is both in grid.answered and in grid.read; wanted in one"),
        ({"contexts__window-2k__run": "orcale"}, "contexts.window-2k.run is 'orcale', .* Did you mean oracle?"),
        ({"contexts__oracle__run": "orcale"}, "contexts.oracle.run is 'orcale', .* Did you mean oracle?"),
        ({"contexts__oracle__withheld": "in"}, "contexts.oracle.withheld is 'in'; wanted out or kept"),
        ({"contexts__oracle__documents": 0}, "documents is 0; wanted a number from 1"),
        ({"contexts__oracle__chunk": "last"}, "contexts.oracle.chunk is 'last'; wanted first or best"),
        ({"answering__passes": [1, 10]}, r"answering.passes names \[10\]; wanted numbers from 1 to .*: 1"),
        ({"benchmarks__pypi__answer_tokens": -1}, "answer_tokens is -1; wanted a number from 0"),
        ({"contexts__oracle__shows": "name"}, "contexts.oracle.shows is 'name'; wanted text or names"),
        (
            {"answering__sampling__samples": 5},
            "samples is 5 and temperature 0, so that all are",
        ),
        ({"answering__sampling__top_p": 2}, "answering: sampling: .*top_p is 2.* wanted a number from 0 to 1"),
        ({"answering__sampling__stop": "x"}, "answering: sampling: stop is 'x'; wanted a list"),
        ({"answering__sampling__stop": [""]}, "answering: sampling: .*stop holds the empty text"),
        ({"retrievers__none": {"kind": "lucene"}}, "'none' names a retriever or a fusion, and is .* a reference run"),
        ({"retrievers__bm25": {"knd": "lucene"}}, "retrievers.bm25 lacks kind. Did you mean knd?"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_nearest_known_name(changes, said):
    with pytest.raises(ParamsError, match=said):
        params.of(changed(**changes))


def test_every_reranked_run_is_one_of_the_runs_and_no_other():
    raw = changed(grid__reranked=["bm25", "rrf"], grid__rerankers=["bge"])
    raw["grid"]["runs"] = [*raw["grid"]["runs"], "bm25+bge"]
    with pytest.raises(ParamsError, match=r"found .*'bm25\+bge'\], wanted .*'bm25\+bge', 'rrf\+bge'\]"):
        params.of(raw)
    raw["grid"]["runs"].append("rrf+bge")
    read = params.of(raw)
    assert read.grid.rerankings == {"bm25+bge": ("bm25", "bge"), "rrf+bge": ("rrf", "bge")}
    spec = read.rerankers["bge"].spec("rrf")
    assert (spec["kind"], spec["of"], spec["top"], spec["max_tokens"]) == ("cross-encoder", "rrf", 100, 512)


def test_a_name_that_there_is_not_is_refused_with_the_nearest():
    read = params.read(ROOT / "params.yaml")
    with pytest.raises(ParamsError, match=r"retrievers has no entry 'bm52'; known: .* Did you mean bm25\?"):
        read.retrievers["bm52"]
    with pytest.raises(ParamsError, match="benchmarks has no entry 'package'"):
        read.benchmarks["package"]


def test_a_file_that_is_not_utf_8_is_refused(tmp_path):
    (tmp_path / "params.yaml").write_bytes("code: \u00e9".encode("latin-1"))
    with pytest.raises(ParamsError, match="save it as UTF-8"):
        params.read(tmp_path / "params.yaml")


def test_a_whole_number_may_stand_for_a_fraction():
    assert params.of(changed(scoring__confidence=1)).scoring.confidence == 1.0


def test_a_key_that_stands_twice_is_refused(tmp_path):
    (tmp_path / "params.yaml").write_text("seed: 1\nseed: 2\n")
    with pytest.raises(ParamsError, match="'seed' stands twice"):
        params.read(tmp_path / "params.yaml")


def test_a_missing_file_says_where_to_run(tmp_path):
    with pytest.raises(ParamsError, match="run from the folder that holds it"):
        params.read(tmp_path / "params.yaml")


def test_what_is_answered_and_what_is_read_is_asked_each_with_contexts_of_its_own():
    lists = {
        "answered": ["humaneval"],
        "contexts": ["none", "oracle"],
        "read": ["needles-pypi-small"],
        "reading": ["oracle"],
    }
    raw = changed(**{f"grid__{key}": value for key, value in lists.items()})
    grid = params.of(raw).grid
    assert grid.asked == (
        ("humaneval", "none", "smollm2"),
        ("humaneval", "oracle", "smollm2"),
        ("needles-pypi-small", "oracle", "smollm2"),
    )
    assert grid.answers == {"none+smollm2": ("none", "smollm2"), "oracle+smollm2": ("oracle", "smollm2")}


def test_a_benchmark_may_want_longer_answers():
    read = params.of(changed(benchmarks__humaneval__answer_tokens=7))
    assert read.sampled("humaneval").max_new_tokens == 7 and "answer_tokens" not in read.benchmarks["pypi"].settings
    assert read.sampled("pypi") == read.answering.sampling
