"""What the cuDNN flags `deterministic` and `benchmark` cost and buy, for a given model, data and machine."""

import os
import sys

# `python -m` puts the current folder first: a random.py beside the user's model would be everyone's `random`. It comes
# last until a module of the user's is asked for (runner.target); not in a checkout of ours, and before other imports.
# While Python looks for the module that it is to run, and only then, its first argument reads "-m".
_by_name = sys.argv[:1] == ["-m"]
if _by_name and not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(os.path.realpath(__file__))):
    sys.path.append(sys.path.pop(0))

from pathlib import Path
from types import ModuleType

if _by_name or os.path.basename(sys.argv[0] if sys.argv else "") == "cudnn-runner":
    from runner.start import quiet_ctrl_c

    quiet_ctrl_c()

__version__ = "0.2.0"

_here = Path(__file__).resolve().parent

# In a checkout models/ and conf/ stand beside runner/, in a wheel inside it. Either way they are runner.models and
# runner.conf, so that a user's own folders of these names stay importable.
if (_here.parent / "conf" / "config.yaml").is_file() and not (_here / "conf").exists():
    __path__.append(str(_here.parent))

# Hydra finds plugins in the name space hydra_plugins only. It is joined here, where every process that unpickles one
# of our classes passes first (joblib's and submitit's workers too).
try:
    import hydra_plugins
except ModuleNotFoundError:
    hydra_plugins = ModuleType("hydra_plugins")
    hydra_plugins.__path__ = []
    sys.modules["hydra_plugins"] = hydra_plugins
# A list of its own: a name space works its path out anew, without ours, whenever sys.path has changed.
hydra_plugins.__path__ = [*hydra_plugins.__path__, str(_here / "hydra_plugins")]
