#!/usr/bin/env bash
# The GPU measurements behind docs/results/recipes/post*.md and micro.md, at the reduced size: a study a recipe. A study
# that is there is continued, so that the whole may be done in several calls. Needs one NVIDIA GPU and, for all, about
# half an hour; the seconds of each, as measured on an H200, stand beside its name. Pages: scripts/publish_recipes.py.
#     scripts/gpu_recipes.sh OUT [NAME ...]
set -euo pipefail
out=${1:?folder for the studies}
shift
names=("$@")
if [ ${#names[@]} = 0 ]; then
    names=(
        post_modes            # 140
        post_timing_loop      # 90
        post_shapes           # 50
        post_lstm_lengths     # 75
        post_seeds            # 165
        post_networks         # 110
        post_detector         # 130
        post_layers           # 245
        post_same_convolution # 350 with the next three
        post_process_lottery
        post_carries_over
        post_inference
        micro                 # 370
    )
fi
exec python3 "$(dirname "$0")/run_recipes.py" --out "$out" --pages none "${names[@]}"
