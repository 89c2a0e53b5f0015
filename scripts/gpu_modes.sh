#!/usr/bin/env bash
# The GPU measurements behind docs/results/modes.md: a study a name, ten rounds each. A study that is there is
# continued, so that the whole may be done in several calls. Needs one NVIDIA GPU and, for all, about an hour.
#     scripts/gpu_modes.sh FOLDER [NAME ...]
set -euo pipefail
out=${1:?folder for the studies}
shift
names=("$@")
if [ ${#names[@]} = 0 ]; then
    names=({resnet18,resnet50,unet,lstm}-{fp32,default,bf16} resnet50-sizes resnet18-compiled resnet50-answers)
fi
sgd="train.optimizer=sgd train.learning_rate=0.01"
synthetic="dataset=synthetic dataset.test_items=128"
resnet50="model=resnet model.depth=50 model.cifar_stem=false $synthetic dataset.size=224 train.batch_size=64"

sweep() { python3 -m runner -m trials=10 tracking=off study="$out/$name" "$@"; }

for name in "${names[@]}"; do
    precision=precision=${name#*-}
    case $name in
    resnet18-compiled)
        sweep 'cudnn=default,benchmark' train.compile=off,default precision=bf16 $sgd model=resnet model.depth=18 \
            $synthetic dataset.size=32 train.batch_size=256 train.steps=60
        ;;
    resnet50-sizes) # twelve sizes, each twice
        sweep 'cudnn=default,benchmark' precision=bf16 $sgd $resnet50 dataset.items=768 train.steps=24 \
            dataset.sizes=[128,144,160,176,192,208,224,240,256,272,288,304]
        ;;
    resnet50-answers)
        sweep 'cudnn=glob(*)' phase=infer $resnet50 train.batch_size=1,64 dataset.items=256 train.steps=120
        ;;
    resnet18-*)
        sweep 'cudnn=glob(*)' "$precision" $sgd model=resnet model.depth=18 $synthetic dataset.size=32 \
            train.batch_size=256 train.steps=60
        ;;
    resnet50-*)
        sweep 'cudnn=glob(*)' "$precision" $sgd $resnet50 dataset.items=512 train.steps=40
        ;;
    unet-*)
        sweep 'cudnn=glob(*)' "$precision" $sgd model=unet model.width=64 model.depth=3 dataset=synthetic \
            dataset.size=256 dataset.items=128 dataset.test_items=32 dataset.classes=2 train.batch_size=16 train.steps=24
        ;;
    lstm-*)
        sweep 'cudnn=glob(*)' "$precision" $sgd model=lstm model.hidden_size=512 dataset=synthetic \
            dataset.channels=64 dataset.length=128 train.batch_size=128 train.steps=60
        ;;
    *)
        echo "$name: no such measurement; there are ${names[*]}" >&2
        exit 2
        ;;
    esac
done
