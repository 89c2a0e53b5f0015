#!/usr/bin/env bash
# A SLURM of this machine alone, for tests: all of its cores, no GPU, no accounting. As root, with Debian's slurm-wlm:
#     scripts/slurm_start.sh [FOLDER]         prints, as its last line, what SLURM's commands need to find it
#     scripts/slurm_start.sh --stop FOLDER    ends its jobs and its daemons
# Everything that belongs to it lies in FOLDER (a new temporary one if none is given), munge's key too: no systemd is
# needed, no service is touched. Where it works already, nothing is done.
set -euo pipefail

configure() {
    mkdir -p "$folder/state" "$folder/spool"
    chmod 755 "$folder" # munge wants its socket to be reachable by everybody
    [ -s "$folder/munge.key" ] || (umask 077 && head -c 128 /dev/urandom >"$folder/munge.key")
    local host port=$((20000 + 2 * (RANDOM % 5000))) # below the ports that the kernel hands out
    host=$(uname -n)
    # The address is written down because a container's name often resolves to nothing. CPUs alone, without sockets and
    # threads, and not held against what slurmd finds: a container may have fewer. Memory is no limit (CR_CPU).
    cat >"$folder/slurm.conf" <<END
ClusterName=test
SlurmctldHost=${host%%.*}(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
KillWait=10
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
SlurmdParameters=config_overrides
NodeName=${host%%.*} NodeAddr=127.0.0.1 CPUs=$(getconf _NPROCESSORS_ONLN) RealMemory=$(memory_mb)
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
}

memory_mb() { awk '/^MemTotal/ {print int($2 / 1024)}' /proc/meminfo; }

within() { # SECONDS COMMAND...: whether the command succeeds in time
    local end=$((SECONDS + $1))
    until "${@:2}"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.2
    done
}

daemon() { # NAME: its process, if it lives; the number in a file left behind may be another's by now
    local pid
    pid=$(cat "$folder/$1.pid" 2>/dev/null) && grep -qs "$1" "/proc/$pid/cmdline" && echo "$pid"
}
ended() { ! daemon "$1" >/dev/null; }

# Without a daemon SLURM's commands try again and again.
ask() { ! ended slurmctld && timeout 5 "$@" 2>/dev/null; }
state() { ask sinfo --noheader --format=%t; }
idle() { [ "$(state)" = idle ]; }
works() { ! ended slurmd && state | grep -qE '^(idle|mix|alloc|comp)$'; }
empty() { [ -z "$(ask squeue --noheader)" ]; }

# Their output is turned away: a daemon that keeps a caller's pipe lets the caller wait for ever.
start() {
    munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
        --log-file="$folder/munged.log" --seed-file="$folder/munged.seed" </dev/null >>"$folder/start.log" 2>&1
    slurmctld -c -f "$folder/slurm.conf" </dev/null >>"$folder/start.log" 2>&1
    slurmd -f "$folder/slurm.conf" </dev/null >>"$folder/start.log" 2>&1
}

stop() {
    ask scancel --user=root && within 20 empty || true
    local name
    for name in slurmd slurmctld munged; do
        ended $name || kill "$(daemon $name)"
        within 10 ended $name || true
    done
}

if [ "${1:-}" = --stop ]; then
    folder=$(realpath "${2:?the folder that it was started in}")
    export SLURM_CONF=$folder/slurm.conf
    stop
    exit
fi

folder=$(realpath -m "${1:-$(mktemp -d)}")
export SLURM_CONF=$folder/slurm.conf
if ! works; then
    stop # what is left of one that died
    configure
    if ! { start && within 60 idle; }; then
        tail -n 20 "$folder"/*.log >&2
        exit 1
    fi
fi
echo "export SLURM_CONF=$SLURM_CONF"
