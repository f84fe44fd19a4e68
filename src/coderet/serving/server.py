"""Requests to a server of JSON over HTTP: timed out, tried again with the server's own wait, counted in a ledger.

The key is read from the environment at the moment of asking, goes into one header and into nothing else: every word of
a server that could end in a message is searched for it before.
"""

import email.utils
import json
import os
import random
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase

from coderet.registry import BadValue
from coderet.serving.spending import Ledger

TRY_AGAIN = {408, 409, 425, 429, 500, 502, 503, 504, 529}
FIRST_WAIT, LAST_WAIT = 1.0, 20.0  # seconds before the second and before later tries, where the server names none
BLOCK = 2**16
WORDS_SHOWN = 300
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_TOO_MUCH = re.compile(r"token|too (?:long|large|many)|limit|maximum|exceed|length|size", re.IGNORECASE)
_SPENT_OUT = re.compile(r"insufficient_quota|billing", re.IGNORECASE)


class ServerError(ValueError):
    """A server that gave no answer, or one that cannot be used: says what it said and what to do."""


class Refused(ServerError):
    """The server does not take this request; it may take others."""


class TooMuch(Refused):
    """The server takes no request of this size; half of it may do."""


@dataclass(eq=False)
class _Trouble(Exception):
    """A try that failed and may be made again; wait: seconds that the server asks for; counted: it may cost."""

    what: str
    wait: float | None = None
    counted: bool = False


