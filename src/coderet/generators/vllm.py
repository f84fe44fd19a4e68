"""vLLM in this process as a generator: many prompts at once, equal beginnings read once, over several GPUs.

For an environment that has vLLM (`make vllm`); it pins a torch of its own, so that the suite's has not. There, run the
generate stage with that environment's Python; from the suite's, serve the model and take the kind `openai`.
"""

import hashlib
import importlib.util
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from coderet.corpora import sources
from coderet.generators import stretching
from coderet.generators.base import Completion, Layout, Prompt, parted
from coderet.generators.wording import Worded, Wording
from coderet.records import DataError
from coderet.registry import BadValue
from coderet.sampling import Sampling

_COMMIT = re.compile(r"[0-9a-f]{40}")


class Vllm(Worded):
    """kind `vllm`.

    layout, window: as of `local`. precision: of vLLM's names; auto is the model's own. parallel: GPUs that share the
    model. memory: share of a GPU's memory. prefix_caching: equal beginnings of prompts are read once. eager: no graphs
    are captured, which starts sooner and runs slower. rope: as of `local`, `dynamic` too.
    """

    def __init__(
        self,
        place: str,
        revision: str | None = None,
        *,
        layout: Layout | None = None,
        window: int | None = None,
        precision: Literal["auto", "bfloat16", "float16", "float32"] = "auto",
        parallel: int = 1,
        memory: float = 0.9,
        prefix_caching: bool = True,
        eager: bool = False,
        rope: Mapping[str, Any] | None = None,
    ) -> None:
        scaling = stretching.checked(rope, (*stretching.KINDS, "dynamic"))
        if importlib.util.find_spec("vllm") is None:
            raise DataError(
                "this Python has no vLLM. Run this stage with that of `make vllm`, or serve the model from it and name "
                "the server in a generator of kind openai"
            )
        from vllm import LLM

        self._facts: list[Any] = [place if revision else sources.digest(Path(place)), revision, precision, parallel]
        self._facts += [eager]
        self._facts += [scaling] if scaling else []
        stretched: dict[str, Any] = {}
        if scaling:
            positions = stretching.stretched(place, scaling, revision).get_text_config().rope_parameters
            stretched = {"hf_overrides": {"rope_parameters": positions}}
        self._llm = LLM(
            model=place,
            revision=revision,
            dtype=precision,
            max_model_len=window,
            tensor_parallel_size=parallel,
            gpu_memory_utilization=memory,
            enable_prefix_caching=prefix_caching,
            enforce_eager=eager,
            **stretched,
        )
        self._wording = Wording(Path(place) if revision is None else _snapshot(place, revision), layout)
        self.layout = self._wording.layout
        self.window = int(self._llm.llm_engine.model_config.max_model_len)

    @classmethod
    def prepare(cls, work: Path, target: Path, *, model: str, revision: str | None = None) -> dict[str, Any]:
        """Write down which model: a folder, such as that of a generator of kind local, or a hub's id at a commit."""
        if revision is None and not Path(model).is_absolute() and not model.startswith(("models/", "./", "../")):
            raise BadValue(f"fit.model is {model!r} without a revision; wanted a folder, or a hub's id and the commit")
        if revision is not None and not _COMMIT.fullmatch(revision):
            raise BadValue(f"fit.revision is {revision!r}; wanted a commit of 40 digits, for names move")
        return {"model": model, "revision": revision}

    @classmethod
    def load(cls, folder: Path, fit: Mapping[str, Any], **settings: Any) -> "Vllm":
        """The generator that `prepare` wrote down; DataError if its model folder holds no model."""
        place, revision = str(fit["model"]), fit["revision"]
        if revision is None and not (Path(place) / "config.json").is_file():
            raise DataError(
                f"{folder} names the model folder {place}, which has no config.json; prepare that one first"
            )
        return cls(place, revision, **settings)

    @cached_property
    def identity(self) -> str:
        """Of the model's files or its commit, the layout, and how it is computed."""
        return hashlib.sha256(json.dumps(["vllm", *self._facts, self.layout]).encode()).hexdigest()

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> Iterator[Completion]:
        """All prompts wait in vLLM's own queue; each is given as soon as it is done."""
        from vllm import SamplingParams

        engine = self._llm.llm_engine
        stops: dict[int, list[str]] = {}
        for place, prompt in enumerate(prompts):
            ids, limit = self.fitting(place, prompt, sampling)
            stops[place] = list(dict.fromkeys((*prompt.stop, *sampling.stop)))
            drawn: dict[str, Any] = {} if sampling.greedy else {"top_p": sampling.top_p, "seed": prompt.seed(sampling)}
            wanted = SamplingParams(
                temperature=sampling.temperature,
                top_k=sampling.top_k or -1,
                max_tokens=limit,
                stop=stops[place] or None,
                **drawn,
            )
            engine.add_request(str(place), {"prompt_token_ids": ids}, wanted)
        try:
            while engine.has_unfinished_requests():
                for done in engine.step():
                    if done.finished:
                        yield self._completion(done, stops)
        finally:
            left = [str(place) for place in stops]
            engine.abort_request(left)

    def _completion(self, done: Any, stops: Mapping[int, Sequence[str]]) -> Completion:
        place, said = int(str(done.request_id).partition("-")[0]), done.outputs[0]
        text, stop = parted(self._wording.said(done.prompt_token_ids, said.token_ids), stops[place])
        read, written = len(done.prompt_token_ids), len(said.token_ids)
        return Completion(place, text, "stop" if stop else said.finish_reason, read, written, stop=stop)


def _snapshot(model: str, revision: str) -> Path:
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(model, revision=revision))
