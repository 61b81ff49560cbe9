#!/usr/bin/env bash
# Training of two processes over a slow link, one core each: Stint with --net auto, with exact
# float32 sums, without any network; MPI_Allreduce of float32; PyTorch DDP over gloo with no
# hook, fp16 and PowerSGD. Two network namespaces joined by a veth pair that tc shapes, set up
# and torn down here. Needs root; mpicc and a Python with torch (PYTHON) where they are compared.
#
#   bench/net_train_bench.sh NET RATE [WAY...]
#       NET: resnet18 or vgg16 (32 x 32)   RATE: as tc has it, 100mbit or 1gbit
#       WAY: one none here auto float32 packed packed-float32 mpi ddp ddp-fp16 ddp-powersgd   (all)
#
# BATCH (32) images a process; STEPS (6) timed ones, of which the median counts. All ways in
# turn, ROUNDS (1) times: the median rate of each, and the median of its shares of the rate of
# the first way in the same round. `one`: one process of two threads trains the same, there is
# no network; `none`: each process alone with its half of the batch, no sum at all; `here`: both
# on this host, exact sums through memory; `mpi` is the measured step without a sum plus the
# measured MPI_Allreduce of as many float32 values. `packed` is --net auto with all activations
# packed that can be, `packed-float32` the same with exact sums. Of our ways over the link also the
# highest resident memory of rank 0.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${BUILD:-build/release}")
python=${PYTHON:-/usr/bin/python3} batch=${BATCH:-32} steps=${STEPS:-6} rounds=${ROUNDS:-1}
net=${1:?usage: bench/net_train_bench.sh NET RATE [WAY...]} rate=${2:?a rate, as 100mbit}
shift 2
[ $# -gt 0 ] || set -- one none here auto float32 packed packed-float32 mpi ddp ddp-fp16 ddp-powersgd
port=29500
. bench/link_pair.sh
link_pair_up "$rate"

"$build/stint" data glyphs --out "$work/data" --train 1440 --test 36 --size 32 >/dev/null
cat >"$work/recipe.ini" <<INI
[model]
name = $net
stem = small
[data]
path = $work/data
[train]
batch = $((2 * batch))
shards = 2
steps = $((steps + 3))
eval_every = 0
[optimizer]
lr = 0.01
[run]
log_every = 1
INI

# The median rate of the steps after the first three, of one or two logs together; of two
# also, in $work/in-step, where both wait for the slower one in every step.
rate_of() {
    python3 - "$work/in-step" "$@" <<'PY'
import json, statistics, sys
rates = []
for name in sys.argv[2:]:
    events = [json.loads(line) for line in open(name)]
    rates.append([e["images_per_s"] for e in events if e["event"] == "step" and e["step"] > 3])
print(f"{sum(map(statistics.median, rates)):.2f}")
if len(rates) == 2:
    with open(sys.argv[1], "w") as f:
        f.write(f"{statistics.median(2 * min(both) for both in zip(*rates)):.2f}")
PY
}
ours() { # ARGUMENT...: both ranks train
    both "$build/stint" train "$work/recipe.ini" --out "$work/run" --force -j 1 --quiet \
        --json --net-root @ROOT --net-ranks 2 --net-rank @RANK "$@"
    python3 -c 'import json, sys; print("%.0f" % (json.load(open(sys.argv[1]))["peak_rss_bytes"] / 2**20))' \
        "$work/rank0" >"$work/peak"
    rate_of "$work/run/log.jsonl"
}
# Without a link: both ranks in one namespace.
here() {
    local rank
    port=$((port + 1))
    for rank in 1 0; do
        taskset -c $((rank % $(nproc))) "$build/stint" train "$work/recipe.ini" --out "$work/run" \
            --force -j 1 --quiet --net-root "127.0.0.1:$port" --net-ranks 2 --net-rank $rank >/dev/null &
    done
    wait
    rate_of "$work/run/log.jsonl"
}
one_process() {
    "$build/stint" train "$work/recipe.ini" --out "$work/run" --force -j 2 --quiet >/dev/null
    rate_of "$work/run/log.jsonl"
}
# Two processes that know nothing of each other, half of the batch each.
alone() {
    both "$build/stint" train "$work/recipe.ini" --out "$work/alone@RANK" --force -j 1 \
        --quiet --batch "$batch" --set train.shards=1
    rate_of "$work"/alone?/log.jsonl
}
ddp() { # HOOK
    both "$python" bench/net_train_pytorch.py --rank @RANK --root @ROOT --net "$net" \
        --hook "$1" --batch "$batch" --steps "$steps" --warmup 3
    python3 -c 'import json, sys; print("%.2f" % json.load(open(sys.argv[1]))["images_per_s"])' "$work/rank0"
}
# mpirun starts its daemons by a command of ours that enters the namespace; host names of
# their own keep Open MPI from taking the two for one host with shared memory.
mpi_seconds() { # VALUES
    mpicc -O2 -o "$work/mpi_allreduce" bench/mpi_allreduce.c
    cat >"$work/agent" <<SH
#!/bin/sh
shift
exec ip netns exec $b unshare -u sh -c 'hostname stint-b; exec sh -c "\$0"' "\$*"
SH
    chmod +x "$work/agent"
    ip netns exec "$a" unshare -u sh -c 'hostname stint-a; exec "$@"' - \
        mpirun --allow-run-as-root --host 10.77.0.1:1,10.77.0.2:1 -n 2 --bind-to none \
        --mca plm_rsh_agent "$work/agent" --mca btl tcp,self --mca pml ob1 \
        --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 \
        "$work/mpi_allreduce" "$1" 3 2>"$work/err0" || { cat "$work/err0" >&2; return 1; }
}

one() { # WAY: its rate in `got`
    local values seconds
    case $1 in
    one) got=$(one_process) ;;
    none) got=$(alone) && echo "$got" >"$work/none" ;;
    here) got=$(here) ;;
    auto) got=$(ours --net auto) ;;
    float32) got=$(ours) ;;
    packed) got=$(ours --net auto --set error.pack=all) ;;
    packed-float32) got=$(ours --set error.pack=all) ;;
    ddp) got=$(ddp none) ;;
    ddp-*) got=$(ddp "${1#ddp-}") ;;
    mpi)
        [ -s "$work/none" ] || alone >"$work/none"
        values=$("$build/stint" plan "$work/recipe.ini" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["parameters"])')
        seconds=$(mpi_seconds "$values")
        got=$(python3 -c "print('%.2f' % (2 * $batch / (2 * $batch / $(cat "$work/none") + $seconds)))")
        echo "MPI_Allreduce of $values float32 values: $seconds s"
        ;;
    *) echo "net_train_bench.sh: no way '$1'" >&2; exit 2 ;;
    esac
}
why() { # what --net auto measured and chose
    python3 - "$work/run/log.jsonl" <<'PY'
import json, sys
for line in open(sys.argv[1]):
    e = json.loads(line)
    if e["event"] == "net":
        print("              ", e["why"])
PY
}

echo "$net, 2 ranks of $batch images, $rate, $rounds rounds"
for ((round = 0; round < rounds; round++)); do
    for way; do
        rm -f "$work/peak"
        one "$way"
        echo "$way $got" >>"$work/rates"
        [ ! -s "$work/peak" ] || echo "               $way: peak resident $(cat "$work/peak") MiB"
        [ "$way" != none ] || echo "in-step $(cat "$work/in-step")" >>"$work/rates"
        case $way in auto | packed) why ;; esac
    done
done
python3 - "$work/rates" <<'PY'
import statistics, sys
rows = [line.split() for line in open(sys.argv[1])]
ways = list(dict.fromkeys(way for way, _ in rows))
rates = {way: [float(rate) for w, rate in rows if w == way] for way in ways}
for way in ways:
    share = statistics.median(x / first for x, first in zip(rates[way], rates[ways[0]]))
    print(f"{way:14} {statistics.median(rates[way]):8.2f} images/s  {100 * share:6.1f} % of {ways[0]}")
PY