class Server:
    """The server at address (http or https, without a key in it).

    key_variable: the environment variable that holds the key, None where none is wanted. timeout: seconds for a
    connection, for the next bytes and for a whole answer. tries: of one request. longest_wait: seconds; a server that
    asks for a longer one is not waited for. place: where the server's settings stand in params.yaml, and done: what is
    done to texts there, for messages. Threads may ask at the same time.
    """

    def __init__(
        self,
        address: str,
        key_variable: str | None,
        timeout: float,
        tries: int,
        longest_wait: float,
        place: str = "fit.encoder",
        done: str = "encoded",
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadValue("address is no http or https address; wanted one such as https://api.openai.com/v1")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise BadValue(
                "address holds a user, a password or a query, which would be written into results; give key_variable "
                "the name of the environment variable that holds the key"
            )
        if key_variable is not None and not _VARIABLE.fullmatch(key_variable):
            raise BadValue(
                "key_variable is no name of an environment variable (wanted capital letters, digits and _): give the "
                "name, such as OPENAI_API_KEY, never the key itself"
            )
        self.host = parts.netloc
        self._address, self._key_variable = address.rstrip("/"), key_variable
        self._timeout, self._tries, self._longest_wait = timeout, tries, longest_wait
        self._place, self._done = place, done
        self._of_thread = threading.local()

    def ask(self, path: str, payload: Mapping[str, Any], ledger: Ledger, tokens: int, written: int = 0) -> Any:
        """The JSON that the server answers to payload; its tokens, at most so many, stay reserved in ledger.

        written: tokens that it may write at most. TooMuch if the server says that the request is too big, Refused if it
        does not take it, another ServerError if it takes none or all tries failed; SpendingLimit if the tokens are not
        left.
        """
        for attempt in range(1, self._tries + 1):
            ledger.reserve(tokens, written)
            try:
                return self._once(path, payload)
            except _Trouble as trouble:
                if not trouble.counted:
                    ledger.release(tokens, written)
                pause = self._pause(attempt, trouble.wait)
                if attempt == self._tries or pause is None:
                    tried = f"in {attempt} {'try' if attempt == 1 else 'tries'}"
                    asked = f" and asks to wait {trouble.wait:.0f} s" if trouble.wait and pause is None else ""
                    raise ServerError(
                        f"{self.host} gave no answer {tried}: {trouble.what}{asked}. What was {self._done} "
                        "before is kept: run the same stage again later, it goes on from there"
                    ) from None
                time.sleep(pause)
            except ServerError:
                ledger.release(tokens, written)
                raise
        raise AssertionError("tries is at least 1")

    def _pause(self, attempt: int, asked: float | None) -> float | None:
        """Seconds to wait before the next try; None where the server asks for more than is waited."""
        if asked is not None:
            return asked if asked <= self._longest_wait else None
        return min(LAST_WAIT, FIRST_WAIT * 2 ** (attempt - 1)) * random.uniform(0.5, 1)

    def _once(self, path: str, payload: Mapping[str, Any]) -> Any:
        key = self._key()
        if not hasattr(self._of_thread, "session"):
            self._of_thread.session = requests.Session()
        try:
            with self._of_thread.session.post(
                self._address + path,
                json=payload,
                auth=_Bearer(key),
                timeout=(self._timeout, self._timeout),
                allow_redirects=False,
                stream=True,
            ) as response:
                body = self._body(response)
                if response.status_code == requests.codes.ok:
                    return _parsed(body)
                self._refuse(response, body, key)
        except requests.ConnectTimeout:
            raise _Trouble(f"no connection within {self._timeout:g} s") from None
        except requests.Timeout:
            raise _Trouble(f"no answer within {self._timeout:g} s", counted=True) from None
        except requests.exceptions.SSLError:
            raise ServerError(f"{self.host} cannot be trusted: its certificate is not valid here") from None
        except requests.ConnectionError as error:
            broken = "Connection aborted" in str(error) or "Read timed out" in str(error)
            what = "the connection was cut off" if broken else "no connection: check the address and the network"
            raise _Trouble(what, counted=broken) from None
        except requests.RequestException:
            raise _Trouble("the answer broke off", counted=True) from None

    def _body(self, response: requests.Response) -> bytes:
        """The whole answer, within the time-out: each read has one of its own, so that drops would keep it up."""
        end, body = time.monotonic() + self._timeout, bytearray()
        for block in response.iter_content(BLOCK):
            body += block
            if time.monotonic() > end:
                raise _Trouble(f"no whole answer within {self._timeout:g} s", counted=True)
        return bytes(body)

    def _refuse(self, response: requests.Response, body: bytes, key: str | None) -> None:
        """Raise what a status other than 200 means."""
        status, said = response.status_code, _words(body, key)
        answered = f"answered {status}" + (f": {said}" if said else "")
        if status in (401, 403):  # what it says may hold a part of the key
            named = (
                f"the key in {self._key_variable}"
                if self._key_variable
                else "a request without a key: set key_variable"
            )
            raise ServerError(f"{self.host} answered {status}: it refuses {named}")
        if status == 429 and _SPENT_OUT.search(said) and "retry-after" not in response.headers:
            raise ServerError(f"{self.host} {answered}. The account has nothing left; what was {self._done} is kept")
        if status in TRY_AGAIN:
            raise _Trouble(f"it {answered}", _asked_wait(response.headers))
        if status == 413 or (status in (400, 422) and _TOO_MUCH.search(said)):
            raise TooMuch(f"{self.host} {answered}")
        kind = Refused if status in (400, 422) else ServerError
        raise kind(f"{self.host} {answered}. What was {self._done} before is kept; mend {self._place} and run again")

    def _key(self) -> str | None:
        if self._key_variable is None:
            return None
        key = os.environ.get(self._key_variable, "").strip()
        if not key:
            raise ServerError(
                f"the environment variable {self._key_variable} is not set; wanted the key of {self.host}"
            )
        if not key.isascii() or not key.isprintable():
            raise ServerError(f"what is in {self._key_variable} is no key: it holds letters that no header may have")
        return key


class _Bearer(AuthBase):
    """Sets the header itself, so that requests does not look for another key in a .netrc."""

    def __init__(self, key: str | None) -> None:
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):  # the latter: nested without end
        raise _Trouble("its answer is not whole JSON", counted=True) from None


def _words(body: bytes, key: str | None) -> str:
    """What a server says, on one line, cut short and without the key."""
    said = " ".join(body.decode("utf-8", "replace").split())
    if key:
        said = said.replace(key, "<key>")
    return said if len(said) <= WORDS_SHOWN else said[:WORDS_SHOWN] + "..."


def _asked_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait: retry-after-ms, or Retry-After in seconds or as a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if value.replace(".", "", 1).isdigit():
            return float(value) / unit
    try:
        return max(0.0, email.utils.parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (TypeError, ValueError, IndexError):
        return None
