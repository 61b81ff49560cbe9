#!/usr/bin/env bash
# Runs a command as on a newcomer's machine: in a root of Debian 12 with nothing in it
# (debootstrap's minbase) but the files that git tracks here, as they are now.
#
#   scripts/bare.sh [--keep NAME] [--without PACKAGE]... COMMAND [ARGUMENT...]
#   scripts/bare.sh --remove NAME
#
# --keep      the root stays under this name, and the next command with it finds what this
#             one left; without it every call has a fresh root, removed at the end
# --without   takes a package off the root's scripts/packages.txt: does COMMAND notice?
# --remove    removes a root that was kept
#
# The exit code is COMMAND's; 125 if it could not even begin. Needs root and debootstrap.
# The pristine root and the kept ones lie in ${XDG_CACHE_HOME:-~/.cache}/stint/bare, which
# may be deleted at any time. Network and processors are this machine's; packages, programs,
# environment, processes and mounts are not. The mirror is the one that apt uses here.
set -euo pipefail

suite=bookworm
project=$(cd "$(dirname "$0")/.." && pwd)
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/stint/bare
. "$project/scripts/setup.sh"

refuse() {
    printf 'bare.sh: %s\n' "$@" >&2
    exit 125
}

usage() { refuse "$1" "usage: scripts/bare.sh [--keep NAME] [--without PACKAGE]... COMMAND..."; }

