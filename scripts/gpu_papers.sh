#!/usr/bin/env bash
# The papers' recipes at reduced size, a study a name; estimated seconds on one H200 with the part of CIFAR-10. A study
# that is there is continued, so that the whole may be done in several calls. Needs one NVIDIA GPU and, for all, about
# 20 minutes. DATA holds what the recipes read:
#     DATA/cifar10     train/CLASS/* and test/CLASS/*, or cifar-10-batches-py
#     DATA/isbi2012    images/NAME and masks/NAME
#     scripts/gpu_papers.sh FOLDER DATA [NAME ...]
set -euo pipefail
out=${1:?folder for the studies}
data=${2:?folder with cifar10 and isbi2012}
shift 2
papers=(lstm_dropout unet_repeatability eryilmaz2024 zhuang2022_noise jordan2023 summers2021)
names=("${@:-${papers[@]}}")
if [ -d "$data/cifar10/cifar-10-batches-py" ]; then
    cifar="dataset.root=$data/cifar10"
else
    cifar="dataset=image_folder dataset.root=$data/cifar10"
fi

follow() { python3 -m runner -m recipe="$name" tracking=off device=cuda study="$out/$name" "$@"; }

for name in "${names[@]}"; do
    case $name in
    lstm_dropout) follow ;;                                        # 150 s: 16 cells, 48 trials
    unet_repeatability) follow "dataset.root=$data/isbi2012" ;;    # 200 s: 10 cells, 30 trials
    eryilmaz2024 | zhuang2022_noise | jordan2023) follow $cifar ;; # 200 s, 180 s, 240 s: 12, 20 and 40 trials
    summers2021) follow $cifar ;;                                  # 400 s: 6 cells, 18 trials of 100 epochs
    *)
        echo "$name: no such recipe; there are ${papers[*]}" >&2
        exit 2
        ;;
    esac
done
