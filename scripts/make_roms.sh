#!/bin/bash
# Assembles the programs of recipes/roms with dasm.
#
#   scripts/make_roms.sh            writes the images anew
#   scripts/make_roms.sh --check    says which images are not what their sources give
set -euo pipefail
cd "$(dirname "$0")/../recipes/roms"

# The order is that of M_2K to M_DPC in mappers.asm.
mappers=(2k 4k cv f8 f6 f4 f8sc f6sc f4sc fa fe ua e0 e7 3f 3e dpc)

command -v dasm >/dev/null || {
    echo "make_roms: dasm is not here (Debian: dasm)" >&2
    exit 77
}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

assemble() { # source, image, dasm's options
    if ! dasm "$1" -f3 "-o$made/$2" "${@:3}" >"$made/said"; then
        cat "$made/said" >&2
        exit 1
    fi
}

assemble rally.asm rally.bin
assemble bricks.asm bricks.bin
for i in "${!mappers[@]}"; do
    assemble mappers.asm "mapper-${mappers[i]}.bin" "-DMAPPER=$i"
done
rm -f "$made/said"

if [ "${1:-}" = --check ]; then
    status=0
    for image in "$made"/*.bin; do
        cmp -s "$image" "${image##*/}" && continue
        echo "recipes/roms/${image##*/} is not what its source gives; scripts/make_roms.sh" >&2
        status=1
    done
    exit $status
fi
cp "$made"/*.bin .
