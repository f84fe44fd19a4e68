"""coderet trains code retrievers and scores them end to end.

`src/coderet` says how, the stage scripts in `train/` and `eval/` say when. See docs/architecture.md.
"""

__version__ = "0.1.0"
