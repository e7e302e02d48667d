#!/bin/bash
# Trains one job of Troupe on the processes that mpirun starts, one on each node:
#
#   mpirun --map-by ppr:1:node -x TROUPE_STATE deploy/mpi/troupe-mpi.sh JOB.yaml
#
# Process 0 starts the coordinator too. MPI only starts the processes: Troupe's ranks communicate by
# UCX and NCCL.
#
#   TROUPE_STATE    directory that all nodes share, for catalog, certificates and logs; a second run
#                   with the same directory continues the job (default: troupe-state here)
#   TROUPE_DEVICES  devices of each node, such as cuda:8 (default: cpu:1)
#   TROUPE_PORT     port of the coordinator (default: 7070)
#   TROUPE_HOST     address of the node of process 0 (default: its host name)
set -euo pipefail

fail() { printf 'troupe-mpi.sh: %s\n' "$*" >&2; exit 1; }

(($# == 1)) || fail "usage: mpirun troupe-mpi.sh JOB.yaml"
job_file=$1
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}}
size=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE:-}}
[[ -n $rank && -n $size ]] || fail "neither OMPI_COMM_WORLD_RANK nor PMI_RANK is set: use mpirun"
state=${TROUPE_STATE:-$PWD/troupe-state}
# A file that other processes of this run wait for has the name of the run, which they share.
run=$state/run-${OMPI_MCA_ess_base_jobid:-${PMIX_NAMESPACE:-$PPID}}
run=${run//[^A-Za-z0-9\/._-]/-}
umask 077

children=()
# shellcheck disable=SC2317  # the trap calls it
end() {
  ((${#children[@]} == 0)) || kill -TERM "${children[@]}" 2>/dev/null || true
  wait || true
}
trap end EXIT
trap 'exit 143' TERM

# wait_for FILE: until process 0 has made it, for two minutes at most.
wait_for() {
  local tries
  for ((tries = 0; tries < 120; ++tries)); do
    [[ ! -e $1 ]] || return 0
    sleep 1
  done
  fail "process 0 has not made $1"
}

if ((rank == 0)); then
  [[ -r $job_file ]] || fail "$job_file cannot be read"
  mkdir -p "$state/tls"
  [[ -e $state/authority/authority.key ]] ||
    troupe certs init "$state/authority" --cluster mpi >&2
  issue() {
    troupe certs issue "$state/authority" --role "$1" --name "$2" --output "$state/tls/$3" >&2
  }
  issue coordinator main coordinator
  issue operator mpi user
  for ((other = 0; other < size; ++other)); do issue worker "mpi-$other" "worker-$other"; done
  port=${TROUPE_PORT:-7070}
  troupe-coordinator --listen="0.0.0.0:$port" --data-dir="$state/catalog" \
    --tls-dir="$state/tls/coordinator" >>"$state/coordinator.log" 2>&1 &
  coordinator=$!
  children+=("$coordinator")
  rm -f "$run.ended"
  printf '%s:%s\n' "${TROUPE_HOST:-$(hostname)}" "$port" >"$run.address.new"
  mv "$run.address.new" "$run.address"
fi

wait_for "$run.address"
TROUPE_COORDINATOR=$(<"$run.address")
export TROUPE_COORDINATOR TROUPE_TLS_DIR=$state/tls/user
mkdir -p "$state/workers/mpi-$rank"
troupe-worker --coordinator="$TROUPE_COORDINATOR" --name="mpi-$rank" \
  --devices="${TROUPE_DEVICES:-cpu:1}" --tls-dir="$state/tls/worker-$rank" \
  --data-dir="$state/workers/mpi-$rank" --drain-seconds=0 \
  >>"$state/workers/mpi-$rank/worker.log" 2>&1 &
worker=$!
children+=("$worker")

if ((rank != 0)); then
  # The worker runs until process 0 reports the end of the job.
  until [[ -e $run.ended ]]; do
    kill -0 "$worker" 2>/dev/null || fail "the worker ended: see $state/workers/mpi-$rank"
    sleep 1
  done
  exit 0
fi

for ((tries = 0; ; ++tries)); do
  troupe list >/dev/null 2>&1 && break
  kill -0 "$coordinator" 2>/dev/null || fail "the coordinator ended: see $state/coordinator.log"
  ((tries < 120)) || fail "the coordinator does not answer: see $state/coordinator.log"
  sleep 1
done
if troupe describe mpi >/dev/null 2>&1; then
  troupe resume mpi || true
else
  troupe submit --name mpi "$job_file"
fi
troupe watch mpi &
watch=$!
children+=("$watch")
code=0
wait "$watch" || code=$?
touch "$run.ended"
exit "$code"
