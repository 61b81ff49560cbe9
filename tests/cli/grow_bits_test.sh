# Growing runs have one value over threads, lanes, instruction sets, budgets, processes
# and a kill, by schedule and by noise.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
run 0 data glyphs --out g --train 288 --test 36 --min-faces 10 -q
# recipe NAME LINE...: 288 images are 19 units of 15, so that epochs end with a part
recipe() {
    printf '[data]\npath = g\ncrop_pad = 2\n[model]\nname = smallcnn-bn\n' >"$1.ini"
    printf '[train]\nbatch = 30\nshards = 3\naccumulate = 2\nepochs = 3\n' >>"$1.ini"
    printf '[optimizer]\nname = adam\nlr = 0.002\n[grow]\nmost = 288\n' >>"$1.ini"
    printf '%s\n' "${@:2}" >>"$1.ini"
}
recipe schedule 'by = schedule' 'every = 1'
recipe noise 'by = noise' 'share = 20'
for name in schedule noise; do
    run 0 trust bits $name.ini --steps 8 --chance 5 --json -q
    json 'j["same"] and j["distinct"] == 1 and j["steps"] == 8'
    json 'sum("processes" in r["name"] for r in j["runs"]) == 2'
    run 0 train $name.ini --out runs/$name --set run.log_every=1 --json -q
    json 'j["batch_first"] == 30 and j["batch"] > 30'
done
json 'j["noise_scale"] > 0' # of the last: by noise
grep -q '"noise_scale":' runs/noise/log.jsonl || fail "no noise scale in the log"
# A field's noise is told, too: its points are drawn step by step.
printf '[model]\nname = siren\nwidth = 16\ndepth = 1\n[field]\noutputs = u\ninside = u_x - y\n' >field.ini
printf '[train]\nbatch = 32\nshards = 2\naccumulate = 2\nepochs = 1\n[optimizer]\nname = adam\nlr = 0.001\n[error]\ntau = 0\n' >>field.ini
printf '[grow]\nby = noise\nshare = 100\n' >>field.ini
run 0 train field.ini --out runs/field --json -q
json 'j["noise_scale"] > 0 and j["batch"] > j["batch_first"]'
run 0 plan noise.ini --net-ranks 2 --json
json 'len(j["stages"]) == 1 and j["run_rank_bytes"] is None and j["run_rank_bytes_fixed"] > 0'
finish
