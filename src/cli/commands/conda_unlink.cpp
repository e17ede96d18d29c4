#include "cli/commands/conda_links.hpp"

namespace sharefs::cli {

namespace {

Result<int> run_conda_unlink(Context& context, const Arguments& arguments) {
  return change_conda_links(context, arguments, conda::LinkRequest::Verb::unlink);
}

} // namespace

extern const CommandSpec k_conda_unlink_command;
const CommandSpec k_conda_unlink_command{
    .name = "conda unlink",
    .summary = "Remove the links to shared conda environments",
    .description =
        "Removes exactly the links that lead to STORE/ENV (with --all also one of the whole `envs` directory), and "
        "puts "
        "the newest backup back in its place if `conda link --backup` made one. Other links and directories are left "
        "alone and named. The store is not touched, so this works while its server is down.",
    .example = "sharefs conda unlink --all          # in every home\n"
               "sharefs conda unlink llm_train --user alice",
    .effect = Effect::changes,
    .positional = {.name = "ENV", .help = "environments to unlink"},
    .options = {{.names = "--all", .help = "all environments of `conda.envs`, and a link of the whole directory"},
                {.names = "--user", .value = "USER", .help = "only this user's home", .repeat = true}},
    .run = run_conda_unlink,
};

} // namespace sharefs::cli
