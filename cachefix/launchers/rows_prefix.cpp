// Rows of the table of launchers: programs that stand in front of a command, and interpreters.
#include "cachefix/launchers/rows.hpp"

namespace sharefs::cachefix {
namespace {

using enum Means;

constexpr Meaning k_env[] = {{"--chdir", directory},         {"--unset", unset},      {"--ignore-environment", clear},
                             {"--split-string", split_text}, {"--help", information}, {"--version", information}};
constexpr Meaning k_numactl[] = {{"--show", information}, {"--hardware", information}, {"--help", information}};
constexpr Meaning k_help[] = {{"--help", information}, {"--version", information}};
constexpr Meaning k_python[] = {
    {"-m", run_module}, {"-c", run_text}, {"--help", information}, {"--version", information}};
constexpr Meaning k_shell[] = {{"-c", command_text}, {"--help", information}, {"--version", information}};

constexpr Meaning k_sharefs[] = {{"--dry-run", information}, {"--help", information}, {"--version", information}};

constexpr Launcher k_prefix_launchers[] = {
    {.name = "env",
     .programs = "env",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "-i/--ignore-environment -0/--null -v/--debug --list-signal-handling --help --version",
     .values = "-u/--unset -C/--chdir -S/--split-string -a/--argv0",
     .attached = "--block-signal --default-signal --ignore-signal",
     .meanings = k_env,
     .assignments = true,
     .source = "env(1), coreutils 9.1"},
    {.name = "nohup",
     .programs = "nohup",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "--help --version",
     .meanings = k_help,
     .source = "nohup(1), coreutils 9.1"},
    {.name = "nice",
     .programs = "nice",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "--help --version",
     .values = "-n/--adjustment",
     .meanings = k_help,
     .source = "nice(1), coreutils 9.1"},
    {.name = "time",
     .programs = "time",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "-p/--portability -v/--verbose -a/--append -q/--quiet -V/--version -h/--help",
     .values = "-f/--format -o/--output-file/--output",
     .meanings = k_help,
     .source = "time(1), GNU time 1.9"},
    {.name = "timeout",
     .programs = "timeout",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "--preserve-status --foreground -v/--verbose --help --version",
     .values = "-k/--kill-after -s/--signal",
     .meanings = k_help,
     .operands = 1,
     .source = "timeout(1), coreutils 9.1"},
    {.name = "stdbuf",
     .programs = "stdbuf",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "--help --version",
     .values = "-i/--input -o/--output -e/--error",
     .meanings = k_help,
     .source = "stdbuf(1), coreutils 9.1"},
    {.name = "taskset",
     .programs = "taskset",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "-c/--cpu-list -h/--help -V/--version",
     .meanings = k_help,
     .operands = 1,
     .source = "taskset(1), util-linux 2.38; -p and -a act on a running process and are not known here"},
    {.name = "numactl",
     .programs = "numactl",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "-a/--all -l/--localalloc -b/--balancing -s/--show -H/--hardware",
     .values = "-i/--interleave -w/--weighted-interleave -c/--cpubind -N/--cpunodebind -m/--membind -C/--physcpubind "
               "-p/--preferred "
               "-P/--preferred-many",
     .meanings = k_numactl,
     .source = "numactl(8) 2.0.16; what acts on shared memory segments is not known here"},
    {.name = "setsid",
     .programs = "setsid",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "-c/--ctty -f/--fork -w/--wait -h/--help -V/--version",
     .meanings = k_help,
     .source = "setsid(1), util-linux 2.38"},
    {.name = "ionice",
     .programs = "ionice",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "-t/--ignore -h/--help -V/--version",
     .values = "-c/--class -n/--classdata",
     .meanings = k_help,
     .source = "ionice(1), util-linux 2.38; -p, -P and -u act on running processes and are not known here"},
    {.name = "sharefs",
     .programs = "sharefs",
     .verbs = "run",
     .syntax = Syntax::exact,
     .tail = Tail::command,
     .flags = "--dry-run --explain --strict --seed --no-preflight --no-guard --node --json -q/--quiet -v/--verbose "
              "-h/--help --version",
     .values = "--config --wait --keep --local",
     .meanings = k_sharefs,
     .source = "ourselves: what it starts it sees to itself"},
    {.name = "sharefs conda run",
     .programs = "sharefs",
     .verbs = "conda+run",
     .syntax = Syntax::exact,
     .tail = Tail::command,
     .flags = "--json -q/--quiet -v/--verbose -h/--help --version",
     .values = "--config --wait --root",
     .meanings = k_sharefs,
     .operands = 1,
     .dashes = Dashes::behind_operands,
     .source = "ourselves"},
    {.name = "python",
     .programs = "python python2* python3* pypy pypy3*",
     .syntax = Syntax::getopt,
     .tail = Tail::python,
     .flags = "-b -B -d -E -i -I -O -P -q -R -s -S -t -u -v -V/--version -x -h/-?/--help --help-env --help-xoptions "
              "--help-all",
     .values = "-W -X -m -c --check-hash-based-pycs",
     .meanings = k_python,
     .source = "python --help, 3.11"},
    {.name = "bash",
     .programs = "bash sh dash zsh ksh",
     .syntax = Syntax::getopt,
     .tail = Tail::shell,
     .flags = "-a -b -c -e -f -h -i -k -l/--login -m -n -p -r -t -u -v -x -B -C -E -H -P -T --debugger "
              "--dump-po-strings --dump-strings --noediting --noprofile --norc --posix --pretty-print --restricted "
              "--verbose --help --version",
     .values = "-o -O --init-file --rcfile",
     .meanings = k_shell,
     .source = "bash(1) 5.2; -s reads the script from stdin and is not known here"},
};

} // namespace

std::span<const Launcher> prefix_launchers() {
  return k_prefix_launchers;
}

} // namespace sharefs::cachefix
