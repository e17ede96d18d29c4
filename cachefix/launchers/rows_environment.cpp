// Rows of the table of launchers: what sets up an environment, or that of a Python project, and runs a command in it.
#include "cachefix/launchers/launcher.hpp"

namespace sharefs::cachefix {
namespace {

// What `uv run` and `uv tool run` have in common.
#define UV_OPTIONS                                                                                                     \
  "-h/--help -v/--verbose -q/--quiet -n/--no-cache -U/--upgrade "                                                      \
  "--{isolated,offline,native-tls,managed-python,refresh,"                                                             \
  "reinstall,compile-bytecode,require-build-hashes,system-certs} --no-{env-file,config,progress,managed-python,"       \
  "python-downloads,index,sources,build,binary,build-isolation,require-build-hashes} --directory=@directory "          \
  "-w/--with= -p/--python= -i/--index-url= -f/--find-links= -P/--upgrade-package= -C/--config-setting= "               \
  "--env-file=@env_file --{with-editable,with-requirements,project,config-file,cache-dir,color,index,default-index,"   \
  "extra-index-url,reinstall-package,index-strategy,keyring-provider,resolution,prerelease,exclude-newer,link-mode,"   \
  "refresh-package,allow-insecure-host,python-platform,upgrade-group,prerelease-package,fork-strategy,"                \
  "exclude-newer-package,config-settings-package}= --no-{build-package,binary-package,build-isolation-package,"        \
  "sources-package}= "

constexpr Launcher uv_tool(std::string_view name, std::string_view verbs) {
  return {.name = name,
          .verbs = verbs,
          .syntax = Syntax::exact,
          .options = UV_OPTIONS "-V/--version --lfs -c/--constraints= -b/--build-constraints= --{from,overrides,"
                                "torch-backend}=",
          .source = "uv tool run --help, 0.8 to 0.13"};
}

constexpr Launcher k_environment_launchers[] = {
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
    {.name = "uv run",
     .syntax = Syntax::exact,
     .options =
         UV_OPTIONS "-m/--module@module -s/--script --{only-dev,dev,active,locked,frozen,gui-script,exact} "
                    "--no-{dev,default-groups,sync,project,editable} --all-{extras,groups,packages} --{extra,no-extra,"
                    "group,no-group,only-group,package,no-editable-package}=",
     .source = "uv run --help, 0.8 to 0.13"},
    uv_tool("uv tool run", "tool+run"),
    uv_tool("uvx", ""),
    {.name = "poetry run",
     .syntax = Syntax::exact,
     .options = "-h/--help -q/--quiet -V/--version -n/--no-interaction -v/--verbose --{ansi,no-ansi,no-plugins,"
                "no-cache} -C/--directory=@directory -P/--project=",
     .dashes = Dashes::first_lost,
     .source = "poetry/console/application.py 2.5: its options may also stand behind `run`; a script of the project "
               "goes before a program"},
    {.name = "pdm run",
     .syntax = Syntax::argparse,
     .options = "-l/--list@information -j/--json@information -h/--help -v/--verbose -q/--quiet -g/--global "
                "-s/--site-packages --recreate --env=@assign --working-dir=@directory -p/--project= -k/--skip= "
                "--env-file=@env_file",
     .dashes = Dashes::behind_program_lost,
     .source = "pdm/cli/commands/run.py 2.29; --venv, whose value may be left out, is not known here"},
    {.name = "hatch run",
     .syntax = Syntax::exact,
     .assignments = true,
     .dashes = Dashes::first_lost,
     .source = "hatch/cli/run/__init__.py 1.18: no option of its own; a shell runs its words, quoted (shlex.join); "
               "[ENV:]COMMAND and variables of a matrix (`+py=3.10`, `-version=9000`) are not known here"},
    {.name = "pipenv run",
     .syntax = Syntax::argparse,
     .options = "-h/--help --system",
     .assignments = true,
     .dashes = Dashes::behind_program_lost,
     .source = "pipenv/cli/options.py 2026.10, and routines/shell.py: it takes NAME=value itself; older ones took more "
               "options here, which newer ones do not"},
    {.name = "rye run",
     .syntax = Syntax::exact,
     .options = "-l/--list@information -h/--help --pyproject= --venv=",
     .source = "rye/src/cli/run.rs"},
    {.name = "pixi run",
     .syntax = Syntax::exact,
     .options = "-n/--dry-run@information -h/--help -v/--verbose -q/--quiet -x/--executable --{experimental,skip-deps,"
                "templated,run-post-link-scripts,tls-no-verify,use-environment-activation-cache,frozen,locked,as-is,"
                "force-activate} --no-{progress,config,symbolic-links,hard-links,install,completions} "
                "-e/--environment= -p/--platform= --{color,manifest-path,config-file,auth-file,concurrent-downloads,"
                "concurrent-solves,pinning-strategy,pypi-keyring-provider,tls-root-certs}=",
     .source = "pixi.prefix.dev, pixi run 0.69 to 0.81, and crates/pixi_cli/src/run.rs; --clean-env, behind which no "
               "variable can be given, and --script, with which its first word is an argument, are not known here"},
};

} // namespace

std::span<const Launcher> environment_launchers() {
  return k_environment_launchers;
}

} // namespace sharefs::cachefix
