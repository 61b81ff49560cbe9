# stint plan --net-ranks: what several processes take is said beforehand, and is what they
# then announce.
. "$(dirname "$0")/ranks_lib.sh"
# (A sanitizer's own memory is not planned.)
grep -q '^STINT_SANITIZE:.*=$' "$STINT_BUILD/CMakeCache.txt" && exact=1 || exact=
peak() { python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); print(j[sys.argv[2]])' "$@"; }

# same RANKS ARGUMENT...: a run of two steps announces what its plan says.
same() {
    local n=$1
    shift
    run 0 plan net.ini --net-ranks "$n" --json "$@"
    cp out plan
    begin "$n" net.ini --out "runs/$((runs += 1))" --json --set train.steps=2 "$@" "${links[@]}"
    all_end 0
    [ ! "$exact" ] || [ "$(peak plan peak_bytes)" = "$(peak out.0 planned_peak_bytes)" ] ||
        fail "$n ranks $*: $(peak out.0 planned_peak_bytes) announced, not $(peak plan peak_bytes)"
}
runs=0 links=(--net-sockets)
echo 'width = 4' | sed -i '/^name = resnet8/r /dev/stdin' net.ini
same 2
run 0 plan net.ini --net-ranks 2 --error 0 --memory 1G --json
[ ! "$exact" ] || same 2 --error 0 --memory "$(peak out smallest_bytes)"
same 3 --set net.bits=4
links=() # memory that processes of a host share
same 4 --set net.bits=4 --set net.scheme=two-level --set net.group=4

# What ranks cannot do is refused as a run would.
run 2 plan net.ini --net-ranks 0
says err "must be from 1 to 65536"
run 2 plan net.ini --net-ranks 9
says err "cannot be shared out to 9 processes; start at most 8"
run 2 plan net.ini --net-ranks 2 --batch auto --memory 1G
says err "every rank would find its own; give a number by --batch"
run 2 plan net.ini --net-ranks 4 --set net.scheme=two-level --set net.group=3
says err "4 ranks in groups of 3"
run 3 plan net.ini --net-ranks 2 --memory 4M
says err "memory: needs"
finish
