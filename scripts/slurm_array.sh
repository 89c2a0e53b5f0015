#!/usr/bin/env bash
# A study on several GPUs of a SLURM cluster, the way to measure speed there. Every task of the array takes whole rounds
# of one study, so that the trials that are compared meet the same GPU, and ends when there is no round left to take:
#
#     sbatch --array=0-3 scripts/slurm_array.sh STUDY 'cudnn=glob(*)' device=cuda threads=8 trials=10 ...
#
# STUDY is a folder that all nodes share. Say device and threads: what is left open is decided on the machine, and must
# be the same for every task. Nodes need no network. Any #SBATCH line below is overruled on sbatch's command line, for
# instance --partition=gpu --time=12:00:00, or --gpus-per-node=0 where there is no GPU.
#
# The same command brings a study to its end whose tasks ran out of time. When the array has ended, the report and
# MLflow's runs are made on the login node, where nothing is left to train:
#
#     python -m runner -m study=STUDY 'cudnn=glob(*)' device=cuda threads=8 trials=10 ...
#
#SBATCH --job-name=cudnn-study
#SBATCH --gpus-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
# B: to the runner alone, which ends its trial and writes the record while there is time.
#SBATCH --signal=B:TERM@120
#SBATCH --no-requeue
set -euo pipefail

# exec: the process that SLURM signals is the runner, not a shell that waits for it.
exec python -m runner -m study="${1:?the folder of the study}" tracking=off "${@:2}"
