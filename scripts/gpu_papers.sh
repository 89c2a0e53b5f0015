#!/usr/bin/env bash
# The papers' recipes at reduced size, a study a name; estimated seconds on one H200 with the part of CIFAR-10. A study
# that is there is continued, so that the whole may be done in several calls. Needs one NVIDIA GPU and, for all, about
# 20 minutes, and as many for zhuang2022_overhead, which is done if named. DATA holds what the recipes read:
#     DATA/cifar10     train/CLASS/* and test/CLASS/*, or cifar-10-batches-py
#     DATA/isbi2012    images/NAME and masks/NAME
#     scripts/gpu_papers.sh FOLDER DATA [NAME ...]
set -euo pipefail
out=${1:?folder for the studies}
data=${2:?folder with cifar10 and isbi2012}
shift 2
papers=(unet_repeatability zhuang2022_noise jordan2023 summers2021 lstm_dropout eryilmaz2024)
names=("${@:-${papers[@]}}")
if [ -d "$data/cifar10/cifar-10-batches-py" ]; then
    cifar="dataset.root=$data/cifar10"
else
    cifar="dataset=image_folder dataset.root=$data/cifar10"
    short="train.epochs=30" # on a part of the images nothing compares with the 100 epochs either
fi
source "$(dirname "$0")/aside.sh"

share() { # what is about spread alone: three invocations do its rounds, beside those of other recipes
    for invocation in 1 2 3; do
        "${follow[@]}" exclusive=false "$@" > "$out/$name-$invocation.log" &
        aside+=($!)
    done
}

mkdir -p "$out"
for name in "${names[@]}"; do
    follow=(python3 -m runner -m "recipe=$name" tracking=off device=cuda "study=$out/$name")
    case $name in
    unet_repeatability) share "dataset.root=$data/isbi2012" ;;  # 10 cells, 30 trials
    zhuang2022_noise | jordan2023) share $cifar ;; # 20 and 40 trials
    summers2021) share $cifar ${short:-} ;; # 18 trials
    lstm_dropout | zhuang2022_overhead) finished; "${follow[@]}" ;; # of speed too: 290 s, 20 minutes
    eryilmaz2024) finished; "${follow[@]}" $cifar ;; # 400 s: 12 trials
    *)
        echo "$name: no such recipe; there are ${papers[*]} zhuang2022_overhead" >&2
        exit 2
        ;;
    esac
done
finished
