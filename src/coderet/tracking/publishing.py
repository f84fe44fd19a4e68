"""A trained encoder to a hub: its folder and its card as one commit of a repository, private unless asked otherwise.

The hub is huggingface.co or what HF_ENDPOINT names; the token is HF_TOKEN's, or the one that `hf auth login` kept. It
is never written or told.
"""

from pathlib import Path

CARD = "README.md"


class NotPushed(ConnectionError):
    """The hub did not take it: says what it answered and what to do."""


def push(folder: Path, card: str, repository: str, *, private: bool = True, message: str = "An encoder") -> str:
    """The address of the commit that makes repository hold the files of folder, card as its README.md.

    repository: <owner>/<name>, made if it is not there; one that is there stays as public or private as it is. Files of
    an earlier push that folder does not have stay. NotPushed where there is no token, or the hub refuses or is away.
    """
    import httpx2
    from huggingface_hub import CommitOperationAdd, HfApi, get_token
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    if get_token() is None:
        raise NotPushed("there is no token of the hub; make one that may write and set HF_TOKEN to it")
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    files.pop(CARD, None)
    operations = [CommitOperationAdd(name, str(path)) for name, path in files.items()]
    operations.append(CommitOperationAdd(CARD, card.encode("utf-8")))
    api = HfApi()
    try:
        name = api.create_repo(repository, private=private, exist_ok=True).repo_id
        return str(api.create_commit(name, operations, commit_message=message).commit_url)
    except HFValidationError as error:
        raise NotPushed(f"{repository!r} is no name of a repository ({error}); wanted <owner>/<name>") from None
    except ValueError as error:
        raise NotPushed(f"{api.endpoint} does not take the card: {error}") from None
    except (HfHubHTTPError, httpx2.HTTPError, OSError) as error:
        first = (str(error) or type(error).__name__).strip().splitlines()[0]
        raise NotPushed(
            f"{api.endpoint} did not take {repository} ({first}); is the token one that may write there?"
        ) from None
