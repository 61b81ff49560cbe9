# A name that is loopback at home, as Debian has that of the host itself (127.0.1.1): rank
# 0 listens where others reach it. /etc/hosts is stood in for in a mount namespace.
. "$(dirname "$0")/../cli/cli_lib.sh"
cd "$work" || exit 1
printf '127.0.0.1 localhost\n127.0.1.1 stint-home\n' >hosts
sandbox() { unshare --user --map-root-user --mount "$@"; }
sandbox mount --bind hosts /etc/hosts 2>why || {
    echo "no mounts of our own here: $(cat why)" >&2
    exit 77
}
port() { python3 -c 'import random; print(random.randrange(10000, 32768))'; }

# met ROOT-OF-RANK-0 ROOT-OF-RANK-1 STATUS
met() {
    local status=0 port
    port=$(port)
    # shellcheck disable=SC2016 # for the inner shell
    sandbox sh -c 'mount --bind hosts /etc/hosts && exec "$@"' sh "$STINT" net check --net-root "$1:$port" \
        --net-ranks 2 --net-rank 0 --net-timeout 2s >out.0 2>err.0 </dev/null &
    "$STINT" net check --net-root "$2:$port" --net-ranks 2 --net-rank 1 --net-timeout 2s >out.1 2>err.1 </dev/null
    wait $! || status=$?
    [ "$status" -eq "$3" ] || fail "$1 and $2: status $status, wanted $3: $(cat err.0 err.1)"
}

# (Whoever listens at 127.0.1.1 alone is not found at 127.0.0.1, as by another host.)
met stint-home 127.0.0.1 0
cp err.0 err
says err "stint-home is 127.0.1.1 on this host"
says err "rank 0 listens at all of the host's addresses"
met stint-home 127.0.1.1 0
# an address and localhost are meant as they stand
met 127.0.1.1 127.0.0.1 6
grep -q "listens at all" err.0 && fail "an address was taken for a name"
met localhost 127.0.0.1 0
grep -q "listens at all" err.0 && fail "localhost was opened to others"
met nowhere-at-all.invalid 127.0.0.1 6
cp err.0 err
says err "no address of that name is known here"
finish
