// Rows of the table of launchers: what sets up an environment, a container or that of a Python project, and runs a
// command in it.
#include "cachefix/launchers/rows.hpp"

namespace sharefs::cachefix {
namespace {

using enum Means;

// What `uv run` and `uv tool run` have in common.
#define UV_FLAGS                                                                                                       \
  "-h/--help -v/--verbose -q/--quiet --isolated --no-env-file --offline --no-config --no-progress --native-tls "       \
  "--managed-python --no-managed-python --no-python-downloads -n/--no-cache -U/--upgrade --no-index --refresh "        \
  "--reinstall --compile-bytecode --no-sources --no-build --no-binary --no-build-isolation --require-build-hashes "    \
  "--no-require-build-hashes --system-certs "
#define UV_VALUES                                                                                                      \
  "-w/--with --with-editable --with-requirements --env-file -p/--python --directory --project --config-file "          \
  "--cache-dir --color --index --default-index -i/--index-url --extra-index-url -f/--find-links -P/--upgrade-package " \
  "--reinstall-package --index-strategy --keyring-provider --resolution --prerelease --exclude-newer --link-mode "     \
  "--refresh-package -C/--config-setting --no-build-package --no-binary-package --no-build-isolation-package "         \
  "--allow-insecure-host --python-platform --upgrade-group --prerelease-package --fork-strategy "                      \
  "--exclude-newer-package --no-sources-package --config-settings-package "

constexpr Launcher uv_tool(std::string_view name, std::string_view verbs) {
  return {.name = name,
          .verbs = verbs,
          .syntax = Syntax::exact,
          .flags = UV_FLAGS "--lfs -V/--version",
          .values = UV_VALUES "--from -c/--constraints -b/--build-constraints --overrides --torch-backend",
          .meanings = {{{"--directory", directory}, {"--module", module}}},
          .source = "uv tool run --help, 0.8 to 0.13"};
}

constexpr Launcher k_environment_launchers[] = {
    {.name = "conda run",
     .syntax = Syntax::argparse,
     .flags = "-h/--help -v/--verbose --dev --debug-wrapper-scripts -s/--no-capture-output/--live-stream",
     .values = "-n/--name -p/--prefix --cwd",
     .meanings = {{{"--cwd", directory}}},
     .source = "conda/cli/main_run.py, 23 to 25"},
    {.name = "mamba run",
     .programs = "mamba micromamba",
     .syntax = Syntax::exact,
     .flags = "-h/--help -v/--verbose -q/--quiet -y/--yes --json --offline --dry-run --download-only -d/--detach "
              "--clean-env --no-rc --no-env --no-capture-output/--live-stream/-s",
     .values = "-n/--name -p/--prefix -r/--root-prefix -a/--attach --cwd -e/--env --label --rc-file --log-level",
     .meanings = {{{"--cwd", directory}, {"--env", assign}, {"--clean-env", clear}}},
     .source = "micromamba/src/run.cpp 1.5 and 2.0"},
    {.name = "docker run",
     .programs = "docker nvidia-docker podman",
     .other_verbs = "exec container compose create service stack",
     .syntax = Syntax::pflag,
     .tail = Tail::image,
     .flags = "-d/--detach -i/--interactive -t/--tty -P/--publish-all -q/--quiet --rm --init --privileged --read-only "
              "--no-healthcheck --oom-kill-disable --sig-proxy --disable-content-trust --help --no-hosts --replace "
              "--tls-verify --http-proxy --no-hostname --read-only-tmpfs --rmi --unsetenv-all --passwd "
              "--use-api-socket --env-host --rootfs",
     .values =
         "--add-host --annotation -a/--attach --blkio-weight --blkio-weight-device --cap-add --cap-drop "
         "--cgroup-parent --cgroupns --cidfile --cpu-count --cpu-percent --cpu-period --cpu-quota --cpu-rt-period "
         "--cpu-rt-runtime -c/--cpu-shares --cpus --cpuset-cpus --cpuset-mems --detach-keys --device "
         "--device-cgroup-rule --device-read-bps --device-read-iops --device-write-bps --device-write-iops --dns "
         "--dns-opt --dns-option --dns-search --domainname --entrypoint -e/--env --env-file --expose --gpus "
         "--group-add --health-cmd --health-interval --health-retries --health-start-interval --health-start-period "
         "--health-timeout -h/--hostname --io-maxbandwidth --io-maxiops --ip --ip6 --ipc --isolation --kernel-memory "
         "-l/--label --label-file --link --link-local-ip --log-driver --log-opt --mac-address -m/--memory "
         "--memory-reservation --memory-swap --memory-swappiness --mount --name --net --net-alias --network "
         "--network-alias --oom-score-adj --pid --pids-limit --platform -p/--publish --pull --restart --runtime "
         "--security-opt --shm-size --stop-signal --stop-timeout --storage-opt --sysctl --tmpfs --ulimit -u/--user "
         "--userns --uts -v/--volume --volume-driver --volumes-from -w/--workdir --arch --authfile --conmon-pidfile "
         "--hooks-dir --os --pidfile --pod --requires --secret --systemd --timeout --tz --umask --unsetenv --variant "
         "--cgroup-conf --cgroups --chrootdirs --env-merge --gidmap --health-on-failure --hostuser --image-volume "
         "--init-path --passwd-entry --personality --pod-id-file --preserve-fds --sdnotify --seccomp-policy "
         "--subgidname --subuidname --uidmap",
     .carries = Carries::no,
     .source = "docker run --help 27 and 28, podman-run(1) 4.3"},
    {.name = "apptainer exec",
     .programs = "apptainer singularity",
     .other_verbs = "run shell instance test",
     .syntax = Syntax::pflag,
     .tail = Tail::image,
     .flags = "-h/--help -c/--contain -C/--containall -e/--cleanenv --nv --nvccli --rocm -f/--fakeroot -i/--ipc "
              "-p/--pid -n/--net -u/--userns --uts -w/--writable --writable-tmpfs --no-home --no-init --no-privs "
              "--keep-privs --no-umask --no-eval --no-https --nohttps --disable-cache --allow-setuid --compat --vm "
              "--vm-err --passphrase --boot --sharens --unsquash --no-setgroups --underlay",
     .values = "-B/--bind --mount -H/--home --pwd/--cwd --workdir/-W -o/--overlay -S/--scratch --env --env-file --app "
               "--apply-cgroups --security --add-caps --drop-caps --dns --docker-host --fusemount --hostname --network "
               "--network-args --no-mount --pem-path --pid-file --memory --memory-reservation --memory-swap --cpus "
               "--cpu-shares --cpuset-cpus --cpuset-mems --blkio-weight --blkio-weight-device --pids-limit --authfile "
               "--vm-cpu --vm-ram --vm-ip",
     .carries = Carries::no,
     .source = "apptainer exec --help 1.3"},
    {.name = "uv run",
     .syntax = Syntax::exact,
     .flags =
         UV_FLAGS "--all-extras --no-dev --only-dev --all-groups --no-default-groups --dev --active --no-sync --locked "
                  "--frozen -s/--script --gui-script --all-packages --no-project --no-editable --exact -m/--module",
     .values = UV_VALUES "--extra --no-extra --group --no-group --only-group --package --no-editable-package",
     .meanings = {{{"--directory", directory}, {"--module", module}}},
     .source = "uv run --help, 0.8 to 0.13"},
    uv_tool("uv tool run", "tool+run"),
    uv_tool("uvx", ""),
    {.name = "poetry run",
     .syntax = Syntax::exact,
     .flags =
         "-h/--help -q/--quiet -V/--version --ansi --no-ansi -n/--no-interaction --no-plugins --no-cache -v/--verbose",
     .values = "-P/--project -C/--directory",
     .meanings = {{{"--directory", directory}}},
     .dashes = Dashes::first_lost,
     .source = "poetry/console/application.py 2.5: its options may also stand behind `run`; a script of the project "
               "goes before a program"},
    {.name = "pdm run",
     .syntax = Syntax::argparse,
     .flags = "-h/--help -v/--verbose -q/--quiet -g/--global -l/--list -j/--json -s/--site-packages --recreate",
     .values = "-p/--project -k/--skip --env --env-file --working-dir",
     .meanings = {{{"--working-dir", directory}, {"--env", assign}}},
     .runs_nothing = "--list --json",
     .dashes = Dashes::behind_program_lost,
     .source = "pdm/cli/commands/run.py 2.29; --venv, whose value may be left out, is not known here"},
    {.name = "hatch run",
     .syntax = Syntax::exact,
     .dashes = Dashes::first_lost,
     .source = "hatch/cli/run/__init__.py 1.18: no option of its own; [ENV:]COMMAND and variables of a matrix "
               "(`+py=3.10`, `-version=9000`) are not known here"},
    {.name = "pipenv run",
     .syntax = Syntax::exact,
     .flags = "-h/--help --system",
     .source = "pipenv/cli/options.py 2026.10; older ones took more options here, which newer ones do not"},
    {.name = "rye run",
     .syntax = Syntax::exact,
     .flags = "-h/--help -l/--list",
     .values = "--pyproject --venv",
     .runs_nothing = "--list",
     .source = "rye/src/cli/run.rs"},
    {.name = "pixi run",
     .syntax = Syntax::exact,
     .flags =
         "-h/--help -v/--verbose -q/--quiet --no-progress -x/--executable --experimental --skip-deps --templated "
         "-n/--dry-run --no-config --run-post-link-scripts --no-symbolic-links --no-hard-links --tls-no-verify "
         "--use-environment-activation-cache --frozen --locked --as-is --no-install --force-activate --no-completions",
     .values = "--color --manifest-path -e/--environment -p/--platform --config-file --auth-file "
               "--concurrent-downloads --concurrent-solves --pinning-strategy --pypi-keyring-provider --tls-root-certs",
     .runs_nothing = "--dry-run",
     .source = "pixi.prefix.dev, pixi run 0.69 to 0.81, and crates/pixi_cli/src/run.rs; --clean-env, behind which no "
               "variable can be given, and --script, with which its first word is an argument, are not known here"},
};

} // namespace

std::span<const Launcher> environment_launchers() {
  return k_environment_launchers;
}

} // namespace sharefs::cachefix
