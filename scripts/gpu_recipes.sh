#!/usr/bin/env bash
# The GPU measurements behind docs/results/recipes/post*.md and micro.md, at the reduced size: a study a recipe. A study
# that is there is continued, so that the whole may be done in several calls. Needs one NVIDIA GPU and, for all, about 19
# minutes; the seconds of each, as expected on an H200, stand beside its name. Pages: scripts/publish_recipes.py OUT/*.
#     scripts/gpu_recipes.sh OUT [NAME ...]
set -euo pipefail
out=${1:?folder for the studies}
shift
names=("$@")
if [ ${#names[@]} = 0 ]; then
    names=(
        post_modes            # 110
        post_timing_loop      # 60
        post_shapes           # 60
        post_lstm_lengths     # 30
        post_same_convolution # 90
        post_process_lottery  # 60
        post_carries_over     # 40
        post_seeds            # 50
        post_inference        # 30
        post_networks         # 130
        post_detector         # 150
        post_layers           # 190
        micro                 # 120
    )
fi
exec python3 "$(dirname "$0")/run_recipes.py" --out "$out" --pages none "${names[@]}"
