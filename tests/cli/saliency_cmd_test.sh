#!/bin/bash
# stint compare --saliency: a model looks where it looks; another one does not quite.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
run 0 data glyphs --out g --train 360 --test 72 --min-faces 10 -q
printf '[model]\nname = lenet5\n[data]\npath = g\n[train]\nepochs = 1\nbatch = 72\n' >a.ini
run 0 train a.ini --out r1 -j 1 -q
run 0 train a.ini --out r2 -j 1 -q --seed 2
run 0 compare r1 r1 --data g --saliency 10 -j 1
says out "saliency, rank correlation"
run 0 compare r1 r1 --data g --saliency 10 -j 1 --json
json 'j["saliency_ssim"]["count"] == 10 and abs(j["saliency_ssim"]["mean"] - 1) < 1e-12'
json 'abs(j["saliency_rank_correlation"]["low"] - 1) < 1e-12'
run 0 compare r1 r2 --data g --saliency 1000 -j 1 --json
json 'j["saliency_ssim"]["count"] == 72 and j["saliency_ssim"]["mean"] < 0.99'
json 'all(-1 <= j["saliency_rank_correlation"][k] <= 1 for k in ("low", "median", "high"))'
run 0 compare r1 r2 --data g -j 1 --json
json '"saliency_ssim" not in j'
run 2 compare r1 r2 --data g --saliency -1
finish
