// Rows of the table of launchers: what sets up an environment or a container and runs a command in it.
#include "cachefix/launchers/rows.hpp"

namespace sharefs::cachefix {
namespace {

using enum Means;

constexpr Meaning k_conda[] = {{"--cwd", directory}, {"--help", information}};
constexpr Meaning k_mamba[] = {
    {"--cwd", directory}, {"--env", assign}, {"--clean-env", clear}, {"--help", information}};
constexpr Meaning k_image[] = {{"--help", information}};

constexpr Launcher k_environment_launchers[] = {
    {.name = "conda run",
     .programs = "conda",
     .verbs = "run",
     .syntax = Syntax::argparse,
     .tail = Tail::command,
     .flags = "-h/--help -v/--verbose --dev --debug-wrapper-scripts -s/--no-capture-output/--live-stream",
     .values = "-n/--name -p/--prefix --cwd",
     .meanings = k_conda,
     .source = "conda/cli/main_run.py, 23 to 25"},
    {.name = "mamba run",
     .programs = "mamba micromamba",
     .verbs = "run",
     .syntax = Syntax::exact,
     .tail = Tail::command,
     .flags = "-h/--help -v/--verbose -q/--quiet -y/--yes --json --offline --dry-run --download-only -d/--detach "
              "--clean-env --no-rc --no-env --no-capture-output/--live-stream/-s",
     .values = "-n/--name -p/--prefix -r/--root-prefix -a/--attach --cwd -e/--env --label --rc-file --log-level",
     .meanings = k_mamba,
     .source = "micromamba/src/run.cpp 1.5 and 2.0"},
    {.name = "docker run",
     .programs = "docker nvidia-docker podman",
     .verbs = "run",
     .other_verbs = "exec container compose create service stack",
     .syntax = Syntax::pflag,
     .tail = Tail::image,
     .flags = "-d/--detach -i/--interactive -t/--tty -P/--publish-all -q/--quiet --rm --init --privileged --read-only "
              "--no-healthcheck --oom-kill-disable --sig-proxy --disable-content-trust --help --no-hosts --replace "
              "--tls-verify --http-proxy --no-hostname --read-only-tmpfs --rmi --unsetenv-all --passwd "
              "--use-api-socket --env-host --rootfs",
     .values =
         "--add-host --annotation -a/--attach --blkio-weight --blkio-weight-device --cap-add --cap-drop "
         "--cgroup-parent --cgroupns --cidfile --cpu-count --cpu-percent --cpu-period --cpu-quota "
         "--cpu-rt-period --cpu-rt-runtime -c/--cpu-shares --cpus --cpuset-cpus --cpuset-mems --detach-keys "
         "--device --device-cgroup-rule --device-read-bps --device-read-iops --device-write-bps "
         "--device-write-iops --dns --dns-opt --dns-option --dns-search --domainname --entrypoint -e/--env "
         "--env-file --expose --gpus --group-add --health-cmd --health-interval --health-retries "
         "--health-start-interval --health-start-period --health-timeout -h/--hostname --io-maxbandwidth "
         "--io-maxiops --ip --ip6 --ipc --isolation --kernel-memory -l/--label --label-file --link "
         "--link-local-ip --log-driver --log-opt --mac-address -m/--memory --memory-reservation --memory-swap "
         "--memory-swappiness --mount --name --net --net-alias --network --network-alias --oom-score-adj --pid "
         "--pids-limit --platform -p/--publish --pull --restart --runtime --security-opt --shm-size "
         "--stop-signal --stop-timeout --storage-opt --sysctl --tmpfs --ulimit -u/--user --userns --uts -v/--volume "
         "--volume-driver --volumes-from -w/--workdir --arch --authfile --conmon-pidfile --hooks-dir --os "
         "--pidfile --pod --requires --secret --systemd --timeout --tz --umask --unsetenv --variant "
         "--cgroup-conf --cgroups --chrootdirs --env-merge --gidmap --health-on-failure --hostuser --image-volume "
         "--init-path --passwd-entry --personality --pod-id-file --preserve-fds --sdnotify --seccomp-policy "
         "--subgidname --subuidname --uidmap",
     .meanings = k_image,
     .carries = Carries::no,
     .source = "docker run --help 27 and 28, podman-run(1) 4.3"},
    {.name = "apptainer exec",
     .programs = "apptainer singularity",
     .verbs = "exec",
     .other_verbs = "run shell instance test",
     .syntax = Syntax::pflag,
     .tail = Tail::image,
     .flags =
         "-h/--help -c/--contain -C/--containall -e/--cleanenv --nv --nvccli --rocm -f/--fakeroot -i/--ipc -p/--pid "
         "-n/--net -u/--userns --uts -w/--writable --writable-tmpfs --no-home --no-init --no-privs --keep-privs "
         "--no-umask --no-eval --no-https --nohttps --disable-cache --allow-setuid --compat "
         "--vm --vm-err --passphrase --boot --sharens --unsquash --no-setgroups --underlay",
     .values = "-B/--bind --mount -H/--home --pwd/--cwd --workdir/-W -o/--overlay -S/--scratch --env --env-file --app "
               "--apply-cgroups --security --add-caps --drop-caps --dns --docker-host --fusemount --hostname --network "
               "--network-args --no-mount --pem-path --pid-file --memory --memory-reservation --memory-swap --cpus "
               "--cpu-shares --cpuset-cpus --cpuset-mems --blkio-weight --blkio-weight-device --pids-limit "
               "--authfile --vm-cpu --vm-ram --vm-ip",
     .meanings = k_image,
     .carries = Carries::no,
     .source = "apptainer exec --help 1.3"},
};

} // namespace

std::span<const Launcher> environment_launchers() {
  return k_environment_launchers;
}

} // namespace sharefs::cachefix