read_arguments() { # sets keep, remove, without and command
    keep='' remove='' without=()
    while [ $# -gt 0 ]; do
        case $1 in
        --keep | --remove | --without)
            [ $# -ge 2 ] || usage "$1 needs a word after it"
            case $1 in --keep) keep=$2 ;; --remove) remove=$2 ;; *) without+=("$2") ;; esac
            shift 2
            ;;
        -*) usage "unknown option $1" ;;
        *) break ;;
        esac
    done
    command=("$@")
    case $keep$remove in */* | .*) usage "'$keep$remove' is no name of a root" ;; esac
    [ -n "$remove" ] || [ $# -gt 0 ] || usage "no command"
    local name
    for name in "${without[@]}"; do
        grep -qE "^[a-z]+ $name\$" "$project/scripts/packages.txt" ||
            usage "--without $name: no such package in scripts/packages.txt"
    done
}

require_tools() {
    [ "$(id -u)" -eq 0 ] ||
        refuse "only root can make a root of its own: run it as root (sudo $0 ...)"
    command -v debootstrap >/dev/null ||
        refuse "debootstrap is not in PATH: apt-get install debootstrap (in /usr/sbin)"
    git_here rev-parse >/dev/null 2>&1 ||
        refuse "$project is no working tree of git, whose files could be listed"
}

git_here() { git -c safe.directory="$project" -C "$project" "$@"; }

# Lines "RELEASE URI" of the Debian archives that apt uses on this machine, if it has any.
# (Their origin is known once apt has fetched their lists; before, the address must do.)
host_archives() {
    apt-get indextargets --format '$(ORIGIN)|$(COMPONENT)|$(RELEASE)|$(REPO_URI)' \
        'Created-By: Packages' 2>/dev/null |
        awk -F'|' '$2 == "main" && ($1 == "Debian" || $4 ~ /\/debian(-security)?\/?$/) {
            print $3, $4 }'
}

# archive_uri SUFFIX DEFAULT: the archive of the host's release, release-updates or
# release-security. A host without any has the default.
archive_uri() {
    host_archives | awk -v suffix="$1" -v default_uri="$2" '
        { any = 1; tail = $1; if (!sub(/^.*-/, "-", tail)) tail = ""
          if (tail == suffix && uri == "") uri = $2 }
        END { print any ? uri : default_uri }'
}

# The proxy of the scheme, from apt's configuration or from the environment.
host_proxy() { # http|https
    local proxy variable=${1}_proxy
    eval "$(apt-config shell proxy "Acquire::${1}::Proxy" 2>/dev/null)"
    printf '%s' "${proxy:-${!variable:-}}"
}

make_pristine() {
    local mirror partial=$pristine.part more=()
    [ -d "$pristine" ] && return
    mirror=$(archive_uri '' http://deb.debian.org/debian)
    stint_say "Making a root of Debian 12 from ${mirror:=http://deb.debian.org/debian}"
    rm -rf --one-file-system "$partial"
    case $mirror in https:*) more=(--include=ca-certificates) ;; esac
    http_proxy=$(host_proxy http) https_proxy=$(host_proxy https) \
        debootstrap --variant=minbase "${more[@]}" "$suite" "$partial" "$mirror" \
        >"$cache/debootstrap.log" 2>&1 || {
        tail -n 20 "$cache/debootstrap.log" >&2
        refuse "debootstrap failed; the whole log is in $cache/debootstrap.log"
    }
    rm -f "$partial"/var/cache/apt/archives/*.deb
    mv "$partial" "$pristine"
}

# How the root reaches the mirror: archives, proxies and the names of hosts.
write_apt_settings() {
    local suffix uri default=http://deb.debian.org/debian
    for suffix in '' -updates -security; do
        [ "$suffix" = -security ] && default+=-security
        uri=$(archive_uri "$suffix" "$default")
        [ -z "$uri" ] || echo "deb $uri $suite$suffix main"
    done >"$root/etc/apt/sources.list"
    {
        apt-config dump Acquire 2>/dev/null | grep -E '::(Check-Valid-Until|Check-Date) ' || :
        for suffix in http https; do
            uri=$(host_proxy $suffix)
            [ -z "$uri" ] || echo "Acquire::${suffix}::Proxy \"$uri\";"
        done
    } >"$root/etc/apt/apt.conf.d/80bare"
    rm -f "$root/etc/resolv.conf"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
}

# The names of tracked files that are here, each ended by a zero byte.
tracked_files() {
    local name
    git_here ls-files -z | while IFS= read -r -d '' name; do
        [ ! -e "$project/$name" ] && [ ! -L "$project/$name" ] || printf '%s\0' "$name"
    done | LC_ALL=C sort -z
}

copy_project() {
    local name list=$root/var/lib/stint-files
    mkdir -p "$root/stint"
    tracked_files >"$list.new"
    # What a kept root has from an earlier copy, and what is no longer tracked.
    [ ! -f "$list" ] || LC_ALL=C comm -z -23 "$list" "$list.new" |
        (cd "$root/stint" && xargs -0 -r rm -f --)
    mv "$list.new" "$list"
    tar -C "$project" --null --no-recursion -T "$list" -cf - |
        tar -C "$root/stint" --no-same-owner -xf -
    for name in "${without[@]}"; do
        sed -i "/^[a-z]* $name\$/d" "$root/stint/scripts/packages.txt"
    done
}

make_root() {
    mkdir -p "$cache"
    (flock 9 && make_pristine) 9>"$cache/lock"
    remove_abandoned
    if [ -n "$keep" ]; then
        root=$cache/kept-$keep
    else
        root=$cache/fresh-$$
    fi
    [ -d "$root" ] || cp -a --reflink=auto "$pristine" "$root"
    write_apt_settings
    copy_project
}

remove_abandoned() { # fresh roots of calls that were killed
    local folder
    for folder in "$cache"/fresh-*; do
        [ ! -d "$folder" ] || [ -d "/proc/${folder##*-}" ] ||
            rm -rf --one-file-system "$folder"
    done
}

# inside ROOT COMMAND...: the first process of new namespaces of mounts and processes. The
# kernel takes the mounts away together with the last process, however that ends.
inside() {
    set -eu
    local root=$1 node
    shift
    mount --bind "$root" "$root"
    cd "$root"
    mount -t proc proc proc
    mount --rbind /sys sys
    mount -t tmpfs -o mode=755 tmpfs run
    mount -t tmpfs -o mode=755 tmpfs dev
    for node in null zero full random urandom tty; do
        : >dev/$node
        mount --bind /dev/$node dev/$node
    done
    mkdir dev/pts dev/shm
    mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
    mount -t tmpfs tmpfs dev/shm
    ln -s pts/ptmx dev/ptmx
    ln -s /proc/self/fd dev/fd
    ln -s /proc/self/fd/0 dev/stdin
    ln -s /proc/self/fd/1 dev/stdout
    ln -s /proc/self/fd/2 dev/stderr
    # The old root comes to lie on the new one, and is taken off.
    pivot_root . .
    umount -l .
    # (Not replaced by COMMAND: the first process has to wait for orphans. In the
    # background of bare.sh, SIGINT is ignored, which a command inherits.)
    # shellcheck disable=SC2016
    exec env -i --default-signal=INT,QUIT HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        /bin/bash -c 'cd /stint; "$@"; exit $?' bare "$@"
}

# Runs the command in the root; killed together with this script, even by SIGKILL.
run_inside() {
    local code=0 began=$SECONDS cpu
    cpu=$(stint_cpu_seconds)
    export -f inside
    # shellcheck disable=SC2016
    setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child \
        bash -c 'inside "$@"' inside "$root" "${command[@]}" <&0 &
    child=$!
    wait "$child" || code=$?
    child=
    stint_say "${command[*]}: exit code $code after $((SECONDS - began)) s," \
        "$(($(stint_cpu_seconds) - cpu)) s of processors"
    return "$code"
}

clean_up() {
    trap '' INT TERM HUP
    if [ -n "$child" ]; then
        kill -KILL "$child" 2>/dev/null || :
        wait "$child" 2>/dev/null || :
    fi
    [ -z "$root" ] || [ -n "$keep" ] || rm -rf --one-file-system "$root" ||
        { sleep 1 && rm -rf --one-file-system "$root"; } # its processes are gone by now
}

# (Read to its end before anything runs, so that it may be edited meanwhile.)
main() {
    child='' root=''
    read_arguments "$@"
    require_tools
    pristine=$cache/$suite
    if [ -n "$remove" ]; then
        rm -rf --one-file-system "$cache/kept-$remove"
        exit
    fi
    trap clean_up EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    make_root
    run_inside
}

main "$@"; exit
