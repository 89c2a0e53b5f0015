"""MLflow as a derived view of a study folder: a run for the study, below it one for each cell, then for each trial.

Importing this package imports MLflow; only the study's own process does so, and only when tracking is on. Everything
sent is found again by its tags, so that sending twice changes nothing. MLflow has no unique runs: whatever opens or
sends a study does so while `writing`.
"""

import logging
import os

# A measurement should not be reported to anybody, nor wait for a network: before MLflow is imported.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")  # that a store was created is no news
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")  # two lines a trial
# A server that hangs must not hold up the next trial: by itself MLflow would go on asking for a quarter of an hour.
# And no request is made twice: if only the answer to the first was lost, there would be two runs.
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")

from mlflow.exceptions import MlflowException
from sqlalchemy.exc import SQLAlchemyError

from runner.errors import ConfigError
from runner.tracking.files import send_files
from runner.tracking.leftovers import end_leftovers
from runner.tracking.names import masked
from runner.tracking.refused import why
from runner.tracking.runs import StudyRuns, kept, open_study
from runner.tracking.store import check, doubt, is_server
from runner.tracking.summary import send_summary
from runner.tracking.trial import send_missing, send_trial
from runner.tracking.writing import writing

# It prints a traceback of what it raises as well, and warns of what it does again: its callers here say what matters.
# After its import, which sets all its levels.
logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)

# What sending raises when the store does not take it, whatever the reason.
STORE_ERRORS = (MlflowException, SQLAlchemyError, OSError, ConfigError)

__all__ = [
    "STORE_ERRORS",
    "ConfigError",
    "StudyRuns",
    "check",
    "doubt",
    "end_leftovers",
    "is_server",
    "kept",
    "masked",
    "open_study",
    "send_files",
    "send_missing",
    "send_summary",
    "send_trial",
    "why",
    "writing",
]
