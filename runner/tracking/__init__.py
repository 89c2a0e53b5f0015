"""MLflow as a derived view of a study folder: a run for the study, below it one for each cell, then for each trial.

Importing this package imports MLflow; only the study's own process does so, and only when tracking is on. Everything
sent is found again by its tags, so that sending twice changes nothing. MLflow has no unique runs: whatever opens or
sends a study does so while `writing`.
"""

import os

# A measurement should not be reported to anybody, nor wait for a network: before MLflow is imported.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")  # that a store was created is no news
# A server that hangs must not hold up the next trial: by itself MLflow would go on asking for a quarter of an hour.
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")

from mlflow.exceptions import MlflowException
from sqlalchemy.exc import SQLAlchemyError

from runner.errors import ConfigError
from runner.tracking.leftovers import end_leftovers
from runner.tracking.runs import StudyRuns, open_study
from runner.tracking.store import check
from runner.tracking.summary import send_summary
from runner.tracking.trial import send_missing, send_trial
from runner.tracking.writing import writing

# What sending raises when the store does not take it, whatever the reason.
STORE_ERRORS = (MlflowException, SQLAlchemyError, OSError, ConfigError)

__all__ = [
    "STORE_ERRORS",
    "StudyRuns",
    "check",
    "end_leftovers",
    "open_study",
    "send_missing",
    "send_summary",
    "send_trial",
    "writing",
]
