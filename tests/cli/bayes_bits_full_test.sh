# Bayesian training has one value over threads, lanes, instruction sets, budgets, a kill
# and processes: of each generator, of both estimators and priors, growing, and of a
# network with batch-norm; on five processes, too.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
run 0 data glyphs --out g --train 288 --test 36 --min-faces 10 -q
# recipe NAME MODEL LINE...: lines of [bayes]
recipe() {
    printf '[data]\npath = g\n[model]\nname = %s\n[train]\nbatch = 30\nshards = 5\n' \
        "$2" >"$1.ini"
    printf 'accumulate = 2\nepochs = 2\n[optimizer]\nname = adam\nlr = 0.002\n' >>"$1.ini"
    printf '[bayes]\nsamples = 2\n' >>"$1.ini"
    printf '%s\n' "${@:3}" >>"$1.ini"
}
for g in ars philox lfsr256 lfsr64; do
    recipe $g smallcnn-bn "generator = $g"
done
recipe mixture lenet5 'prior = mixture' 'kl_course = geometric'
recipe registers lenet5 'generator = lfsr256' 'prior = mixture'
recipe local resnet8 'estimator = local'
recipe grown smallcnn 'kl_course = ramp' '[grow]' 'by = schedule' 'every = 1'
for name in ars philox lfsr256 lfsr64 mixture registers local grown; do
    run 0 trust bits $name.ini --steps 6 --json -q
    json 'j["same"] and j["distinct"] == 1'
done
for ranks in 1 5; do
    for ((r = 1; r < ranks; r++)); do
        "$STINT" train lfsr256.ini --out runs/r$ranks --steps 6 --net-root "@$$-$ranks" \
            --net-ranks $ranks --net-rank $r -q 2>>"$work/others" &
    done
    if [ $ranks -gt 1 ]; then
        run 0 train lfsr256.ini --out runs/r$ranks --steps 6 --net-root "@$$-$ranks" \
            --net-ranks $ranks --net-rank 0 --json -q
    else
        run 0 train lfsr256.ini --out runs/r$ranks --steps 6 --json -q
    fi
    wait
    python3 -c 'import json; print(json.load(open("'"$work"'/out"))["weights_sha256"])' >>shas
done
[ "$(sort -u shas | wc -l)" -eq 1 ] || fail "five processes end with other weights"
finish
