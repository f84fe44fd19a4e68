"""Pushed to a hub of this machine: a server with the few answers that a push asks for, which keeps what it is sent."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from coderet import tracking


class Hub(BaseHTTPRequestHandler):
    """Makes repositories and takes commits whose files lie in them; files and tokens are kept on the class."""

    files: dict[str, bytes]
    asked: list[tuple[str, str]]
    visibility: str
    refuse = False

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        type(self).asked.append((self.path, self.headers.get("Authorization", "")))
        if self.refuse:
            self.answer({"error": "not yours"}, 403)
        elif self.path == "/api/repos/create":
            type(self).visibility = json.loads(body)["visibility"]
            self.answer({"url": f"{self.address}/me/coder", "id": "me/coder", "name": "me/coder"})
        elif self.path == "/api/validate-yaml":  # the header of the card
            self.answer({"errors": [], "warnings": []})
        elif self.path.endswith("/preupload/main"):
            names = [each["path"] for each in json.loads(body)["files"]]
            self.answer({"files": [{"path": n, "uploadMode": "regular", "shouldIgnore": False} for n in names]})
        else:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    type(self).files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            commit = "0" * 40
            self.answer({"commitUrl": f"{self.address}/me/coder/commit/{commit}", "commitOid": commit})

    @property
    def address(self) -> str:
        return f"http://{self.headers['Host']}"

    def answer(self, content: object, status: int = 200) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch):
    kind = type("OneHub", (Hub,), {"files": {}, "asked": [], "visibility": ""})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    from huggingface_hub import constants, hf_api

    for place in (constants, hf_api.constants):
        monkeypatch.setattr(place, "ENDPOINT", address)
        monkeypatch.setattr(place, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    yield kind
    server.shutdown()
    server.server_close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "encoder" / "1_Pooling").mkdir(parents=True)
    for name in ("weights.safetensors", "1_Pooling/config.json", "README.md"):
        (tmp_path / "encoder" / name).write_bytes(name.encode() * 3)
    return tmp_path / "encoder"


def test_folder_and_card_become_one_commit_of_a_private_repository(hub, folder: Path):
    address = tracking.push(folder, "# With scores\n", "me/coder")
    assert hub.files == {
        "weights.safetensors": b"weights.safetensors" * 3,
        "1_Pooling/config.json": b"1_Pooling/config.json" * 3,
        "README.md": b"# With scores\n",
    }
    assert hub.visibility == "private" and address.endswith("/commit/" + "0" * 40)
    assert [path for path, _ in hub.asked].count("/api/models/me/coder/commit/main") == 1
    assert {token for _, token in hub.asked} == {"Bearer hf_secret"}


def test_without_a_token_nothing_is_sent(hub, folder: Path, monkeypatch: pytest.MonkeyPatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    with pytest.raises(tracking.NotPushed, match="set HF_TOKEN"):
        tracking.push(folder, "", "me/coder")
    assert not hub.asked


def test_a_hub_that_refuses_is_told_without_the_token(hub, folder: Path):
    hub.refuse = True
    with pytest.raises(tracking.NotPushed, match=r"did not take me/coder .*may write there") as refused:
        tracking.push(folder, "", "me/coder")
    assert "hf_secret" not in str(refused.value)


def test_a_name_that_is_none_is_refused(hub, folder: Path):
    with pytest.raises(tracking.NotPushed, match="wanted <owner>/<name>"):
        tracking.push(folder, "", "me/coder/too/deep")
