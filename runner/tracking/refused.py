"""What keeps a store from being used, in one line with the way out."""

import re

import psutil
from mlflow.exceptions import MlflowException
from urllib3.exceptions import ConnectTimeoutError, MaxRetryError, NameResolutionError, NewConnectionError
from urllib3.exceptions import HTTPError as TransportError
from urllib3.exceptions import TimeoutError as Timeout

from runner.tracking.names import masked

WITHOUT = "or do without it (tracking=off)"
_CREDENTIALS = "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
# File systems of other machines, as Linux names them. SQLite needs locks that these do not keep reliably.
NETWORK_FILE_SYSTEMS = {
    *("nfs", "nfs3", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afs", "9p", "ceph", "glusterfs", "lustre"),
    *("gpfs", "beegfs", "beegfs_nodev", "panfs", "pvfs2", "orangefs", "wekafs", "fuse.sshfs", "fuse.glusterfs"),
    *("fuse.ceph", "fuse.lustre", "fuse.s3fs", "fuse.rclone", "fuse.juicefs", "fuse.mfs", "fuse.gcsfuse"),
}


def why(error: BaseException) -> str:
    """Why a store does not take anything, in few words and without a password.

    MLflow puts what happened into a long text, and nowhere else.
    """
    cause, status = _transport_error(error), _status(error)
    if isinstance(cause, NameResolutionError):
        return "no machine of this name is known"
    if isinstance(cause, NewConnectionError):  # before the next one, which it is a kind of
        return "nobody listens there"
    if isinstance(cause, ConnectTimeoutError):
        return "cannot be reached in time"
    if isinstance(cause, Timeout) or isinstance(error, TimeoutError):
        return "does not answer"
    if status:
        return f"answers with an error ({status})"
    if "database is locked" in str(error):
        return "another process keeps the database locked"
    return masked(" ".join(f"{type(error).__name__}: {error}".split()))[:300]


def way_out(error: BaseException) -> str:
    """What keeps a server from being used, and what to do."""
    status = _status(error)
    if status == 401 or status == 403:
        return f"refuses the credentials ({status}); set {_CREDENTIALS}, {WITHOUT}"
    if (status and 400 <= status < 500) or "valid JSON" in str(error):
        return f"is no MLflow server ({why(error)}); name the address that `mlflow server` prints, {WITHOUT}"
    if status:
        return f"{why(error)}; look into the server's log, {WITHOUT}"
    return f"{why(error)}; start the server, or correct the address (http://HOST:PORT), {WITHOUT}"


def _transport_error(error: BaseException | None) -> BaseException | None:
    """What happened to the connection itself, below MLflow and requests."""
    while error is not None:
        inner = error.args[0] if error.args else None
        if isinstance(inner, TransportError):
            error = inner
        if isinstance(error, MaxRetryError):
            return error.reason
        if isinstance(error, TransportError):
            return error
        error = error.__cause__ or error.__context__
    return None


def _status(error: BaseException) -> int | None:
    """The status of an HTTP answer that was no success; None where there was none."""
    found = re.search(r"error code (\d{3}) !=|too many (\d{3}) error|^(\d{3}) (?:Client|Server) Error", str(error))
    if found:
        return int(next(filter(None, found.groups())))
    from_json = isinstance(error, MlflowException) and "json" in vars(error)
    return int(error.get_http_status_code()) if from_json else None  # type: ignore[attr-defined]


def network_file_system(path: str) -> str | None:
    """The kind of the network file system on which a path lies, None for a local disk."""
    mounts = [one for one in psutil.disk_partitions(all=True) if path.startswith(one.mountpoint.rstrip("/") + "/")]
    nearest = max(mounts, key=lambda one: len(one.mountpoint), default=None)
    return nearest.fstype if nearest and nearest.fstype.lower() in NETWORK_FILE_SYSTEMS else None
