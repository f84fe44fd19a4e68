"""Any server that speaks OpenAI's words as a generator: `vllm serve`, llama.cpp's, Ollama, and those that cost money.

Nothing is asked before completions are wanted. Several requests are under way at once; each is timed out, tried again
with the server's own wait, and put down in a ledger before it is sent. A request that the server does not take (a
prompt too long, a refusal) is that prompt's failure, and the others go on; where one after the other is refused, or the
server is gone, no more are sent, what is still under way is awaited, and the error tells of it.

Stop strings beyond the four that OpenAI takes are honoured here. A server may change a model behind its name; kept
completions are those of the day they were asked for.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from coderet.corpora import sources
from coderet.generators.base import Completion, Layout, Prompt, parted
from coderet.records import DataError
from coderet.registry import BadValue, check_range
from coderet.sampling import Sampling
from coderet.serving import counting, spending
from coderet.serving.counting import Counter
from coderet.serving.server import Refused, Server, ServerError
from coderet.serving.spending import Ledger, SpendingLimit

__all__ = ["OpenAI", "ServerError", "SpendingLimit"]

STOPS = 4  # strings that OpenAI takes
REFUSALS = 8  # one after the other, before any was answered: it is not the prompts then
MARKS = 16  # tokens that a chat template puts around a message, at most
FINISHES = {"stop": "stop", "length": "length", "content_filter": "refused", "eos": "stop", None: "stop"}
MET = ("stop_reason", "matched_stop")  # what vLLM and SGLang call the stop string that was met, null if none was
BEGIN_WITH = "\n\nBegin your answer with these lines, as they stand:\n"


class OpenAI:
    """kind `openai`.

    model: its name on the server. address: of the server. key_variable: the environment variable that holds the key;
    the empty text for a server that wants none. layout: `chat` asks /chat/completions, `base` /completions. window:
    tokens of prompt and completion together, which the server must have. continues: the server goes on from the
    beginning of an answer, as vLLM does; without, the prompt asks for that beginning. max_tokens_name: what the server
    calls the limit of new tokens. extra: further fields of every request, as JSON text. concurrency: requests under way
    at once. token_limit and spend_limit: in all, the latter in the currency of price and price_written, those of a
    million tokens sent and written. timeout: seconds; tries: of a request; longest_wait: seconds, a server that asks
    for a longer one is not waited for.
    """

    def __init__(
        self,
        model: str,
        tokenizer: Path | None = None,
        *,
        address: str = "https://api.openai.com/v1",
        key_variable: str = "OPENAI_API_KEY",
        layout: Layout = "chat",
        window: int = 8192,
        continues: bool = False,
        top_k: bool = False,
        max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        extra: str = "",
        concurrency: int = 8,
        token_limit: int | None = None,
        spend_limit: float | None = None,
        price: float | None = None,
        price_written: float | None = None,
        timeout: float = 300.0,
        tries: int = 6,
        longest_wait: float = 120.0,
    ) -> None:
        self.layout, self.window = layout, window
        self._model, self._tokenizer, self._address = model, tokenizer, address
        self._continues, self._top_k, self._limit_name, self._extra = continues, top_k, max_tokens_name, _object(extra)
        self._concurrency = concurrency
        for name, value, low in (
            ("window", window, 2),
            ("concurrency", concurrency, 1),
            ("tries", tries, 1),
            ("timeout", timeout, 0.001),
            ("longest_wait", longest_wait, 0),
            ("token_limit", token_limit, 0),
            ("spend_limit", spend_limit, 0),
            ("price", price, 0),
            ("price_written", price_written, 0),
        ):
            if value is not None:
                check_range(name, value, low)
        if (price is None) != (price_written is None):
            raise BadValue(
                "of price and price_written only one is set; wanted both, what a million tokens cost, or none"
            )
        if spend_limit is not None and price is None:
            raise BadValue("spend_limit needs price and price_written, what a million tokens cost in the same currency")
        said = {"place": "the generator's settings", "done": "answered"}
        self._server = Server(address, key_variable or None, timeout, tries, longest_wait, **said)
        self.ledger = Ledger(
            spending.place(address, model),
            f"{model} at {self._server.host}",
            token_limit,
            spend_limit,
            price,
            price_written or 0.0,
            setting="the generator",
            done="answered",
        )

    @classmethod
    def prepare(cls, work: Path, target: Path, *, model: str, tokenizer: str | None = None) -> dict[str, Any]:
        """Write down the model's name, and keep a copy of its tokenizer in target.

        tokenizer: a pinned source (a spec of `corpora.sources`) that holds one tokenizer.json or <name>.tiktoken, all
        that the network is asked for. Without it a token is taken for one byte, so that packed prompts are shorter than
        they could be.
        """
        if tokenizer is None:
            return {"model": model, "tokenizer": None}
        sources.fetch([tokenizer], work)
        found = counting.find(work)
        shutil.copyfile(found, target / found.name)
        return {"model": model, "tokenizer": found.name}

    @classmethod
    def load(cls, folder: Path, fit: Mapping[str, Any], **settings: Any) -> "OpenAI":
        """The generator that `prepare` wrote down; DataError if its tokenizer is missing."""
        tokenizer = None if fit.get("tokenizer") is None else folder / str(fit["tokenizer"])
        if tokenizer is not None and not tokenizer.is_file():
            raise DataError(f"{folder} lacks {tokenizer.name}; prepare it again")
        return cls(str(fit["model"]), tokenizer, **settings)

    @cached_property
    def identity(self) -> str:
        """Of what completions depend on; limits, prices, concurrency and keys are no part of it."""
        facts = [self._address, self._model, self.layout, self._continues, self._top_k, self._extra]
        return hashlib.sha256(json.dumps(["openai", *facts], sort_keys=True).encode()).hexdigest()

    @property
    def spending(self) -> dict[str, float]:
        """What this process has spent, by name: api_requests, api_tokens, api_written_tokens, api_cost with a price."""
        mine = self.ledger.mine
        told: dict[str, float] = {
            "api_requests": mine.requests,
            "api_tokens": mine.tokens,
            "api_written_tokens": mine.written,
        }
        cost = self.ledger.cost(mine.tokens, mine.written)
        return told if cost is None else told | {"api_cost": cost}

    @property
    def template_tokens(self) -> int:
        """At most, where the server's template has no system message of its own."""
        return 2 * MARKS if self.layout == "chat" else MARKS

    def count_tokens(self, text: str) -> int:
        return self._counter.cut([text], None)[0].tokens - self._marks if text else 0

    def cut(self, text: str, tokens: int) -> str:
        if tokens <= 0:
            return ""
        if self._tokenizer is None:
            return text.encode()[:tokens].decode("utf-8", "ignore")
        return self._counter.cut([text], tokens)[0].text

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> Iterator[Completion]:
        waiting = iter(enumerate(prompts))
        under_way: dict[Future[Completion], int] = {}
        trouble: Exception | None = None
        refusals, answered = 0, False
        with ThreadPoolExecutor(self._concurrency) as pool:
            try:
                while True:
                    while trouble is None and len(under_way) < self._concurrency:
                        if (item := next(waiting, None)) is None:
                            break
                        under_way[pool.submit(self._one, *item, sampling)] = item[0]
                    if not under_way:
                        break
                    for done in wait(under_way, return_when=FIRST_COMPLETED).done:
                        place = under_way.pop(done)
                        try:
                            completion = done.result()
                            answered = True
                        except Refused as error:
                            refusals += 1
                            if not answered and refusals == REFUSALS:
                                trouble = trouble or error
                            completion = Completion(place, "", "failed", 0, 0, str(error))
                        except Exception as error:  # of the server or its ledger: no more are sent
                            trouble = trouble or error
                            continue
                        yield completion
            finally:  # nobody may want the rest
                for each in under_way:
                    each.cancel()
        if trouble is not None:
            raise trouble

    def _one(self, place: int, prompt: Prompt, sampling: Sampling) -> Completion:
        every = tuple(dict.fromkeys((*prompt.stop, *sampling.stop)))
        stops = sampling.stop if self._asks_for_start(prompt) else every
        path, payload = self._request(prompt, sampling, stops)
        sent = self.count_tokens(prompt.system + prompt.user + prompt.start) + 2 * MARKS
        answer = self._server.ask(path, payload, self.ledger, sent, sampling.max_new_tokens)
        used = answer.get("usage") if isinstance(answer, dict) else None
        read, written = _count(used, "prompt_tokens", sent), _count(used, "completion_tokens", sampling.max_new_tokens)
        self.ledger.settle(sent, read, 1, sampling.max_new_tokens, written)
        text, finish, met = self._said(answer, stops)
        if self._asks_for_start(prompt) and (rest := _without(text, prompt.start)) is not None:
            text, stops = rest, every
        shown, stop = parted(text, stops)
        finish = "stop" if stop and finish == "length" else finish
        return Completion(place, shown, finish, read, written, stop=stop or met)

    def _request(self, prompt: Prompt, sampling: Sampling, stops: Sequence[str]) -> tuple[str, dict[str, Any]]:
        asked: dict[str, Any] = {
            "model": self._model,
            self._limit_name: sampling.max_new_tokens,
            "temperature": sampling.temperature,
        }
        if not sampling.greedy:
            asked |= {"top_p": sampling.top_p, "seed": prompt.seed(sampling) % 2**31}
            asked |= {"top_k": sampling.top_k} if self._top_k and sampling.top_k else {}
        if stops:
            asked["stop"] = list(stops[:STOPS])
        if self.layout == "base":
            asked["prompt"] = prompt.system + prompt.user + prompt.start
            return "/completions", asked | self._extra
        user = prompt.user
        messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
        if self._asks_for_start(prompt):
            user += BEGIN_WITH + prompt.start
        messages.append({"role": "user", "content": user})
        if prompt.start and self._continues:
            messages.append({"role": "assistant", "content": prompt.start})
            asked |= {"add_generation_prompt": False, "continue_final_message": True}
        return "/chat/completions", asked | {"messages": messages} | self._extra

    def _asks_for_start(self, prompt: Prompt) -> bool:
        """Whether an answer may begin otherwise than it was asked to. A prompt's stop strings are for one that does not
        and could be met by the beginning itself, so that they are not sent then."""
        return bool(prompt.start) and self.layout == "chat" and not self._continues

    def _said(self, answer: Any, stops: Sequence[str]) -> tuple[str, str, str]:
        """Text, finish and stop string of an answer; ServerError if it holds none, for then none can be trusted."""
        try:
            choice = answer["choices"][0]
            text = choice["text"] if self.layout == "base" else choice["message"]["content"]
            finish = choice.get("finish_reason")
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ServerError(
                f"{self._server.host} gave an answer without a completion ({type(error).__name__}: {error}). Nothing "
                "of it is used; what was answered before is kept. Check model, address and layout and run again"
            ) from None
        if text is None:  # it wrote nothing, or would not
            text = ""
        if not isinstance(text, str):
            raise ServerError(f"{self._server.host} gave a completion that is no text; check address and layout")
        finish = FINISHES.get(finish, "stop") if isinstance(finish, str | None) else "stop"
        return text, finish, _met(choice, stops) if finish == "stop" else ""

    @cached_property
    def _counter(self) -> Counter:
        return counting.Bytes() if self._tokenizer is None else counting.read(self._tokenizer)

    @property
    def _marks(self) -> int:
        """What the counter adds for marks of its own, which a text inside a prompt has not."""
        return 0 if self._tokenizer is not None and self._tokenizer.suffix == ".tiktoken" else counting.MARKS


def _object(extra: str) -> dict[str, Any]:
    try:
        found = json.loads(extra or "{}")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BadValue(f'extra is {extra!r}; wanted a JSON object as text, such as \'{{"reasoning_effort": "low"}}\'')
    return found


def _count(used: Any, name: str, otherwise: int) -> int:
    """A number of tokens that the server charges for; where it says none, as many as could be."""
    found = used.get(name) if isinstance(used, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else otherwise


def _met(choice: Mapping[str, Any], stops: Sequence[str]) -> str:
    """The stop string that ended an answer; where the server does not say, the only one there was."""
    said = next((choice[name] for name in MET if name in choice), stops[0] if len(stops) == 1 else None)
    return said if isinstance(said, str) and said in stops else ""


def _without(text: str, start: str) -> str | None:
    """text without the beginning that it was asked for, which a server that does not go on from it repeats; None if it
    does not begin so."""
    bare, begun = text.lstrip(), start.strip()
    if not begun:
        return text
    return bare[len(begun) :] if bare.startswith(begun) else None
