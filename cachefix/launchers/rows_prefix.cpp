// Rows of the table of launchers: programs that stand in front of a command, and interpreters. Profilers and tools of
// projects (nsys, uv run, ...) need no row: what they start gets their environment, and the guard with it.
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
     .options = "--dry-run@information -q/--quiet -v/--verbose -h/--help --{explain,strict,seed,no-guard,"
                "node,json,version} --{config,wait,keep,local}=",
     .source = "ourselves: what it starts it sees to itself"},
    {.name = "conda run",
     .syntax = Syntax::argparse,
     .options = "-h/--help -v/--verbose -s/--no-capture-output/--live-stream --dev --debug-wrapper-scripts "
                "--cwd=@directory -n/--name= -p/--prefix=",
     .source = "conda/cli/main_run.py, 23 to 25"},
    {.name = "mamba run",
     .programs = "mamba micromamba",
     .syntax = Syntax::exact,
     .options = "--clean-env@clear -h/--help -v/--verbose -q/--quiet -y/--yes -d/--detach "
                "--no-capture-output/--live-stream/-s --{json,offline,dry-run,download-only,no-rc,no-env} "
                "--cwd=@directory -e/--env=@assign -n/--name= -p/--prefix= -r/--root-prefix= -a/--attach= --{label,"
                "rc-file,log-level}=",
     .source = "micromamba/src/run.cpp 1.5 and 2.0"},
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
};

} // namespace

std::span<const Launcher> prefix_launchers() {
  return k_prefix_launchers;
}

} // namespace sharefs::cachefix
