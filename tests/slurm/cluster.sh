#!/bin/sh
# A Slurm on this machine, for tests: no systemd, no containers, everything in one folder.
#   cluster.sh install        Debian's packages, if they are missing (apt-get, as root)
#   cluster.sh start FOLDER   two virtual nodes, pk-n1 and pk-n2, of four cores each
#   cluster.sh stop FOLDER    end what start began, and remove what it left
# Then: export SLURM_CONF=FOLDER/slurm.conf
# Partitions: debug; urgent, whose jobs preempt those of debug (SIGTERM, five seconds, requeue).
# Outside of FOLDER there is one line of /etc/hosts, where it can be written; stop takes it out.
set -eu

TOOLS="slurmctld slurmd munged sbatch squeue scontrol"
MARK="# physkit: virtual nodes of tests/slurm"
PATH=$PATH:/usr/sbin:/sbin

missing() {
  for tool in $TOOLS; do command -v "$tool" > /dev/null || printf '%s ' "$tool"; done
}

install() {
  lacks=$(missing)
  [ -z "$lacks" ] && return 0
  if ! command -v apt-get > /dev/null; then
    echo "no Slurm here (missing: $lacks) and no apt-get: install slurmctld, slurmd, slurm-client and munge" >&2
    return 3
  fi
  if [ "$(id -u)" != 0 ]; then
    echo "no Slurm here (missing: $lacks): as root, apt-get install slurmctld slurmd slurm-client munge" >&2
    return 3
  fi
  # Nobody starts services here: what the tests need runs from its own folder.
  export DEBIAN_FRONTEND=noninteractive
  options="-y -q --no-install-recommends -o DPkg::Lock::Timeout=60 -o Acquire::http::Timeout=20 -o Acquire::Retries=1"
  for try in as-it-is updated; do
    [ $try = updated ] && timeout 120 apt-get -q update < /dev/null
    # shellcheck disable=SC2086
    timeout 300 apt-get install $options slurmctld slurmd slurm-client munge < /dev/null && break
  done
  lacks=$(missing)
  [ -z "$lacks" ] || { echo "apt-get did not bring $lacks" >&2; return 3; }
}

configure() {
  user=$(id -un)
  host=$(hostname)
  first=${PHYSKIT_SLURM_PORT:-16817}
  cat > "$folder/slurm.conf" << CONF
ClusterName=physkit
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket,cred_expire=8
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmctldPort=$first
SlurmdSpoolDir=$folder/spool.%n
StateSaveLocation=$folder/state
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.%n.log
SwitchType=switch/none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
KillWait=5
MinJobAge=120
SlurmctldTimeout=30
SlurmdTimeout=30
NodeName=pk-n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((first + 1)) CPUs=4 RealMemory=4000
NodeName=pk-n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((first + 2)) CPUs=4 RealMemory=4000
PartitionName=debug Nodes=pk-n1,pk-n2 Default=YES MaxTime=INFINITE PriorityTier=1 GraceTime=5
PartitionName=urgent Nodes=pk-n1,pk-n2 MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF
CONF
}

start() {
  lacks=$(missing)
  [ -z "$lacks" ] || { echo "no Slurm here (missing: $lacks): $0 install" >&2; return 3; }
  mkdir -p "$folder"
  folder=$(cd "$folder" && pwd)
  [ ! -e "$folder/slurm.conf" ] || { echo "$folder holds a cluster: stop it first" >&2; return 1; }
  mkdir -p "$folder/state" "$folder/log" "$folder/spool.pk-n1" "$folder/spool.pk-n2" "$folder/munge"
  chmod 0700 "$folder/munge"
  head -c 1024 /dev/urandom > "$folder/munge/key"
  chmod 0400 "$folder/munge/key"
  configure
  if ! grep -qF "$MARK" /etc/hosts && [ -w /etc/hosts ]; then
    echo "127.0.0.1 pk-n1 pk-n2 $MARK" >> /etc/hosts
  fi
  munged --force --socket="$folder/munge.socket" --key-file="$folder/munge/key" \
    --pid-file="$folder/munged.pid" --log-file="$folder/log/munged.log" --seed-file="$folder/munge/seed"
  export SLURM_CONF="$folder/slurm.conf"
  slurmctld -c -f "$SLURM_CONF"
  slurmd -f "$SLURM_CONF" -N pk-n1
  slurmd -f "$SLURM_CONF" -N pk-n2
  for _ in $(seq 60); do
    [ "$(sinfo -h -p debug -o %t%D 2> /dev/null)" = idle2 ] && return 0
    sleep 0.5
  done
  echo "Slurm did not come up within 30 s:" >&2
  tail -n 5 "$folder"/log/* >&2
  stop
  return 1
}

stop() {
  [ -d "$folder" ] || return 0
  folder=$(cd "$folder" && pwd)
  export SLURM_CONF="$folder/slurm.conf"
  # Jobs first: their steps would outlive the daemons.
  timeout 10 scancel -f --user="$(id -un)" 2> /dev/null || true
  for _ in $(seq 20); do
    [ -z "$(timeout 5 squeue -h 2> /dev/null)" ] && break
    sleep 0.5
  done
  for name in slurmctld slurmd.pk-n1 slurmd.pk-n2 munged; do
    pid=$(cat "$folder/$name.pid" 2> /dev/null || true)
    [ -n "$pid" ] && kill "$pid" 2> /dev/null || continue
    for _ in $(seq 40); do
      kill -0 "$pid" 2> /dev/null || break
      sleep 0.25
    done
    kill -9 "$pid" 2> /dev/null || true
  done
  if [ -w /etc/hosts ] && grep -qF "$MARK" /etc/hosts; then
    # In place: in a container the file is mounted and cannot be renamed.
    left=$(grep -vF "$MARK" /etc/hosts)
    printf '%s\n' "$left" > /etc/hosts
  fi
  rm -rf "$folder/munge" "$folder/state" "$folder/spool.pk-n1" "$folder/spool.pk-n2"
  rm -f "$folder/slurm.conf" "$folder/munge.socket" "$folder/munge.socket.lock" "$folder"/*.pid
}

case "${1:-}" in
  install) install ;;
  start | stop)
    [ $# = 2 ] || { echo "cluster.sh $1 FOLDER" >&2; exit 2; }
    folder=$2
    $1
    ;;
  *)
    sed -n '2,8p' "$0" | cut -c 3- >&2
    exit 2
    ;;
esac
