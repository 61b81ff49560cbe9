# Sourced by ./quickstart, ./check and bench/*.sh from the project's root: packages and
# builds. Nothing here asks questions.

stint_say() { printf '== %s\n' "$*"; }

# stint_stage NAME: what comes next, until the next one; stint_stages prints how long each
# took, and how much time of processors.
stint_stage() {
    stint_stage_end
    stage_name=$1 stage_began=$SECONDS stage_cpu=$(stint_cpu_seconds)
}

stint_stage_end() {
    [ -z "${stage_name:-}" ] && return
    stage_lines+=$(printf '%-32s %6d s %8d s' "$stage_name" $((SECONDS - stage_began)) \
        $(($(stint_cpu_seconds) - stage_cpu)))$'\n'
    stage_name=
}

stint_cpu_seconds() { # of all children that have ended; proc(5)
    awk -v tick="$(getconf CLK_TCK)" '{ print int(($16 + $17) / tick) }' /proc/$$/stat
}

stint_stages() {
    stint_stage_end
    printf '\n%-32s %8s %10s\n%s' stage took processors "${stage_lines:-}"
}

# stint_packages KIND...: make sure that the Debian packages of these kinds are installed.
stint_packages() {
    local list missing=() name
    list=$(awk -v kinds=" $* " '$1 !~ /^#/ && index(kinds, " " $1 " ") { print $2 }' \
        scripts/packages.txt)
    if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
        echo "This is no Debian system. Please install what corresponds to these packages," >&2
        echo "then build with: cmake --preset release -DSTINT_BUILD_TESTS=OFF" \
            "-DSTINT_BUILD_BENCH=OFF && cmake --build --preset release" >&2
        echo "$list" | sed 's/^/    /' >&2
        exit 1
    fi
    for name in $list; do
        dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'ok installed' ||
            missing+=("$name")
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null 2>&1; then
            echo "These packages are missing, and there is no sudo; as root please run:" >&2
            echo "    apt-get install ${missing[*]}" >&2
            exit 1
        fi
        as_root=(sudo)
    fi
    stint_say "Installing ${#missing[@]} packages: ${missing[*]}"
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# stint_build PRESET [TARGET...] [-- CMAKE-OPTION...]: configure once, build quietly.
stint_build() {
    local preset=$1 targets=() log="build/$1.log"
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        targets+=("$1")
        shift
    done
    [ $# -gt 0 ] && shift
    [ ${#targets[@]} -eq 0 ] && targets=(stint)
    mkdir -p build
    stint_say "Building $preset: ${targets[*]}"
    if ! { cmake --preset "$preset" "$@" && cmake --build --preset "$preset" --target "${targets[@]}"; } \
        >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        echo "The build failed; the whole log is in $log." >&2
        exit 1
    fi
}
