"""The folder that stands on PYTHONPATH of an attached script: `sitecustomize` and one package, `cudnn_attached`.

Nothing in it imports more than the standard library and, once the script has done so, torch: the script's interpreter
may be another one, without any of our dependencies.
"""

# Not part of the package for those who list it, as pdoc does: a script's interpreter finds both by names of their own.
__all__: list[str] = []
