"""A server on this machine that speaks OpenAI's words of completions, and can be made to fail."""

import contextlib
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[[Any, dict[str, Any]], None]


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # a busy machine takes connections late, and one that is refused is asked for again


class Server:
    """behaviours: what it does with the next requests; after them it answers well, each with `told(payload)`.

    always: what it does with every request, in their place. most: requests that `slowly` let wait at the same time.
    times: when each came, in seconds. released: set when the server closes, for behaviours that wait.
    """

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.released = threading.Event()
        self.behaviours: list[Behaviour] = []
        self.always: Behaviour = well
        self.most = self._now = 0
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server._lock:
                    server.asked.append(payload)
                    server.paths.append(self.path)
                    server.headers.append(dict(self.headers))
                    server.times.append(time.monotonic())
                    behaviour = server.behaviours.pop(0) if server.behaviours else server.always
                with contextlib.suppress(OSError):
                    behaviour(self, payload)

            def log_message(self, *_: object) -> None: ...

            def waits(self, seconds: float) -> None:
                server._wait(seconds)

        self._http = _Http(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._http.server_port}/v1"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def _wait(self, seconds: float) -> None:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(seconds)
        with self._lock:  # before the answer, for who has that may ask again at once
            self._now -= 1

    def close(self) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()


def told(payload: dict[str, Any]) -> str:
    """What the imagined model answers: the last that it is told, the other way round."""
    said = payload["prompt"] if "prompt" in payload else payload["messages"][-1]["content"]
    return said[::-1]


def send(handler: Any, status: int, body: object, **headers: str) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(content)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(content)


def answer(payload: dict[str, Any], text: str | None, finish: str | None = "stop") -> dict[str, Any]:
    choice = {"text": text} if "prompt" in payload else {"message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    return {"choices": [choice | {"index": 0, "finish_reason": finish}], "usage": usage}


def well(handler: Any, payload: dict[str, Any]) -> None:
    send(handler, 200, answer(payload, told(payload)))


def saying(text: str | None, finish: str | None = "stop") -> Behaviour:
    return lambda handler, payload: send(handler, 200, answer(payload, text, finish))


def refusing(status: int, message: str = "no", **headers: str) -> Behaviour:
    return lambda handler, _: send(handler, status, {"error": {"message": message}}, **headers)


def slowly(handler: Any, payload: dict[str, Any]) -> None:
    handler.waits(0.2)
    well(handler, payload)


def cut_off(handler: Any, payload: dict[str, Any]) -> None:
    send_half(handler, answer(payload, told(payload)))


def send_half(handler: Any, body: object) -> None:
    content = json.dumps(body).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content[: len(content) // 2])
    handler.close_connection = True
