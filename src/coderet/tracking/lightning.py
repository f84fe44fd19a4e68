"""A Tracker as Lightning's Trainer wants it.

Lightning's own MLFlowLogger drops the signs that MLflow refuses, cuts params at 250 characters, calls the server at
every step, and ends the training when a resumed run's params have changed or the server has gone.
"""

from collections.abc import Mapping
from typing import Any

from coderet.tracking.tracker import Tracker

_STATUS = {"success": "FINISHED", "finished": "FINISHED", "failed": "FAILED"}


def logger(tracker: Tracker) -> Any:
    """What to hand to the Trainer as `logger`: False where the tracker is silent."""
    if not tracker.run_id:
        return False
    from lightning.pytorch.loggers.logger import Logger
    from lightning.pytorch.utilities import rank_zero_only

    class TrackerLogger(Logger):
        name = "mlflow"
        version = tracker.run_id

        @rank_zero_only
        def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
            tracker.params(params if isinstance(params, Mapping) else vars(params))

        @rank_zero_only
        def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
            tracker.metrics(metrics, step or 0)

        @rank_zero_only
        def finalize(self, status: str) -> None:
            tracker.close(_STATUS.get(status, status.upper()))

    return TrackerLogger()
