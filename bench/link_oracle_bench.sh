#!/usr/bin/env bash
# Does the fit of links find what SimGrid was told? Two hosts, a link of 1 GB/s and 10 us whose
# factors are 1: alpha within 0.5 % and beta within 0.1 % are asked for (SMPI adds 22 ns of its
# own to a message). Then SMPI's own factors, whose segments it should find.
# Needs smpicc and smpirun (Debian: libsimgrid-dev); without them it says so and ends with 8.
#   bench/link_oracle_bench.sh
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
command -v smpicc >/dev/null && command -v smpirun >/dev/null ||
    { echo "link_oracle_bench.sh: no SimGrid here; install libsimgrid-dev" >&2; exit 8; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/two.xml" <<'XML'
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="z" routing="Full">
    <host id="a" speed="1Gf"/>
    <host id="b" speed="1Gf"/>
    <link id="l" bandwidth="1GBps" latency="10us"/>
    <route src="a" dst="b"><link_ctn id="l"/></route>
  </zone>
</platform>
XML
printf 'a\nb\n' >"$work/hosts"
smpicc -O2 -o "$work/pingpong" bench/smpi_pingpong.c -lm
samples() { # OPTION...
    smpirun -np 2 -platform "$work/two.xml" -hostfile "$work/hosts" \
        --cfg=smpi/simulate-computation:no \
        --cfg=network/crosstraffic:0 --cfg=network/TCP-gamma:0 --log=root.thresh:error "$@" \
        "$work/pingpong" 40 2>/dev/null
}
echo "1 GB/s, 10 us, factors 1"
samples --cfg=smpi/bw-factor:0:1 --cfg=smpi/lat-factor:0:1 --cfg=smpi/async-small-thresh:0 \
    --cfg=smpi/send-is-detached-thresh:0 >"$work/plain"
"$build/bench/link_oracle_bench" 10e-6 1e-9 <"$work/plain"
echo "SMPI's own factors"
samples >"$work/own"
"$build/bench/link_oracle_bench" <"$work/own"
