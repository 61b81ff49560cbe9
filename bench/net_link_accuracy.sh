#!/usr/bin/env bash
# What does a run over a slow link lose? One network on CIFAR-10, two processes of one core each
# over a link that tc shapes, by --net auto, and the same run without a network, whose bits are
# those of float32 sums over any link. Test accuracy, time and what auto chose:
#   bench/net_link_accuracy.sh NET RATE DATA [STEPS [WAY...]]
# WAY: auto, float32, a number of bits (over the link as well), either auto or bits with keys of
# the recipe behind it (2,net.clip=true), and PyTorch's DDP by the same recipe: none fp16
# powersgd, whose bits no link changes, so theirs is a fast one (PYTHON has torch and Pillow).
# NET: resnet18 or vgg16 (32 x 32)   RATE: as tc has it, 100mbit   DATA: a folder with train.tar
# and test.tar. Batches of 64, one-cycle up to 0.1, STEPS (1000). SEED=1. TIMEOUT=1h lets the
# processes be halted and go on. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${BUILD:-build/release}")
net=${1:?usage: bench/net_link_accuracy.sh NET RATE DATA [STEPS [WAY...]]} rate=${2:?a rate}
data=${3:?a folder with CIFAR-10} steps=${4:-1000} limit=7200
shift $(($# < 4 ? $# : 4))
[ $# -gt 0 ] || set -- auto float32
. bench/link_pair.sh
link_pair_up "$rate"
train=("$build/stint" train recipes/cifar10-resnet20.ini --data "$data" --steps "$steps"
    --seed "${SEED:-1}" --batch 64 --shards 2 --lr 0.1 --set "model.name=$net"
    --set model.stem=small --set run.log_every=1 --out "$work/run" --force --quiet --json)
for way; do
    case $way in
    auto | auto,* | [1-8] | [1-8],*)
        IFS=, read -r bits keys <<<"$way,"
        how=(--net auto)
        [ "$bits" = auto ] || how=(--set "net.bits=$bits")
        for key in ${keys//,/ }; do how+=(--set "$key"); done
        both "${train[@]}" -j 1 "${how[@]}" --net-timeout "${TIMEOUT:-30s}" \
            --net-root @ROOT --net-ranks 2 --net-rank @RANK
        ;;
    float32) "${train[@]}" -j 2 >"$work/rank0" ;;
    none | fp16 | powersgd)
        shape 20gbit
        both "${PYTHON:-/usr/bin/python3}" bench/net_train_pytorch.py --rank @RANK --root @ROOT \
            --net "$net" --hook "$way" --batch 32 --warmup 3 --steps $((steps - 3)) \
            --data "$data" --seed "${SEED:-1}"
        shape "$rate"
        ;;
    *) echo "net_link_accuracy.sh: no way '$way'" >&2; exit 2 ;;
    esac
    python3 - "$work" "$net" "$way" <<'PY'
import json, statistics, sys
work, net, way = sys.argv[1:]
r = json.load(open(f"{work}/rank0"))
if "torch" in r:
    print(f"{net}, PyTorch {r['torch']}, {way}: test accuracy {100 * r['test_accuracy']:.2f} %, "
          f"loss {r['test_loss']:.4f}, {r['steps']} steps", flush=True)
    sys.exit()
events = [json.loads(line) for line in open(f"{work}/run/log.jsonl")]
rate = statistics.median(e["images_per_s"] for e in events if e["event"] == "step" and e["step"] > 3)
way += " bits" if way.isdigit() else ""
print(f"{net}, {way}: test accuracy {100 * r['test_accuracy']:.2f} %, loss {r['test_loss']:.4f}, "
      f"{r['steps']} steps, median {rate:.1f} images/s", flush=True)
why = [e["why"] for e in events if e["event"] == "net"]
for text in why[:1] + (why[-1:] if len(why) > 1 else []):
    print("   ", text, flush=True)
PY
done
