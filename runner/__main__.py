"""`python -m runner`: the Hydra entry."""

import os

import hydra
from hydra.core.config_store import ConfigStore

from runner.job import run_job

# Hydra copies all registered configs whenever it composes one, and for each group that --help lists: half of that
# command's time, for nothing, as the store hands out copies anyway.
ConfigStore.__deepcopy__ = lambda self, memo: self  # type: ignore[attr-defined]

main = hydra.main(version_base="1.3", config_path="pkg://runner.conf", config_name="config")(run_job)


def console() -> None:
    """`cudnn-runner`: the same for people whose current folder has a runner/ of their own."""
    os.environ["PYTHONSAFEPATH"] = "1"  # launchers start workers with `python -m`: they too must find ours
    main()


if __name__ == "__main__":
    main()
