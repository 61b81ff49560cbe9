# stint serve: models that do not fit together are loaded when they are asked for.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
python=/usr/bin/python3
export XDG_CACHE_HOME=$work/cache
run 0 data glyphs --out g --train 72 --test 36 --size 8 -q
for i in 1 2 3; do
    printf '[model]\nname = mlp\nwidth = 1024\n[train]\nepochs = 1\nbatch = 36\nseed = %d\n' $i >a.ini
    run 0 train a.ini --data g --out m$i -q
done
seq 300 | awk '{ print "a cat sat on the mat", $1 }' >text.txt
printf '[model]\nname = gpt\ndepth = 2\nwidth = 192\nheads = 2\ncontext = 64\n[data]\npath = text.txt\ntokenizer = char\n[train]\nsteps = 8\nbatch = 4\n' >t.ini
run 0 train t.ini --out t -q

"$STINT" serve m=m1 --sla 1s --listen nowhere >out 2>err
if [ $? -eq 8 ] && grep -q microhttpd err; then
    echo "skipped: no libmicrohttpd"
    exit 77
fi
flags="--batch-max 4 -j 1 --max-body 1M --max-connections 20"
serve() { # ARGUMENT...
    rm -f address
    # shellcheck disable=SC2086
    "$STINT" serve $flags --listen 127.0.0.1:0 --address-file address --json "$@" >served 2>served.err </dev/null &
    server=$!
    for _ in $(seq 300); do [ -s address ] && return; kill -0 $server 2>/dev/null || break; sleep 0.05; done
    fail "stint serve $* did not begin: $(cat served.err)"
}
end() {
    kill -TERM $server
    wait $server || fail "stint serve ended with $?: $(cat served.err)"
    cp served out
}
client() { $python "$STINT_SOURCE/tests/cli/serve_demand_client.py" "$1" "$(cat address)" || fail "serve_demand_client.py $1"; }

# ---- all fit, for the answers; then the budget that one of them fits ----
serve a=m1 b=m2 c=m3 t=t --sla 10s
client keep
end
# The message names the least that would do.
run 3 serve a=m1 b=m2 c=m3 t=t --sla 10s $flags --memory 1M --explain
least=$(sed -n 's/.* or --memory \([0-9]*\)M.*/\1/p' err)
budget=$((least + 1))M
run 0 serve a=m1 b=m2 c=m3 t=t --sla 10s $flags --memory $budget --explain
json 'j["on_demand"] and all(m["load_s"] > 0 and m["weights_bytes"] > 1e6 for m in j["models"])'
json 'j["loaded_max_bytes"] < 2 * max(m["weights_bytes"] for m in j["models"])'
serve a=m1 b=m2 c=m3 t=t --sla 10s --memory $budget
for what in same crowd impatient; do client $what; done
end
json 'j["served"] > 150 and j["rejected"] >= 1'
grep -qE '__(asan|tsan)_init' "$STINT" || json 'j["peak_rss_bytes"] <= j["planned_peak_bytes"]'

# ---- new weights of a model that is not in, and a file that is gone bad ----
cp -r m2 live
run 3 serve a=m1 b=live c=m3 --sla 10s $flags --memory 1M --explain
least=$(sed -n 's/.* or --memory \([0-9]*\)M.*/\1/p' err)
serve a=m1 b=live c=m3 --sla 10s --memory "$((least + 6))M"
client reload
end
cp -r m2 bad
serve a=m1 b=bad --sla 10s --memory "$((least + 1))M"
client damaged
end
json 'j["rejected"] >= 1 and j["served"] >= 2'

# ---- an end with requests that wait for a model: they are answered ----
serve a=m1 b=m2 c=m3 t=t --sla 10s --memory $budget
client drain
end
finish
