#!/usr/bin/env bash
# The GPU measurements behind docs/results/main-job.md: the bare command, then three models at sizes near those of
# published comparisons. Give the folder that takes the studies; needs one NVIDIA GPU and about 15 minutes.
set -euo pipefail
out=${1:?folder for the studies}
sgd="train.optimizer=sgd train.learning_rate=0.01"
sweep() { python3 -m runner -m "cudnn=glob(*)" tracking=off "$@"; }

case "${2:-all}" in
bare | all) sweep study="$out/bare" ;;&
models | all)
    sweep study="$out/resnet18" trials=5 $sgd model=resnet model.depth=18 dataset=synthetic dataset.size=32 \
        train.batch_size=256 train.steps=60
    sweep study="$out/unet" trials=5 $sgd model=unet model.width=64 model.depth=3 dataset=synthetic dataset.size=256 \
        dataset.items=128 dataset.test_items=32 dataset.classes=2 train.batch_size=16 train.steps=24
    sweep study="$out/lstm" trials=5 $sgd model=lstm model.hidden_size=512 dataset=synthetic dataset.channels=64 \
        dataset.length=128 train.batch_size=128 train.steps=60
    ;;
esac
