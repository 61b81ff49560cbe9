# Two ranks in network namespaces joined by a link that is pulled: for five seconds, which
# nobody minds; for good, which both say in words, within --net-timeout.
if [ "$(id -u)" != 0 ]; then # namespaces are root's to make: be root in one of users
    inside=(unshare --user --map-root-user --mount --net bash -c
        'mount -t tmpfs none /run && exec bash "$0"')
    unshare --user --map-root-user --mount --net mount -t tmpfs none /run || exit 77
    exec "${inside[@]}" "$0"
fi
. "$(dirname "$0")/ranks_lib.sh"
a=stint-a-$$ b=stint-b-$$
trap 'ip netns del $a 2>/dev/null; ip netns del $b 2>/dev/null; rm -rf "$work"' EXIT
# (Namespaces can be had without programs in them: `exec` mounts /sys anew, which neither a
# chroot nor every container lets it do.)
{
    ip netns add $a && ip netns add $b && ip netns exec $a true && ip netns exec $b true &&
        ip link add v0 netns $a type veth peer name v0 netns $b
} 2>err || {
    echo "no programs in network namespaces joined by a link here: $(cat err)" >&2
    exit 77
}
for side in "$a 10.78.0.1" "$b 10.78.0.2"; do
    ip -n ${side% *} addr add ${side#* }/24 dev v0
    ip -n ${side% *} link set v0 up
    ip -n ${side% *} link set lo up
done

# joined ARGUMENT...: rank 0 in the one, rank 1 in the other; pids, out.R and err.R
joined() {
    local rank ns
    pids=()
    for rank in 1 0; do
        ns=$([ $rank = 0 ] && echo $a || echo $b)
        ip netns exec $ns "$STINT" train "$@" --quiet --net-root 10.78.0.1:29500 \
            --net-ranks 2 --net-rank $rank >out.$rank 2>err.$rank </dev/null &
        pids[rank]=$!
    done
}

run=(net.ini --set train.steps=150 --set run.checkpoint_every=5 --set train.eval_every=0)
"$STINT" train "${run[@]}" --out whole --quiet --json >out.0 || fail "whole"
want=$(sha out.0)

joined "${run[@]}" --out pulled --json --net-timeout 30s
until_file 'pulled/checkpoints/*5.safetensors'
ip -n $a link set v0 down
sleep 5
kill -0 "${pids[0]}" "${pids[1]}" 2>/dev/null || fail "a rank has left: $(cat err.0 err.1)"
ip -n $a link set v0 up
all_end 0
[ "$(sha out.0)" = "$want" ] || fail "pulled for 5 s: other weights"

joined "${run[@]}" --out cut --net-timeout 2s
until_file 'cut/checkpoints/*5.safetensors'
ip -n $a link set v0 down
all_end 6
speaks 0 "rank 1 ("
speaks 1 "rank 0 ("
for rank in 0 1; do
    speaks $rank "has been silent for"
    speaks $rank " of step "
done
speaks 0 "--resume goes on from it"
ip -n $a link set v0 up
joined "${run[@]}" --out cut --json --resume
all_end 0
[ "$(sha out.0)" = "$want" ] || fail "cut and resumed: other weights"

finish
