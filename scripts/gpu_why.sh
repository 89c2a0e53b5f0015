#!/usr/bin/env bash
# The GPU studies behind docs/results/why.md: which operations and kernels make trials differ, in each mode. A study that
# is there is continued, so that the whole may be done in several calls. Needs one NVIDIA GPU and, for all, half an hour.
# Studies with probe=ops give no speed figures and are done side by side; those of kernels, and what is advised, alone.
# For repro files alone TRIALS=2 is enough, and CUDNN=default,deterministic where the modes differ in the same operations.
#     scripts/gpu_why.sh FOLDER [NAME ...]
set -euo pipefail
out=${1:?folder for the studies}
shift
names=("$@")
if [ ${#names[@]} = 0 ]; then
    names=({resnet50,transposed,bilinear}-{fp32,bf16}-ops lstm-fp32-ops resnet50-{fp32,bf16}-kernels advice)
fi
sgd="train.optimizer=sgd train.learning_rate=0.01 train.steps=4"
synthetic="dataset=synthetic dataset.test_items=64 dataset.items=256"
resnet50="model=resnet model.depth=50 model.cifar_stem=false $synthetic dataset.size=224 train.batch_size=64"
unet="model=unet model.width=64 model.depth=3 $synthetic dataset.size=256 dataset.classes=2 train.batch_size=16"
lstm="model=lstm model.hidden_size=512 model.dropout=0.1 $synthetic dataset.channels=64 dataset.length=128 train.batch_size=128"

source "$(dirname "$0")/aside.sh"

mkdir -p "$out"
for name in "${names[@]}"; do
    IFS=- read -r model precision probe <<< "$name"
    case $model in
    resnet50) words=$resnet50 ;;
    transposed | bilinear) words="$unet model.upsampling=$model" ;;
    lstm) words=$lstm ;;
    advice) # what is advised for the bilinear U-Net in the deterministic mode, by the very command that is printed
        finished
        study=$out/bilinear-fp32-ops
        command=$(python3 -m runner.why "$study" | grep -m 1 -o 'python -m runner .*cudnn=deterministic .*determinism=flags,full.*')
        echo "$command"
        eval "${command/python/python3}" # which names a folder beside the study's, and keeps its tracking=off
        continue
        ;;
    *)
        echo "$name: no such measurement; there are ${names[*]}" >&2
        exit 2
        ;;
    esac
    sweep=(python3 -m runner -m "cudnn=${CUDNN:-glob(*)}" "precision=$precision" $sgd $words tracking=off "study=$out/$name")
    if [ "$probe" = ops ]; then
        "${sweep[@]}" probe=ops probe.repeat=true trials=${TRIALS:-3} exclusive=false > "$out/$name.log" &
        aside+=($!)
    else
        finished
        "${sweep[@]}" probe=kernels trials=4
    fi
done
finished
