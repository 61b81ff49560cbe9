# stint serve and stint bench serve: answers beside NumPy, many clients, bad requests, the
# end, memory, simulations; the commands of docs/serving.md.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
python=/usr/bin/python3 # Debian's, which has python3-numpy
export XDG_CACHE_HOME=$work/cache
run 0 data glyphs --out g --train 72 --test 36 --size 8 -q
printf '[model]\nname = mlp\nwidth = 16\n[train]\nepochs = 1\nbatch = 36\n' >a.ini
run 0 train a.ini --data g --out r -q

"$STINT" serve m=r --sla 1s --listen nowhere >out 2>err
if [ $? -eq 8 ] && grep -q microhttpd err; then
    echo "skipped: no libmicrohttpd"
    exit 77
fi
run 0 serve m=r --sla 1s --batch-max 16 --explain
json 'j["sla_possible"] and j["planned_peak_bytes"] > 0 and j["cut"]'
json 'j["models"][0]["batches"] == [1, 2, 3, 4, 6, 8, 12, 16] and j["models"][0]["name"] == "m"'
json 'len(j["models"][0]["p95_s"]) == len(j["models"][0]["sizes"])'

serve() { # ARGUMENT...: in the background, until it is ready
    rm -f address
    "$STINT" serve "$@" --address-file address --json >served 2>served.err </dev/null &
    server=$!
    for _ in $(seq 300); do
        [ -s address ] && return
        kill -0 $server 2>/dev/null || break
        sleep 0.05
    done
    fail "stint serve $* did not begin: $(cat served.err)"
}
end() { # WANTED-STATUS
    kill -TERM $server
    wait $server
    local got=$?
    [ $got -eq "$1" ] || fail "stint serve ended with $got: $(cat served.err)"
    cp served out
}
client() { $python "$STINT_SOURCE/tests/cli/serve_client.py" "$1" "$(cat address)" \
    r/model.safetensors $server || fail "serve_client.py $1"; }

for cut in auto 1; do
    serve m=r --sla 1s --listen 127.0.0.1:0 --batch-max 16 --max-body 2M --cut $cut
    for what in answers crowd bad protocol; do client $what; done
    end 0
    json 'j["served"] > 300 and j["rejected"] >= 1 and j["failed"] > 10'
    grep -qE '__(asan|tsan)_init' "$STINT" ||
        json 'j["peak_rss_bytes"] <= j["planned_peak_bytes"]'
done
serve m=r --sla 1s --listen "unix:$work/socket" --memory 200M --max-body 1M
client answers
end 0
[ ! -e socket ] || fail "the socket stays"
grep -qE '__(asan|tsan)_init' "$STINT" ||
    json 'j["peak_rss_bytes"] <= j["planned_peak_bytes"] <= 200 * 2**20'

# ---- new weights while it serves: whole, or the old ones stay ----
run 0 train a.ini --data g --out new --seed 5 -q
cp -r r live
serve m=live --sla 2s --listen 127.0.0.1:0 --batch-max 16
version() { curl -s "http://$(cat address)/v2/models/m" | $python -c 'import json,sys; print(json.load(sys.stdin)["versions"][0])'; }
if command -v curl >/dev/null; then
    old=$(version)
    load() { curl -s -o "$work/loaded" -w '%{http_code}' -X POST "http://$(cat address)/v2/repository/models/m/load"; }
    client crowd &
    cp new/model.safetensors live/next && mv live/next live/model.safetensors
    wait $!
    [ "$(load)" = 200 ] || fail "load: $(cat loaded)"
    new=$(version)
    [ "$old" != "$new" ] || fail "the version stays"
    head -c 2000 new/model.safetensors >live/model.safetensors
    [ "$(load)" = 400 ] || fail "a damaged file was loaded: $(cat loaded)"
    [ "$(version)" = "$new" ] || fail "a damaged file changed the version"
    cp r/model.safetensors live/model.safetensors
    kill -HUP $server
    for _ in $(seq 100); do [ "$(version)" = "$old" ] && break; sleep 0.05; done
    [ "$(version)" = "$old" ] || fail "SIGHUP loads nothing"
    client answers
fi
end 0

