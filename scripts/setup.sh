#!/bin/bash
# Installs what building, testing and the lab need on Debian 12. Safe to repeat.
set -euo pipefail

readonly program_packages=(
    g++ gcc libc6-dev cmake ninja-build pkg-config dpkg-dev file python3
    libspdlog-dev libfmt-dev libcli11-dev libyaml-cpp-dev nlohmann-json3-dev
    libacl1-dev libssl-dev libexpected-dev libdtl-dev libutf8proc-dev libxxhash-dev libnfs-dev
)
# The unit and golden tests, the fuzzers, and what reads the code.
readonly test_packages=(
    "${program_packages[@]}" ccache mold git clang-16 libclang-rt-16-dev clang-format-19 clang-tidy-19
    catch2 python3-pytest clustershell pdsh openssh-client rsync squashfs-tools
)
# What boots a cluster of the lab.
readonly cluster_packages=(
    gcc libc6-dev user-mode-linux nfs-kernel-server nfs-common rpcbind iproute2 busybox-static
    e2fsprogs util-linux kmod acl procps python3 python3-yaml openssh-client openssh-server squashfs-tools
)
readonly lab_packages=(
    "${cluster_packages[@]}" attr mmdebstrap strace psmisc rsync squashfuse fuse3
    python3-pytest python3-venv prometheus clustershell
)
# The real launchers with which tests/launchers compares sharefs.
readonly launcher_packages=(
    openmpi-bin mpich slurm-client slurmctld slurmd libslurm-dev munge numactl time python3-torch python3-jsonschema
)

# The kernel of User Mode Linux looks for its modules where every kernel does; Debian puts them elsewhere.
readonly uml_modules=/usr/lib/uml/modules
readonly kernel_modules=/lib/modules

# The lab takes half of the processor's time with a kernel that need not trace the processes of its guests
# (`seccomp=`, Linux 6.16): this one of Debian sid, beside its own libc. Where it cannot be had, Debian 12's serves.
readonly newer_kernel=7.2um1
readonly newer_directory=/usr/local/lib/uml # the path of ld.so in it has to be shorter than that of the system's
readonly newer_program=/usr/local/bin/linux.uml

readonly service_policy=/usr/sbin/policy-rc.d
readonly saved_policy=$service_policy.before-sharefs-setup

usage() {
    cat <<END
usage: scripts/setup.sh [--build] [--test] [--lab] [--demo] [--check]

Installs the packages that sharefs is built and tested with; without an option
those of --test and --lab. Needs root, unless nothing is missing.

  --build   only what building the program needs
  --test    only what building it and the tests without a lab need
  --lab     only what the lab (tests/lab) and the launchers' tests need
  --demo    only what scripts/demo.sh needs: to build sharefs, and to boot its cluster
  --check   install nothing; say what is missing, and exit with 3 if anything is
  -h        this text
END
}

say() { printf 'setup: %s\n' "$*"; }

fail() {
    printf 'error: %s\n' "$1" >&2
    [[ -z ${2-} ]] || printf 'hint: %s\n' "$2" >&2
    exit "${3-1}"
}

# Prints those of the named packages that are not installed.
missing_packages() {
    local -A installed=()
    local status name
    while read -r status name; do
        [[ $status != installed ]] || installed[$name]=yes
    done < <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
    for name in "$@"; do
        [[ ${installed[$name]-} ]] || printf '%s\n' "$name"
    done
}

