#!/bin/bash
# The training step of CIFAR-10 ResNet-20 in float32 and in bfloat16, in turns: images/s,
# their ratio, peak memory measured, and the peak that is planned for a whole run.
#   STINT=build/release/stint bench/bf16_step.sh [ROUNDS] [DATA]
set -euo pipefail
cd "$(dirname "$0")/.."
stint=${STINT:-build/release/stint}
rounds=${1:-3}
data=${2:-}
if [[ ! $rounds =~ ^(0|[1-9][0-9]*)$ ]] || [ $# -gt 2 ]; then
    echo "usage: bench/bf16_step.sh [ROUNDS] [DATA], ROUNDS being a number: not '$*'" >&2
    exit 2
fi
recipe=recipes/cifar10-resnet20.ini
sizes=(--image-size 32 --image-channels 3 --classes 10)

step() {
    "$stint" bench step "$recipe" "${sizes[@]}" -j 2 --runs 8 --set train.precision="$1" |
        sed -n 's/^\([0-9.]*\) images\/s.*peak memory \(.*\)$/\1 \2/p'
}

for ((i = 1; i <= rounds; i++)); do
    read -r f32 f32_memory < <(step f32)
    read -r bf16 bf16_memory < <(step bf16)
    awk -v a="$f32" -v b="$bf16" -v ma="$f32_memory" -v mb="$bf16_memory" 'BEGIN {
        printf "f32 %.0f images/s, %s; bf16 %.0f images/s, %s; %.2f times\n", a, ma, b, mb, b / a }'
done
if [ -n "$data" ]; then
    for precision in f32 bf16; do
        echo "planned, $precision: $("$stint" plan "$recipe" --data "$data" -j 2 \
            --set train.precision=$precision | grep -m 1 -i peak)"
    done
fi
