// Rows of the table of launchers: managers of Python projects, which run a command in the project's environment.
#include "cachefix/launchers/rows.hpp"

namespace sharefs::cachefix {
namespace {

using enum Means;

constexpr Meaning k_pipenv[] = {{"--help", information}};
constexpr Meaning k_uv[] = {
    {"--directory", directory}, {"--module", module}, {"--help", information}, {"--version", information}};
constexpr Meaning k_poetry[] = {{"--directory", directory}, {"--help", information}, {"--version", information}};
constexpr Meaning k_pdm[] = {{"--working-dir", directory},
                             {"--env", assign},
                             {"--list", information},
                             {"--json", information},
                             {"--help", information}};
constexpr Meaning k_rye[] = {{"--list", information}, {"--help", information}};
constexpr Meaning k_pixi[] = {{"--dry-run", information}, {"--help", information}};

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

constexpr Launcher uv_tool(std::string_view name, std::string_view program, std::string_view verbs) {
  return {.name = name,
          .programs = program,
          .verbs = verbs,
          .syntax = Syntax::exact,
          .tail = Tail::command,
          .flags = UV_FLAGS "--lfs -V/--version",
          .values = UV_VALUES "--from -c/--constraints -b/--build-constraints --overrides --torch-backend",
          .meanings = k_uv,
          .source = "uv tool run --help, 0.8 to 0.13"};
}

constexpr Launcher k_project_launchers[] = {
    {.name = "uv run",
     .programs = "uv",
     .verbs = "run",
     .syntax = Syntax::exact,
     .tail = Tail::command,
     .flags = UV_FLAGS "--all-extras --no-dev --only-dev --all-groups --no-default-groups --dev --active --no-sync "
                       "--locked --frozen -s/--script --gui-script --all-packages --no-project --no-editable --exact "
                       "-m/--module",
     .values = UV_VALUES "--extra --no-extra --group --no-group --only-group --package --no-editable-package",
     .meanings = k_uv,
     .source = "uv run --help, 0.8 to 0.13"},
    uv_tool("uv tool run", "uv", "tool+run"),
    uv_tool("uvx", "uvx", ""),
    {.name = "poetry run",
     .programs = "poetry",
     .verbs = "run",
     .syntax = Syntax::exact,
     .tail = Tail::command,
     .flags = "-h/--help -q/--quiet -V/--version --ansi --no-ansi -n/--no-interaction --no-plugins --no-cache "
              "-v/--verbose",
     .values = "-P/--project -C/--directory",
     .meanings = k_poetry,
     .dashes = Dashes::first_lost,
     .source = "poetry/console/application.py 2.5: its options may also stand behind `run`; a script of the project "
               "goes before a program"},
    {.name = "pdm run",
     .programs = "pdm",
     .verbs = "run",
     .syntax = Syntax::argparse,
     .tail = Tail::command,
     .flags = "-h/--help -v/--verbose -q/--quiet -g/--global -l/--list -j/--json -s/--site-packages --recreate",
     .values = "-p/--project -k/--skip --env --env-file --working-dir",
     .meanings = k_pdm,
     .dashes = Dashes::behind_program_lost,
     .source = "pdm/cli/commands/run.py 2.29; --venv, whose value may be left out, is not known here"},
    {.name = "hatch run",
     .programs = "hatch",
     .verbs = "run",
     .syntax = Syntax::exact,
     .tail = Tail::command,
     .dashes = Dashes::first_lost,
     .source = "hatch/cli/run/__init__.py 1.18: no option of its own; [ENV:]COMMAND and variables of a matrix "
               "(`+py=3.10`, `-version=9000`) are not known here"},
    {.name = "pipenv run",
     .programs = "pipenv",
     .verbs = "run",
     .syntax = Syntax::exact,
     .tail = Tail::command,
     .flags = "-h/--help --system",
     .meanings = k_pipenv,
     .source = "pipenv/cli/options.py 2026.10; older ones took more options here, which newer ones do not"},
    {.name = "rye run",
     .programs = "rye",
     .verbs = "run",
     .syntax = Syntax::exact,
     .tail = Tail::command,
     .flags = "-h/--help -l/--list",
     .values = "--pyproject --venv",
     .meanings = k_rye,
     .source = "rye/src/cli/run.rs"},
    {.name = "pixi run",
     .programs = "pixi",
     .verbs = "run",
     .syntax = Syntax::exact,
     .tail = Tail::command,
     .flags = "-h/--help -v/--verbose -q/--quiet --no-progress -x/--executable --experimental --skip-deps --templated "
              "-n/--dry-run --no-config --run-post-link-scripts --no-symbolic-links --no-hard-links --tls-no-verify "
              "--use-environment-activation-cache --frozen --locked --as-is --no-install --force-activate "
              "--no-completions",
     .values = "--color --manifest-path -e/--environment -p/--platform --config-file --auth-file "
               "--concurrent-downloads --concurrent-solves --pinning-strategy --pypi-keyring-provider "
               "--tls-root-certs",
     .meanings = k_pixi,
     .source = "pixi.prefix.dev, pixi run 0.69 to 0.81, and crates/pixi_cli/src/run.rs; --clean-env, behind which no "
               "variable can be given, and --script, with which its first word is an argument, are not known here"},
};

} // namespace

std::span<const Launcher> project_launchers() {
  return k_project_launchers;
}

} // namespace sharefs::cachefix
