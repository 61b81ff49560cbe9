#!/usr/bin/env bash
# Does `stint net simulate` agree with SimGrid? The same schedule of messages runs in both, on
# the same networks: hosts at one switch, at two with a trunk between, and in a fat tree; 1
# Gbit/s a host, 50 us, one part, no time to compute. SimGrid shares links fairly among flows, ours serve
# messages one after another.
# Needs smpicc and smpirun (Debian: libsimgrid-dev); without them it says so and ends with 8.
#   bench/rehearse_oracle.sh [VALUES]      (1000000)
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/release} values=${1:-1000000}
command -v smpicc >/dev/null && command -v smpirun >/dev/null ||
    { echo "rehearse_oracle.sh: no SimGrid here; install libsimgrid-dev" >&2; exit 8; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
smpicc -O2 -Isrc -Iinclude -o "$work/exchange" bench/smpi_exchange.c \
    "$build/libstint.a" -lm 2>"$work/cc.log" || { cat "$work/cc.log" >&2; exit 1; }

cluster() { # ID FIRST LAST MORE: 1 Gbit/s both ways, half of 50 us to the switch
    echo "<cluster id=\"$1\" prefix=\"h\" suffix=\"\" radical=\"$2-$3\" speed=\"1Gf\"" \
        "bw=\"125MBps\" lat=\"25us\" sharing_policy=\"SPLITDUPLEX\"" \
        "loopback_bw=\"5GBps\" loopback_lat=\"1us\" $4/>"
}

platform() { # TOPOLOGY HOSTS
    local last=$(($2 - 1)) half=$(($2 / 2))
    echo "<?xml version='1.0'?>"
    echo '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
    echo '<platform version="4.1">'
    case $1 in
    ethernet) cluster c 0 $last "" ;;
    dumbbell)
        echo '<zone id="all" routing="Full">'
        cluster a 0 $((half - 1)) 'router_id="ra"'
        cluster b $half $last 'router_id="rb"'
        echo '<link id="t" bandwidth="1250MBps" latency="25us" sharing_policy="SPLITDUPLEX"/>'
        echo '<zoneRoute src="a" dst="b" gw_src="ra" gw_dst="rb" symmetrical="NO"><link_ctn id="t" direction="UP"/></zoneRoute>'
        echo '<zoneRoute src="b" dst="a" gw_src="rb" gw_dst="ra" symmetrical="NO"><link_ctn id="t" direction="DOWN"/></zoneRoute>'
        echo '</zone>'
        ;;
    fat-tree) # leaves of 4 hosts, 4 uplinks each: full bisection
        cluster c 0 $last "topology=\"FAT_TREE\" topo_parameters=\"2;4,$(($2 / 4));1,4;1,1\" "
        ;;
    esac
    echo '</platform>'
}

echo "$values values; seconds: ours, SimGrid"
for topology in ethernet dumbbell fat-tree; do
    for ranks in 8 16 64; do
        for way in "scatter 1 4" "ring 1 4" "scatter 1 0.5" "two-level 4 0.5"; do
            # shellcheck disable=SC2086
            set -- $way
            hosts=$((ranks / $2))
            [ "$topology" = fat-tree ] && [ $((hosts % 4)) != 0 ] && continue
            platform $topology $hosts >"$work/net.xml"
            for ((i = 0; i < ranks; i++)); do echo "h$((i / $2))"; done >"$work/hosts"
            case $1 in scatter) number=0 ;; ring) number=1 ;; *) number=2 ;; esac
            bits=$([ "$3" = 4 ] && echo 32 || echo 4)
            bytes=$([ "$3" = 4 ] && echo 4 || echo 0.5078125) # with headers of buckets
            theirs=$(smpirun -np "$ranks" -platform "$work/net.xml" -hostfile "$work/hosts" \
                --cfg=smpi/simulate-computation:no --cfg=network/crosstraffic:0 \
                --cfg=network/TCP-gamma:0 --cfg=network/weight-S:0 \
                --cfg=smpi/bw-factor:0:1 --cfg=smpi/lat-factor:0:1 \
                --cfg=smpi/async-small-thresh:0 --cfg=smpi/send-is-detached-thresh:0 \
                --log=root.thresh:error "$work/exchange" $number "$2" "$values" $bytes \
                2>"$work/err") || { cat "$work/err" >&2; exit 1; }
            ours=$("$build/stint" net simulate --topology $topology -n "$ranks" --group "$2" \
                --scheme "$1" --values "$values" --bits $bits --leaf 4 --encode 0ns \
                --decode 0ns --whole --json |
                python3 -c "import json,sys
print(next(r['seconds'] for r in json.load(sys.stdin)['sums'] if r['bits'] == $bits))")
            python3 -c "print(f'{\"$topology\":<9} {$ranks:>3} ranks {\"$1\":<10} {$bits:>2} bits'
                  f'{$ours:>10.6f} {float(\"$theirs\"):>10.6f}  ratio {$ours / float(\"$theirs\"):.3f}')"
        done
    done
done
