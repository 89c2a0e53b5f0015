"""Write the reference of the code as HTML: every public name with its docstring: shapes, units, errors, sources.

pip install -e '.[docs]' && python scripts/api_reference.py FOLDER
"""

import argparse
from pathlib import Path

from pdoc import pdoc, render

import runner
import runner.models

# In a checkout the package reaches beyond its folder, to models/ and conf/ beside it; pdoc would take all that stands
# there for parts of it.
runner.__path__ = runner.__path__[:1]


def main() -> None:
    """Write the pages, index.html first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    render.configure(docformat="google", footer_text="cudnn-mode-runner", show_source=False)
    pdoc("runner", r"!.*__main__", output_directory=folder)
    print(folder / "index.html")


if __name__ == "__main__":
    main()
