#!/bin/bash
# Do the answers that compression changes fall on what a network memorises? For each
# network and way to compress of a finished fidelity_bench.sh: the plainly fine-tuned
# models of all seeds, held against a study of memorisation of the same network on the
# same images, beside what fine-tuning the reference alone changes (the noise floor).
#
#   bench/long_tail_bench.sh STINT FOLDER     FOLDER: of fidelity_bench.sh
#
# The study's networks are trained for 5 epochs. About 12 minutes of one core for each
# network's 512; RUNS, NETWORKS, SETTINGS and SEEDS may be set, and what is there already is
# not repeated.
set -eu
stint=$(readlink -f "${1:?stint}")
script=$(readlink -f "$0")
cd "${2:?folder}"
networks=${NETWORKS:-mlp lenet5}
settings=${SETTINGS:-prune0.95 int8}
seeds=${SEEDS:-1 2 3 4 5}
cat >memory.ini <<INI
[data]
path = glyphs
crop_pad = 1
[train]
batch = 100
shards = 2
eval_every = 0
epochs = 5
[optimizer]
lr = 0.1
weight_decay = 5e-4
[schedule]
name = cosine
warmup = 1
INI
for network in $networks; do
    width=512
    case $network in *-*) width=${network#*-} ;; esac
    "$stint" trust memory memory.ini --set model.name="${network%-*}" \
        --set model.width="$width" --runs "${RUNS:-512}" --out "memory-$network" -j 1 \
        -q --json >"memory-$network.json"
    for setting in $settings; do
        rate=$(cat "$network-$setting-plain.rate")
        for seed in $seeds; do
            "$stint" compare "$network-reference" "$network-$setting-plain-$rate-$seed" \
                --data glyphs --floor "$network-floor-0.05-$seed" \
                --memory "memory-$network" -j 1 -q --json \
                >"$network-$setting-tail-$seed.json"
        done
    done
done
python3 "${script%.sh}.py" "$networks" "$settings" "$seeds"
