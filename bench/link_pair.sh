# Sourced by benches: two network namespaces, $a and $b, joined by a veth pair that tc shapes,
# and a folder $work; all of it is gone at the end of the script. Needs root. $burst may be set:
# what the link lends to a message that comes after a pause; and $limit: seconds a command of
# `both` may take (300).
[ "$(id -u)" = 0 ] || { echo "$(basename "$0"): network namespaces need root" >&2; exit 8; }
a=stint-a-$$ b=stint-b-$$ port=${port:-29400}
work=$(mktemp -d)
tidy() {
    ip netns del "$a" 2>/dev/null || true
    ip netns del "$b" 2>/dev/null || true
    rm -rf "$work"
}
trap tidy EXIT
trap 'exit 143' TERM INT

link_pair_up() { # RATE, as tc has it
    local side ns
    ip netns add "$a"
    ip netns add "$b"
    ip link add v0 netns "$a" type veth peer name v0 netns "$b"
    for side in "$a 10.77.0.1" "$b 10.77.0.2"; do
        ns=${side% *}
        ip -n "$ns" addr add "${side#* }/24" dev v0
        ip -n "$ns" link set v0 up
        ip -n "$ns" link set lo up
        tc -n "$ns" qdisc add dev v0 root tbf rate "$1" burst "${burst:-128kb}" latency 50ms
    done
}

shape() { # RATE
    local ns
    for ns in "$a" "$b"; do
        tc -n "$ns" qdisc change dev v0 root tbf rate "$1" burst "${burst:-128kb}" latency 50ms
    done
}

# both COMMAND...: with @ROOT and @RANK in its words, one rank a namespace and core; what
# rank R says is in $work/rankR.
both() {
    local rank ns pid pids=() failed=0
    port=$((port + 1))
    for rank in 1 0; do
        ns=$([ $rank = 0 ] && echo "$a" || echo "$b")
        local words=("${@//@ROOT/10.77.0.1:$port}")
        words=("${words[@]//@RANK/$rank}")
        GLOO_SOCKET_IFNAME=v0 timeout "${limit:-300}" ip netns exec "$ns" taskset -c $((rank % $(nproc))) \
            "${words[@]}" >"$work/rank$rank" 2>"$work/err$rank" </dev/null &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || failed=1
    done
    [ $failed = 0 ] || { cat "$work"/err* >&2; return 1; }
}
