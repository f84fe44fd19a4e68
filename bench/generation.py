"""Tokens a second of the generator in this process, against transformers' own loop and, where it is, a server of vLLM.

The same prompts (HumanEval's, with a context of other problems in front), greedy, each to the same limit. Seconds are
wall time, and beside them those of the processor, which a machine that is shared can be measured by. That batches of
one shape do not change what is written is counted: completions that equal those written alone.

    python bench/generation.py MODEL_FOLDER [--prompts 40] [--address http://127.0.0.1:8000/v1 --served smollm2]
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import torch

from coderet.benchmarks import humaneval
from coderet.corpora import sources
from coderet.generators.base import Completion, Prompt
from coderet.generators.local import Local
from coderet.generators.openai import OpenAI
from coderet.sampling import Sampling

FILES = Path(".work/bench/humaneval")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?", default=Path("models/generators/smollm2/model"))
    parser.add_argument("--files", type=Path, help="folder with HumanEval.jsonl.gz; fetched if not given")
    parser.add_argument("--prompts", type=int, default=40)
    parser.add_argument("--documents", type=int, default=2, help="other problems in front of each")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 8, 32, 64])
    parser.add_argument("--precisions", nargs="*", default=["auto", "fp32"])
    parser.add_argument("--address", help="of a server of vLLM with the same model")
    parser.add_argument("--served", default="smollm2", help="the model's name there")
    parser.add_argument("--server", type=int, help="its process on this machine, whose processor seconds are told")
    parser.add_argument("--no-transformers", action="store_true", help="leave transformers' own loop out")
    given = parser.parse_args()
    if not (given.model / "config.json").is_file():
        print(f"no model in {given.model}; run: dvc repro prepare-generator@smollm2")
        return
    prompts, sampling = asked(given), Sampling(max_new_tokens=given.tokens)
    baseline: list[Completion] = []
    for precision in given.precisions:
        for batch in given.batches:
            local = Local(given.model, precision=precision, batch=batch, cache_gigabytes=8)
            made = measured(f"local {precision} {batch:3}", lambda each=local: [*each.generate(prompts, sampling)])
            if batch == given.batches[0]:
                baseline = made
            equal = sum(a.text == b.text for a, b in zip(made, baseline, strict=True))
            print(f"    as with a batch of {given.batches[0]}: {equal} of {len(made)}")
        if not given.no_transformers:
            measured(f"transformers {precision}", lambda each=local: by_transformers(each, prompts, sampling, 32))
    if given.address:
        served = OpenAI(given.served, address=given.address, key_variable="", continues=True, concurrency=64)
        before = spent_by(given.server) if given.server else 0.0
        measured("vllm serve", lambda: [*served.generate(prompts, sampling)])
        if given.server:
            print(f"    processor seconds of the server: {spent_by(given.server) - before:.1f}")


def asked(given: argparse.Namespace) -> list[Prompt]:
    """HumanEval's problems, each behind the solutions of the problems after it."""
    if given.files is None and not FILES.exists():
        sources.fetch([humaneval.RELEASED.source], FILES)
    problems = humaneval.problems(given.files or FILES)
    solved = [each["prompt"] + each["canonical_solution"] for each in problems]
    return [
        Prompt(
            "\n".join(solved[place + 1 : place + 1 + given.documents]) + f"\n\nComplete:\n{problems[place]['prompt']}"
        )
        for place in range(given.prompts)
    ]


def measured(name: str, make: Callable[[], list[Completion]]) -> list[Completion]:
    wall, processor = time.perf_counter(), time.process_time()
    made = sorted(make())
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    written, read = sum(each.completion_tokens for each in made), sum(each.prompt_tokens for each in made)
    print(
        f"{name:24} {written} tokens after {read} read: {written / wall:6.0f} tokens/s, {wall:6.1f} s, processor "
        f"{processor:6.1f} s"
    )
    return made


def spent_by(process: int) -> float:
    """Processor seconds of a process and its children until now."""
    every = [psutil.Process(process)]
    every += every[0].children(recursive=True)
    return sum(times.user + times.system for times in (each.cpu_times() for each in every))


def by_transformers(local: Local, prompts: list[Prompt], sampling: Sampling, batch: int) -> list[Completion]:
    """`generate` of transformers in batches by length, padded on the left."""
    tokenizer, model = local._wording.tokenizer, local._model
    ids = [local._wording.ids(each) for each in prompts]
    order = sorted(range(len(ids)), key=lambda place: -len(ids[place]))
    made = []
    for start in range(0, len(order), batch):
        places = order[start : start + batch]
        longest = max(len(ids[place]) for place in places)
        padded = torch.full((len(places), longest), tokenizer.pad_token_id)
        for row, place in enumerate(places):
            padded[row, longest - len(ids[place]) :] = torch.tensor(ids[place])
        mask = torch.tensor([[0] * (longest - len(ids[place])) + [1] * len(ids[place]) for place in places])
        with torch.inference_mode():
            every = model.generate(
                padded, attention_mask=mask, max_new_tokens=sampling.max_new_tokens, do_sample=False
            )[:, longest:].tolist()
        for place, written in zip(places, every, strict=True):
            ends = [at for at, token in enumerate(written) if token in local._ends]
            count = ends[0] + 1 if ends else len(written)
            text = local._wording.said(ids[place], written[: count - bool(ends)])
            made.append(Completion(place, text, "stop", len(ids[place]), count))
    return made


if __name__ == "__main__":
    main()
