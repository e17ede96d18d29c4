// Rows of the table of launchers: programs that stand in front of a command, interpreters, and profilers and
// debuggers, which start the program that they look at.
#include "cachefix/launchers/launcher.hpp"

namespace sharefs::cachefix {
namespace {

constexpr Launcher k_prefix_launchers[] = {
    {.name = "env",
     .options = "-i/--ignore-environment@clear -0/--null -v/--debug --{list-signal-handling,help,version} "
                "-u/--unset=@unset -C/--chdir=@directory -S/--split-string=@split_text -a/--argv0= --{block-signal,"
                "default-signal,ignore-signal}[=]",
     .assignments = true,
     .source = "env(1), coreutils 9.1"},
    {.name = "nohup", .options = "--help --version", .source = "nohup(1), coreutils 9.1"},
    {.name = "nice", .options = "--help --version -n/--adjustment=", .source = "nice(1), coreutils 9.1"},
    {.name = "time",
     .options = "-p/--portability -v/--verbose -a/--append -q/--quiet -V/--version -h/--help -f/--format= "
                "-o/--output-file/--output=",
     .source = "time(1), GNU time 1.9"},
    {.name = "timeout",
     .options = "-v/--verbose --{preserve-status,foreground,help,version} -k/--kill-after= -s/--signal=",
     .operands = 1,
     .source = "timeout(1), coreutils 9.1"},
    {.name = "stdbuf",
     .options = "--help --version -i/--input= -o/--output= -e/--error=",
     .source = "stdbuf(1), coreutils 9.1"},
    {.name = "taskset",
     .options = "-c/--cpu-list -h/--help -V/--version",
     .operands = 1,
     .source = "taskset(1), util-linux 2.38; -p and -a act on a running process and are not known here"},
    {.name = "numactl",
     .options = "-s/--show@information -H/--hardware@information -a/--all -l/--localalloc -b/--balancing "
                "-i/--interleave= -w/--weighted-interleave= -c/--cpubind= -N/--cpunodebind= -m/--membind= "
                "-C/--physcpubind= -p/--preferred= -P/--preferred-many=",
     .source = "numactl(8) 2.0.16; what acts on shared memory segments is not known here"},
    {.name = "setsid",
     .options = "-c/--ctty -f/--fork -w/--wait -h/--help -V/--version",
     .source = "setsid(1), util-linux 2.38"},
    {.name = "ionice",
     .options = "-t/--ignore -h/--help -V/--version -c/--class= -n/--classdata=",
     .source = "ionice(1), util-linux 2.38; -p, -P and -u act on running processes and are not known here"},
    {.name = "sharefs",
     .verbs = "run",
     .syntax = Syntax::exact,
     .options = "--dry-run@information -q/--quiet -v/--verbose -h/--help --{explain,strict,seed,no-preflight,no-guard,"
                "node,json,version} --{config,wait,keep,local}=",
     .source = "ourselves: what it starts it sees to itself"},
    {.name = "sharefs conda run",
     .verbs = "conda+run",
     .syntax = Syntax::exact,
     .options = "-q/--quiet -v/--verbose -h/--help --json --version --{config,wait,root}=",
     .operands = 1,
     .dashes = Dashes::behind_operands,
     .source = "ourselves"},
    {.name = "python",
     .programs = "python python2* python3* pypy pypy3*",
     .tail = Tail::python,
     .options = "-b -B -d -E -i -I -O -P -q -R -s -S -t -u -v -V/--version -x -h/-?/--help --help-{env,xoptions,all} "
                "-m=@run_module -c=@run_text -W= -X= --check-hash-based-pycs=",
     .source = "python --help, 3.11"},
    {.name = "bash",
     .programs = "bash sh dash zsh ksh",
     .tail = Tail::shell,
     .options = "-c@command_text -a -b -e -f -h -i -k -l/--login -m -n -p -r -t -u -v -x -B -C -E -H -P -T "
                "--{debugger,dump-po-strings,dump-strings,noediting,noprofile,norc,posix,pretty-print,restricted,"
                "verbose,help,version} -o= -O= --init-file= --rcfile=",
     .source = "bash(1) 5.2; -s reads the script from stdin and is not known here"},
    // Python's optparse reads as GNU getopt does.
    {.name = "coverage run",
     .programs = "coverage coverage3 coverage-3*",
     .modules = "coverage",
     .tail = Tail::script,
     .options = "-m/--module@module -a/--append -L/--pylib -p/--parallel-mode -h/--help --branch --timid "
                "--{concurrency,context,data-file,include,omit,save-signal,source,debug,rcfile}=",
     .source = "coverage run --help, 7.17"},
    {.name = "memray run",
     .programs = "memray memray3*",
     .modules = "memray",
     .syntax = Syntax::argparse,
     .tail = Tail::script,
     .options = "-m@module -h/--help -q/--quiet -f/--force --{live,live-remote,aggregate,native,follow-fork,"
                "trace-python-allocators,buffered-file-io,compress-on-exit,no-compress} -o/--output= -p/--live-port=",
     .dashes = Dashes::behind_program_lost,
     .source = "memray/commands/run.py 1.20; -c, with which the script is text, is not known here"},
    {.name = "kernprof",
     .modules = "kernprof",
     .syntax = Syntax::argparse,
     .tail = Tail::python,
     .options = "-h/--help -V/--version -l -b -r -z -v/--view/--verbose -q/--quiet --no-config -m=@run_module "
                "-c=@run_text -s/--setup= -p/--prof-mod= -o/--outfile= -u/--unit= --config=",
     .dashes = Dashes::behind_program_lost,
     .source = "kernprof.py 5.1; options whose value may be left out (--line-by-line, -i) are not known here"},
    {.name = "debugpy",
     .modules = "debugpy",
     .syntax = Syntax::exact,
     .tail = Tail::python,
     .options = "-h/-?/--help -V/--version --{log-to-stderr,wait-for-client,disable-sys-remote-exec,"
                "linux-attach-prefer-lldb} -m=@run_module -c=@run_text --pid=@information --{log-to,listen,connect,"
                "configure-qt,configure-subProcess,parent-session-pid,adapter-access-token}=",
     .source = "debugpy/server/cli.py 1.8"},
    {.name = "py-spy",
     .verbs = "record top",
     .syntax = Syntax::exact,
     .options = "-s/--subprocesses -F/--function -t/--threads -g/--gil -i/--idle -n/--native -h/--help "
                "--{full-filenames,nolineno,nonblocking} -p/--pid=@information -o/--output= -f/--format= "
                "-d/--duration= -r/--rate=",
     .dashes = Dashes::first_lost,
     .source = "py-spy record --help and top --help, 0.4"},
    {.name = "nsys profile",
     .other_verbs = "launch start nvprof",
     .syntax = Syntax::exact,
     .options = "-h/--help --ftrace-keep-user-config -o/--output= -f/--force-overwrite= -d/--duration= -y/--delay= "
                "-Y/--start-later= -x/--stop-on-exit= -c/--capture-range= -p/--nvtx-capture= -t/--trace= -s/--sample= "
                "-b/--backtrace= -w/--show-output= --{auto-report-name,export,kill,capture-range-end,hotkey-capture,"
                "cudabacktrace,opengl-gpu-workload,vulkan-gpu-workload,event-sample,os-events,cpuctxsw,gpuctxsw,"
                "pytorch,dask,nccl-trace,trace-fork-before-exec,nvtx-domain-include,nvtx-domain-exclude,stats,"
                "resolve-symbols,debug-symbols,wait,enable,accelerator-trace,duration-frames,start-frame-index,"
                "clock-frequency-changes,discard-environment,flush-on-cudaprofilerstop,ftrace,gds-libs-path,"
                "gds-metrics,gpu-video-device,mpi-impl,nic-metrics,osrt-threshold,osrt-file-access,process-scope,"
                "samples-per-backtrace,session-new,syscall,vsync}= --ib-switch-congestion-{device,devices,nic-device,"
                "percent,threshold-high}= --cuda-{trace-all-apis,memory-usage,event-trace,graph-trace,flush-interval,"
                "um-cpu-page-faults,um-gpu-page-faults,backtrace,trace-scope}= --gpu-metrics-{device,devices,"
                "frequency,set}= --ib-switch-metrics-{device,devices,nic-device}= --event-sampling-{frequency,"
                "interval,multiplex-interval}= --osrt-backtrace-{depth,stack-size,threshold}= --ib-net-info-{devices,"
                "files,output}= --python-{sampling,sampling-frequency,backtrace,functions-trace}= "
                "--cpu-{cluster-events,core-events,core-metrics,metrics,socket-events,socket-metrics}= "
                "--sampling-{frequency,period,trigger}= --soc-{metrics,metrics-frequency,metrics-set}= --xhv-{trace,"
                "trace-events,vm-symbols}=",
     .source = "Nsight Systems User Guide, all CLI profile command switch options that Linux has, and launch lines of "
               "public repositories, 2022 to 2026: each takes a value; those that change the environment (--env-var, "
               "--inherit-environment, --run-as), read a file (--command-file) or run other commands "
               "(--after-report-ready) are not known here"},
    {.name = "ncu",
     .syntax = Syntax::exact,
     .options = "--list-{sets,sections,rules,metrics,chips}@information --query-metrics@information -h/--help "
                "-v/--version -f/--force-overwrite --{call-stack,nvtx,section-folder-restore,"
                "disable-profiler-start-stop,quiet,verbose,disable-extra-suffixes,open-in-ui,csv} "
                "--print-{metric-attribution,fp,rule-details} -p/--port= -k/--kernel-name= -c/--launch-count= "
                "-s/--launch-skip= -o/--export= -i/--import= --{mode,max-connections,config-file,config-file-path,"
                "check-exit-code,injection-path-32,injection-path-64,preload-library,call-stack-type,target-processes,"
                "target-processes-filter,hostname,kill,replay-mode,graph-profiling,range-replay-options,set,"
                "section-folder,section-folder-recursive,apply-rules,rule,import-source,source-folders,"
                "query-metrics-mode,query-metrics-collection,chips,profile-from-start,cache-control,clock-control,"
                "pipeline-boost-state,devices,filter-mode,kernel-id,kernel-name-base,launch-skip-before-match,section,"
                "metrics,range-filter,native-include,native-exclude,python-include,python-exclude,log-file,page,"
                "resolve-source-file}= --print-{source,details,metric-name,units,kernel-base,metric-instances,"
                "nvtx-rename,summary}= --warp-sampling-{interval,max-passes,buffer-size}= --pm-sampling-{interval,"
                "buffer-size,max-passes}= --app-replay-{buffer,match,mode}= --rename-{kernels,kernels-export,"
                "kernels-path}= --nvtx-{include,exclude,push-pop-scope}=",
     .source = "ncu --help 2022.2 to 2025"},
};

} // namespace

std::span<const Launcher> prefix_launchers() {
  return k_prefix_launchers;
}

} // namespace sharefs::cachefix