# Prints the versions of User Mode Linux whose modules are not where its kernel looks for them. With
# several packages to come, the version is not known yet: then there is nothing to print.
missing_modules() {
    local directory version
    for directory in "$uml_modules"/*/; do
        version=$(basename "$directory")
        [[ ! -d $directory || -e $kernel_modules/$version/modules.dep.bin ]] || printf '%s\n' "$version"
    done
}

# Tried once; remove its directory to have it tried again.
is_newer_kernel_missing() {
    [[ ! -e $newer_directory/$newer_kernel && $(dpkg --print-architecture) = amd64 ]]
}

# Packages of servers start them at once; the policy keeps them from it while we install.
forbid_services() {
    [[ ! -e $service_policy ]] || mv "$service_policy" "$saved_policy"
    printf '#!/bin/sh\nexit 101\n' >"$service_policy"
    chmod 755 "$service_policy"
    trap restore_services EXIT
}

restore_services() {
    rm -f "$service_policy"
    [[ ! -e $saved_policy ]] || mv "$saved_policy" "$service_policy"
}

install_packages() {
    say "installing $*"
    forbid_services
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update
    apt-get -qq -y --no-install-recommends install "$@" </dev/null >/dev/null
    restore_services
    trap - EXIT
}

link_modules() {
    local version
    for version; do
        say "linking the modules of User Mode Linux $version to $kernel_modules"
        mkdir -p "$kernel_modules"
        ln -sfn "$uml_modules/$version" "$kernel_modules/$version"
        depmod "$version"
    done
}

# Downloads and unpacks packages of Debian sid into a directory; of this machine's packages nothing changes.
unpack_from_sid() {
    local directory=$1 apt=$1/apt package
    shift
    mkdir -p "$apt"/{etc/{apt.conf.d,preferences.d},state/lists/partial,cache/archives/partial}
    echo 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian sid main' \
        >"$apt/etc/sources.list"
    local options=(-qq -o "Dir::Etc=$apt/etc" -o "Dir::State=$apt/state" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root
        -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o Acquire::Retries=1)
    apt-get "${options[@]}" update && (cd "$apt" && apt-get "${options[@]}" download "$@") || return 1
    for package in "$apt"/*.deb; do dpkg-deb -x "$package" "$directory" || return 1; done
}

# In place of the other one for whoever looks for `linux.uml` in PATH.
install_newer_kernel() {
    say "unpacking the kernel of the lab from user-mode-linux $newer_kernel of Debian sid"
    rm -rf "$newer_directory"
    mkdir -p "$newer_directory" "$uml_modules"
    local new=$newer_directory/new version=
    if unpack_from_sid "$new" "user-mode-linux=$newer_kernel" libc6; then
        cp -rT "$new/usr/lib/uml/modules" "$uml_modules"
        mv "$new/usr/lib/x86_64-linux-gnu/libc.so.6" "$newer_directory/"
        cp -L "$new/usr/lib64/ld-linux-x86-64.so.2" "$newer_directory/ld.so"
        # The program names the loader that it needs; that of this machine belongs to another libc.
        python3 - "$new/usr/bin/linux.uml" "$newer_directory/linux" "$newer_directory/ld.so" <<'END'
import pathlib, sys
source, program, loader = sys.argv[1:]
old = b"/lib64/ld-linux-x86-64.so.2\0"
pathlib.Path(program).write_bytes(pathlib.Path(source).read_bytes().replace(old, loader.encode().ljust(len(old), b"\0"), 1))
END
        chmod 755 "$newer_directory/linux"
        version=$(LD_LIBRARY_PATH=$newer_directory "$newer_directory/linux" --version) || version=
    fi
    rm -rf "$new"
    if [[ $version ]]; then
        printf '#!/bin/sh\n# Written by setup.sh of sharefs.\nunset LD_PRELOAD\nexport LD_LIBRARY_PATH=%s\nexec %s/linux "$@" seccomp=auto\n' \
            "$newer_directory" "$newer_directory" >"$newer_program"
        chmod 755 "$newer_program"
    else
        say "it cannot be had: the lab runs on the kernel of Debian 12"
        rm -f "$newer_program"
    fi
    : >"$newer_directory/$newer_kernel"
}

main() {
    local check= build= test= lab= demo= argument
    for argument; do
        case $argument in
            --build) build=yes ;;
            --test) test=yes ;;
            --lab) lab=yes ;;
            --demo) demo=yes ;;
            --check) check=yes ;;
            -h | --help)
                usage
                return 0
                ;;
            *) fail "unknown option: $argument" 'see `scripts/setup.sh -h`' 2 ;;
        esac
    done
    [[ $build || $test || $lab || $demo ]] || test=yes lab=yes
    command -v dpkg-query >/dev/null || fail 'this machine has no dpkg: the script is for Debian 12' '' 2

    local wanted=() packages=() versions=() newer=
    [[ -z $build ]] || wanted+=("${program_packages[@]}")
    [[ -z $test ]] || wanted+=("${test_packages[@]}")
    [[ -z $lab ]] || wanted+=("${lab_packages[@]}" "${launcher_packages[@]}")
    [[ -z $demo ]] || wanted+=("${program_packages[@]}" "${cluster_packages[@]}")
    mapfile -t packages < <(missing_packages "${wanted[@]}" | sort -u)
    [[ -z $lab$demo ]] || mapfile -t versions < <(missing_modules)
    [[ -z $lab ]] || ! is_newer_kernel_missing || newer=yes

    if ((${#packages[@]} + ${#versions[@]} == 0)) && [[ ! $newer ]] && [[ ! -e $saved_policy ]]; then
        say 'nothing is missing'
        return 0
    fi
    if [[ $check ]]; then
        ((${#packages[@]} == 0)) || say "missing packages: ${packages[*]}"
        ((${#versions[@]} == 0)) || say "missing link to the modules of User Mode Linux: ${versions[*]}"
        [[ ! $newer ]] || say "missing kernel of the lab: user-mode-linux $newer_kernel of Debian sid"
        return 3
    fi
    if ((EUID != 0)); then
        fail 'installing needs root' "run \`sudo $(realpath "$0") $*\`"
    fi
    [[ ! -e $saved_policy ]] || restore_services # of a run that was killed
    ((${#packages[@]} == 0)) || install_packages "${packages[@]}"
    [[ ! $newer ]] || install_newer_kernel
    if [[ $lab$demo ]]; then
        mapfile -t versions < <(missing_modules)
        ((${#versions[@]} == 0)) || link_modules "${versions[@]}"
    fi
    say 'done'
}

main "$@"