# ---- memory: what one client or many may make the server take ----
serve m=r --sla 1s --listen 127.0.0.1:0 --memory 100M --max-body 1M --max-connections 200
client memory
end 0
json 'j["served"] == 2 and j["rejected"] >= 1 and j["served"] + j["rejected"] + j["failed"] == 154'
grep -qE '__(asan|tsan)_init' "$STINT" ||
    json 'j["peak_rss_bytes"] <= j["planned_peak_bytes"] <= 100 * 2**20'

# ---- large bodies and answers; more connections than may be ----
serve m=r --sla 5s --listen 127.0.0.1:0 --batch-max 128 --max-connections 8
client large
client limit
end 0
json 'j["served"] > 30 and j["rejected"] >= 21'
files=$(ulimit -Hn)
if [ "$files" != unlimited ] && [ "$files" -lt 65600 ]; then
    run 2 serve m=r --sla 1s --listen 127.0.0.1:0 --max-connections 65536 --cut 1
    says err "ulimit"
fi

# ---- the end under load: what was served has been answered ----
serve m=r --sla 1s --listen 127.0.0.1:0 --cut 1
client drain >count
wait $server || fail "stint serve ended with $?: $(cat served.err)"
cp served out
json 'j["served"] == int(open("count").read()) > 0'
serve m=r --sla 100s --listen 127.0.0.1:0 --policy fifs --batch-delay 60s --drain 100ms
client cut_off
wait $server
[ $? -eq 143 ] || fail "a drain that is cut off: $(cat served.err)"

# ---- load, and more of it than there is time for ----
serve m=r --sla 300ms --listen 127.0.0.1:0 --tables-out tables.json
run 0 bench serve --url "http://$(cat address)" --arrivals poisson:100 --batch 3 --duration 1s --json
json 'j["kind"] == "real" and j["sent"] == j["served"] + j["rejected"] + j["late"] + j["failed"]'
json 'j["sent"] > 50 and j["failed"] == 0'
run 0 bench serve --url "http://$(cat address)" --raw /v2 --requests 200 --arrivals poisson:2000 --json
json 'j["served"] == 200'
run 5 serve m=r --sla 1s --listen "$(cat address)" --cut 1
says err "cannot listen"
end 0
run 0 serve m=r --sla 300ms --tables tables.json --explain
run 6 bench serve --url http://127.0.0.1:9 --requests 1

