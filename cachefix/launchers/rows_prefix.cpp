// Rows of the table of launchers: programs that stand in front of a command, interpreters, and profilers and
// debuggers, which start the program that they look at.
#include "cachefix/launchers/rows.hpp"

namespace sharefs::cachefix {
namespace {

using enum Means;

constexpr Launcher k_prefix_launchers[] = {
    {.name = "env",
     .flags = "-i/--ignore-environment -0/--null -v/--debug --list-signal-handling --help --version",
     .values = "-u/--unset -C/--chdir -S/--split-string -a/--argv0",
     .attached = "--block-signal --default-signal --ignore-signal",
     .meanings = {{{"--chdir", directory},
                   {"--unset", unset},
                   {"--ignore-environment", clear},
                   {"--split-string", split_text}}},
     .assignments = true,
     .source = "env(1), coreutils 9.1"},
    {.name = "nohup", .flags = "--help --version", .source = "nohup(1), coreutils 9.1"},
    {.name = "nice", .flags = "--help --version", .values = "-n/--adjustment", .source = "nice(1), coreutils 9.1"},
    {.name = "time",
     .flags = "-p/--portability -v/--verbose -a/--append -q/--quiet -V/--version -h/--help",
     .values = "-f/--format -o/--output-file/--output",
     .source = "time(1), GNU time 1.9"},
    {.name = "timeout",
     .flags = "--preserve-status --foreground -v/--verbose --help --version",
     .values = "-k/--kill-after -s/--signal",
     .operands = 1,
     .source = "timeout(1), coreutils 9.1"},
    {.name = "stdbuf",
     .flags = "--help --version",
     .values = "-i/--input -o/--output -e/--error",
     .source = "stdbuf(1), coreutils 9.1"},
    {.name = "taskset",
     .flags = "-c/--cpu-list -h/--help -V/--version",
     .operands = 1,
     .source = "taskset(1), util-linux 2.38; -p and -a act on a running process and are not known here"},
    {.name = "numactl",
     .flags = "-a/--all -l/--localalloc -b/--balancing -s/--show -H/--hardware",
     .values = "-i/--interleave -w/--weighted-interleave -c/--cpubind -N/--cpunodebind -m/--membind -C/--physcpubind "
               "-p/--preferred -P/--preferred-many",
     .runs_nothing = "--show --hardware",
     .source = "numactl(8) 2.0.16; what acts on shared memory segments is not known here"},
    {.name = "setsid",
     .flags = "-c/--ctty -f/--fork -w/--wait -h/--help -V/--version",
     .source = "setsid(1), util-linux 2.38"},
    {.name = "ionice",
     .flags = "-t/--ignore -h/--help -V/--version",
     .values = "-c/--class -n/--classdata",
     .source = "ionice(1), util-linux 2.38; -p, -P and -u act on running processes and are not known here"},
    {.name = "sharefs",
     .verbs = "run",
     .syntax = Syntax::exact,
     .flags = "--dry-run --explain --strict --seed --no-preflight --no-guard --node --json -q/--quiet -v/--verbose "
              "-h/--help --version",
     .values = "--config --wait --keep --local",
     .runs_nothing = "--dry-run",
     .source = "ourselves: what it starts it sees to itself"},
    {.name = "sharefs conda run",
     .verbs = "conda+run",
     .syntax = Syntax::exact,
     .flags = "--json -q/--quiet -v/--verbose -h/--help --version",
     .values = "--config --wait --root",
     .operands = 1,
     .dashes = Dashes::behind_operands,
     .source = "ourselves"},
    {.name = "python",
     .programs = "python python2* python3* pypy pypy3*",
     .tail = Tail::python,
     .flags = "-b -B -d -E -i -I -O -P -q -R -s -S -t -u -v -V/--version -x -h/-?/--help --help-env --help-xoptions "
              "--help-all",
     .values = "-W -X -m -c --check-hash-based-pycs",
     .meanings = {{{"-m", run_module}, {"-c", run_text}}},
     .source = "python --help, 3.11"},
    {.name = "bash",
     .programs = "bash sh dash zsh ksh",
     .tail = Tail::shell,
     .flags =
         "-a -b -c -e -f -h -i -k -l/--login -m -n -p -r -t -u -v -x -B -C -E -H -P -T --debugger --dump-po-strings "
         "--dump-strings --noediting --noprofile --norc --posix --pretty-print --restricted --verbose --help --version",
     .values = "-o -O --init-file --rcfile",
     .meanings = {{{"-c", command_text}}},
     .source = "bash(1) 5.2; -s reads the script from stdin and is not known here"},
    // Python's optparse reads as GNU getopt does.
    {.name = "coverage run",
     .programs = "coverage coverage3 coverage-3*",
     .modules = "coverage",
     .tail = Tail::script,
     .flags = "-a/--append --branch -m/--module -L/--pylib -p/--parallel-mode --timid -h/--help",
     .values = "--concurrency --context --data-file --include --omit --save-signal --source --debug --rcfile",
     .meanings = {{{"--module", module}}},
     .source = "coverage run --help, 7.17"},
    {.name = "memray run",
     .programs = "memray memray3*",
     .modules = "memray",
     .syntax = Syntax::argparse,
     .tail = Tail::script,
     .flags = "-h/--help --live --live-remote --aggregate --native --follow-fork --trace-python-allocators -q/--quiet "
              "-f/--force --buffered-file-io --compress-on-exit --no-compress -m",
     .values = "-o/--output -p/--live-port",
     .meanings = {{{"-m", module}}},
     .dashes = Dashes::behind_program_lost,
     .source = "memray/commands/run.py 1.20; -c, with which the script is text, is not known here"},
    {.name = "kernprof",
     .modules = "kernprof",
     .syntax = Syntax::argparse,
     .tail = Tail::python,
     .flags = "-h/--help -V/--version --no-config -l -b -r -z -v/--view/--verbose -q/--quiet",
     .values = "--config -s/--setup -p/--prof-mod -o/--outfile -u/--unit -m -c",
     .meanings = {{{"-m", run_module}, {"-c", run_text}}},
     .dashes = Dashes::behind_program_lost,
     .source = "kernprof.py 5.1; options whose value may be left out (--line-by-line, -i) are not known here"},
    {.name = "debugpy",
     .modules = "debugpy",
     .syntax = Syntax::exact,
     .tail = Tail::python,
     .flags = "-h/-?/--help -V/--version --log-to-stderr --wait-for-client --disable-sys-remote-exec "
              "--linux-attach-prefer-lldb",
     .values = "--log-to --listen --connect --configure-qt --configure-subProcess --parent-session-pid "
               "--adapter-access-token -m -c --pid",
     .meanings = {{{"-m", run_module}, {"-c", run_text}}},
     .runs_nothing = "--pid",
     .source = "debugpy/server/cli.py 1.8"},
    {.name = "py-spy",
     .verbs = "record top",
     .syntax = Syntax::exact,
     .flags = "--full-filenames -s/--subprocesses -F/--function --nolineno -t/--threads -g/--gil -i/--idle -n/--native "
              "--nonblocking -h/--help",
     .values = "-p/--pid -o/--output -f/--format -d/--duration -r/--rate",
     .runs_nothing = "--pid",
     .dashes = Dashes::first_lost,
     .source = "py-spy record --help and top --help, 0.4"},
    {.name = "nsys profile",
     .other_verbs = "launch start nvprof",
     .syntax = Syntax::exact,
     .flags = "-h/--help --ftrace-keep-user-config",
     .values =
         "-o/--output --auto-report-name -f/--force-overwrite --export -d/--duration -y/--delay -Y/--start-later "
         "-x/--stop-on-exit --kill -c/--capture-range --capture-range-end -p/--nvtx-capture --hotkey-capture "
         "-t/--trace --gpu-metrics-device --gpu-metrics-devices --gpu-metrics-frequency --gpu-metrics-set "
         "--cuda-trace-all-apis --cuda-memory-usage --cuda-event-trace --cuda-graph-trace --cuda-flush-interval "
         "--cuda-um-cpu-page-faults --cuda-um-gpu-page-faults --cudabacktrace --cuda-backtrace --opengl-gpu-workload "
         "--vulkan-gpu-workload -s/--sample -b/--backtrace --sampling-frequency --event-sample --os-events --cpuctxsw "
         "--gpuctxsw --python-sampling --python-sampling-frequency --python-backtrace --python-functions-trace "
         "--pytorch --dask --nccl-trace --trace-fork-before-exec --nvtx-domain-include --nvtx-domain-exclude --stats "
         "--resolve-symbols --debug-symbols -w/--show-output --wait --enable --accelerator-trace --duration-frames "
         "--start-frame-index --clock-frequency-changes --cpu-cluster-events --cpu-core-events --cpu-core-metrics "
         "--cpu-metrics --cpu-socket-events --cpu-socket-metrics --cuda-trace-scope --discard-environment "
         "--event-sampling-frequency --event-sampling-interval --event-sampling-multiplex-interval "
         "--flush-on-cudaprofilerstop --ftrace --gds-libs-path --gds-metrics --gpu-video-device --ib-net-info-devices "
         "--ib-net-info-files --ib-net-info-output --ib-switch-congestion-device --ib-switch-congestion-devices "
         "--ib-switch-congestion-nic-device --ib-switch-congestion-percent --ib-switch-congestion-threshold-high "
         "--ib-switch-metrics-device --ib-switch-metrics-devices --ib-switch-metrics-nic-device --mpi-impl "
         "--nic-metrics --osrt-backtrace-depth --osrt-backtrace-stack-size --osrt-backtrace-threshold --osrt-threshold "
         "--osrt-file-access --process-scope --samples-per-backtrace --sampling-period --sampling-trigger "
         "--session-new --soc-metrics --soc-metrics-frequency --soc-metrics-set --syscall --vsync --xhv-trace "
         "--xhv-trace-events --xhv-vm-symbols",
     .source = "Nsight Systems User Guide, all CLI profile command switch options that Linux has, and launch lines of "
               "public repositories, 2022 to 2026: each takes a value; those that change the environment (--env-var, "
               "--inherit-environment, --run-as), read a file (--command-file) or run other commands "
               "(--after-report-ready) are not known here"},
    {.name = "ncu",
     .syntax = Syntax::exact,
     .flags = "-h/--help -v/--version --call-stack --nvtx --list-sets --list-sections --section-folder-restore "
              "--list-rules --list-metrics --query-metrics --list-chips --disable-profiler-start-stop --quiet "
              "--verbose --disable-extra-suffixes -f/--force-overwrite --open-in-ui --csv --print-metric-attribution "
              "--print-fp --print-rule-details",
     .values =
         "--mode -p/--port --max-connections --config-file --config-file-path --check-exit-code --injection-path-32 "
         "--injection-path-64 --preload-library --call-stack-type --target-processes --target-processes-filter "
         "--hostname --kill --replay-mode --app-replay-buffer --app-replay-match --app-replay-mode --graph-profiling "
         "--range-replay-options --set --section-folder --section-folder-recursive --apply-rules --rule "
         "--import-source --source-folders --query-metrics-mode --query-metrics-collection --chips "
         "--profile-from-start --cache-control --clock-control --pipeline-boost-state --devices --filter-mode "
         "--kernel-id -k/--kernel-name --kernel-name-base --rename-kernels --rename-kernels-export "
         "--rename-kernels-path -c/--launch-count -s/--launch-skip --launch-skip-before-match --section --metrics "
         "--nvtx-include --nvtx-exclude --range-filter --nvtx-push-pop-scope --native-include --native-exclude "
         "--python-include --python-exclude --pm-sampling-interval --pm-sampling-buffer-size --pm-sampling-max-passes "
         "--warp-sampling-interval --warp-sampling-max-passes --warp-sampling-buffer-size --log-file -o/--export "
         "-i/--import --page --print-source --resolve-source-file --print-details --print-metric-name --print-units "
         "--print-kernel-base --print-metric-instances --print-nvtx-rename --print-summary",
     .runs_nothing = "--list-sets --list-sections --list-rules --list-metrics --query-metrics --list-chips",
     .source = "ncu --help 2022.2 to 2025"},
};

} // namespace

std::span<const Launcher> prefix_launchers() {
  return k_prefix_launchers;
}

} // namespace sharefs::cachefix
