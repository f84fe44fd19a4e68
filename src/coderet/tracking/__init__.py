"""The log-book: MLflow told about training while it runs, and about results once they are files.

Nothing depends on it. MLflow is imported when something is written, not before.
"""

from coderet.tracking import entries
from coderet.tracking.lightning import logger
from coderet.tracking.logbook import Entry, Outcome, git_commit, log
from coderet.tracking.models import register
from coderet.tracking.names import allowed, original
from coderet.tracking.publishing import NotPushed, push
from coderet.tracking.server import BadAddress, Off, Unreachable
from coderet.tracking.tracker import TRAINING, Silent, Tracker, start

__all__ = [
    "TRAINING",
    "BadAddress",
    "Entry",
    "NotPushed",
    "Off",
    "Outcome",
    "Silent",
    "Tracker",
    "Unreachable",
    "allowed",
    "entries",
    "git_commit",
    "log",
    "logger",
    "original",
    "push",
    "register",
    "start",
]
