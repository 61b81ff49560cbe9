# stint serve --units: shares of CPUs, kept by control groups; the answers of whole ones.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
python=/usr/bin/python3
export XDG_CACHE_HOME=$work/cache
run 0 data glyphs --out g --train 72 --test 36 --size 8 -q
printf '[model]\nname = mlp\nwidth = 16\n[train]\nepochs = 1\nbatch = 36\n' >a.ini
run 0 train a.ini --data g --out r -q

# ---- what there may be ----
run 2 serve m=r --sla 1s -j 1 --units 101 --explain
says err "1 to 100"
[ "$(nproc)" -lt 2 ] || run 2 serve m=r --sla 1s -j 2 --units 1 --explain
"$STINT" serve m=r --sla 1s -j 1 --units 4 --batch-max 2 --explain >out 2>err
case $? in
0) ;;
8) says err "control group"; echo "skipped: no control groups to be made"; exit 77 ;;
*) fail "--units: $(cat err)" ;;
esac
json 'j["units"] == 4 and j["models"][0]["sizes"] == [1, 2, 3, 4] and list(j["counts"]) == ["1", "2", "3", "4"]'
run 2 serve m=r --sla 1s -j 1 --units 4 --cut 3,2 --batch-max 2 --explain
says err "does not go into 4 units"

# ---- three unequal partitions of one CPU ----
groups() { find /sys/fs/cgroup -maxdepth 6 -type d -name "stint-$1-*" 2>/dev/null; }
rm -f address
"$STINT" serve m=r --sla 2s -j 1 --units 7 --cut 4,2,1 --listen 127.0.0.1:0 --batch-max 16 --max-body 2M \
    --address-file address --tables-out tables.json --json >served 2>served.err </dev/null &
server=$!
for _ in $(seq 600); do [ -s address ] && break; kill -0 $server 2>/dev/null || break; sleep 0.05; done
[ -s address ] || fail "stint serve did not begin: $(cat served.err)"
[ "$(groups $server | wc -l)" = 3 ] || fail "groups: $(groups $server)"
for folder in $(groups $server); do
    [ "$(cat "$folder/tasks" "$folder/cgroup.threads" 2>/dev/null | wc -l)" = 1 ] || fail "threads of $folder"
done
for what in answers crowd; do
    $python "$STINT_SOURCE/tests/cli/serve_client.py" $what "$(cat address)" r/model.safetensors $server ||
        fail "serve_client.py $what"
done
kill -TERM $server
wait $server || fail "stint serve ended with $?: $(cat served.err)"
[ -z "$(groups $server)" ] || fail "groups stay: $(groups $server)"
cp served out
json 'j["served"] > 300 and j["failed"] == 0'

# ---- the tables know of CPUs: no share lies on two ----
run 2 bench serve --simulate tables.json --cut 4,4 --requests 10
run 0 bench serve --simulate tables.json --cut 4,3 --requests 10
run 4 serve m=r --sla 2s -j 1 --tables tables.json --explain
run 0 serve m=r --sla 2s -j 1 --units 7 --tables tables.json --batch-max 16 --explain
finish