# ---- other batches than expected: another cut, nothing lost ----
if [ "$(nproc)" -ge 2 ] && $python -c 'import ctypes; ctypes.CDLL("libglpk.so.40")' 2>/dev/null; then
    cat >drift.json <<'END'
{"format":"stint-serve-tables","units":2,"legal":"any","models":[{"name":"m","sla_s":1,
"sizes":[1,2],"batches":[1,16],"p50_s":[[0.010,0.16],[0.009,0.06]],"p95_s":[[0.010,0.16],[0.009,0.06]]}]}
END
    printf '0,1\n1,1\n' >ones.csv
    serve m=r --sla 1s --listen 127.0.0.1:0 -j 2 --batch-max 16 --tables drift.json --traffic ones.csv
    metric() { $python -c 'import sys,urllib.request as u
for l in u.urlopen("http://" + sys.argv[1] + "/metrics").read().decode().splitlines():
    if l.startswith(sys.argv[2] + " "): print(int(float(l.split()[1])))' "$(cat address)" "$1"; }
    [ "$(metric stint_recuts_total)" = 0 ] || fail "cut anew before anything came"
    run 0 bench serve --url "http://$(cat address)" --arrivals poisson:100 --batch 16 --duration 4s --json
    json 'j["failed"] == 0 and j["late"] == 0 and j["served"] + j["rejected"] == j["sent"]'
    [ "$(metric stint_recuts_total)" -ge 1 ] || fail "large batches, the same cut"
    client answers
    end 0
fi

# ---- simulations ----
cat >two.json <<'END'
{"format":"stint-serve-tables","units":14,"legal":"any","models":[{"name":"m","sla_s":0.05,
"sizes":[1,2],"batches":[1,2,3,4],"p50_s":[[0.010,0.016,0.024,0.032],[0.008,0.010,0.013,0.016]],
"p95_s":[[0.010,0.016,0.024,0.032],[0.008,0.010,0.013,0.016]],"share":[0.4,0.3,0.2,0.1]}]}
END
cat >slow.json <<'END'
{"format":"stint-serve-tables","units":1,"legal":"any","models":[{"name":"m","sla_s":0.3,
"sizes":[1],"batches":[1,15,16],"p50_s":[[0.010,0.02,0.8]],"p95_s":[[0.010,0.02,0.8]]}]}
END
cat >rare.json <<'END'
{"format":"stint-serve-tables","units":4,"legal":"any","models":[{"name":"m","sla_s":0.05,
"sizes":[1,4],"batches":[1,8],"p50_s":[[0.010,0.080],[0.009,0.021]],"p95_s":[[0.010,0.080],[0.009,0.021]],"share":[0.97,0.03]}]}
END
run 0 bench serve --simulate two.json --cut paris --arrivals poisson:400 --requests 20000 --json
json 'j["kind"] == "sim" and len(j["partitions"]) == 9 and j["sent"] == 20000'
cp out first
run 0 bench serve --simulate two.json --cut paris --arrivals poisson:400 --requests 20000 --json
cmp -s out first || fail "two simulations differ"
# Where ten of a hundred queries may be late no partition is kept for the rarest batch.
run 0 bench serve --simulate rare.json --quantile 0.99 --find-rate --admit all --late serve --batch-max 1 --requests 5000 --json
cp out strict
run 0 bench serve --simulate rare.json --quantile 0.9 --find-rate --admit all --late serve --batch-max 1 --requests 5000 --json
json 'len(j["partitions"]) == 4 and all(p["units"] == 1 for p in j["partitions"])'
rate() { $python -c 'import json,sys; print(int(json.load(open(sys.argv[1]))["max_rate_per_s"]))' "$1"; }
[ "$(rate out)" -gt "$(rate strict)" ] || fail "rates: $(rate out), and $(rate strict) where all are to be in time"
run 3 serve m=r --sla 300ms --tables slow.json --batch-max 16 -j 1 --explain
run 0 serve m=r --sla 300ms --tables slow.json --batch-max 16 -j 1 --quantile 0.8 --explain
run 0 bench serve --simulate two.json --find-rate --batch-max 1 --admit all --requests 20000 --json
json '300 < 0.95 * j["max_rate_per_s"] < 880' # five of a hundred are given up

# ---- what cannot be ----
cat >hole.json <<'END'
{"format":"stint-serve-tables","units":4,"models":[{"name":"a","sla_s":1,"sizes":[1,2],"batches":[1],
"p50_s":[[0.01],[0.01]],"p95_s":[[0.01],[0.01]]},{"name":"b","sla_s":1,"sizes":[2],"batches":[1],
"p50_s":[[0.01]],"p95_s":[[0.01]]}]}
END
run 3 serve m=r --sla 1us --explain
says err "no partition answers a batch of"
run 3 serve m=r --sla 1s --memory 1M --explain
run 2 serve m=r --explain
says err "--sla"
run 2 serve m=r m=r --sla 1s --explain
says err "two models"
run 2 serve m=r --sla x=1s --explain
run 2 serve m=r --sla 1s --cut 3x9 --explain
run 2 serve m=r --sla 1s --listen nowhere
run 2 serve m=r --sla 1s --listen 127.0.0.1:99999
echo kept >file
run 5 serve m=r --sla 1s --listen "unix:$work/file" --cut 1
[ "$(cat file)" = kept ] || fail "a file in the place of a socket is gone"
run 2 bench serve --simulate hole.json --model b --cut 1,1 --policy fifs --requests 10
says err "no partition of a size"
run 0 bench serve --simulate hole.json --model b --cut 1,2 --policy fifs --requests 10
run 4 serve m=r --sla 1s --tables two.json --explain
run 4 serve m=a.ini --sla 1s --explain
run 2 serve m=r --sla 1s --tables-out r/model.safetensors --explain
says err "written over"
run 2 bench serve
run 2 bench serve --simulate two.json --batch 9
run 4 bench serve --simulate a.ini
run 2 bench serve --simulate two.json --arrivals often
finish
