"""What the cuDNN flags `deterministic` and `benchmark` cost and buy, for a given model, data and machine."""

import sys
from pathlib import Path
from types import ModuleType

__version__ = "0.1.0"

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
