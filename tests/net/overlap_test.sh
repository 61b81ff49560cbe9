# The sum over ranks beside the backward pass gives the bits of the sum after it: exact
# ones for any number of ranks, compressed ones for each.
. "$(dirname "$0")/ranks_lib.sh"

# weights N ARGUMENT...: of a run on N ranks
weights() {
    local n=$1
    shift
    rm -rf run
    begin "$n" net.ini --out run --json --set train.steps=2 --set train.shards=7 --set train.batch=28 "$@"
    all_end 0
    sha out.0
}

want=
for run in "1 true" "2 true" "2 false" "3 true" "4 true"; do
    set -- $run
    got=$(weights $1 -j $((1 + $1 % 2)) --set net.overlap=$2)
    echo "exact, $1 ranks, overlap $2: $got"
    [ "$got" = "${want:=$got}" ] || fail "exact sums of $1 ranks, overlap $2: other weights"
done

want=
for overlap in true false; do
    got=$(weights 2 -j 2 --set net.overlap=$overlap --set net.bits=3 --set net.rounding=correlated)
    echo "3 bits, 2 ranks, overlap $overlap: $got"
    [ "$got" = "${want:=$got}" ] || fail "3 bits, 2 ranks, overlap $overlap: other weights"
done

# A gradient that is not finite, met by the thread that sums: all ranks end with its words.
rm -rf run
begin 2 net.ini --out run --set net.bits=3 --set optimizer.lr=1e6
all_end 1
speaks 0 "is not finite"

finish
