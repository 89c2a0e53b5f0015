"""The folder that stands on PYTHONPATH of an attached script: `sitecustomize` and one package, `cudnn_attached`.

Nothing in it imports more than the standard library and, once the script has done so, torch: the script's interpreter
may be another one, without any of our dependencies.
"""
