#include "cli/commands/conda_links.hpp"

namespace sharefs::cli {

namespace {

Result<int> run_conda_link(Context& context, const Arguments& arguments) {
  return change_conda_links(context, arguments, conda::LinkRequest::Verb::link);
}

} // namespace

extern const CommandSpec k_conda_link_command;
const CommandSpec k_conda_link_command{
    .name = "conda link",
    .summary = "Link shared conda environments into the homes",
    .description =
        "Makes ~/CONDA/envs/ENV a link to STORE/ENV in each home of `conda.homes`, as the user whose home it is; with "
        "`link: whole` the directory ~/CONDA/envs itself. What is right is left alone, a link that leads nowhere or to "
        "another place of the store is exchanged, and anything else in the way is reported. Homes that cannot be "
        "reached "
        "do not hold up the others (exit code 4).",
    .example = "sharefs conda link --all            # every environment of `conda.envs` in every home\n"
               "sharefs conda link llm_train --user alice --backup\n"
               "                                    # her own llm_train is kept under another name",
    .effect = Effect::changes,
    .positional = {.name = "ENV", .help = "environments of `conda.envs`"},
    .options = {{.names = "--all", .help = "all environments of `conda.envs`"},
                {.names = "--backup",
                 .help = "rename what is in the way to NAME.sharefs-backup-DATE-TIME; `conda unlink` puts it back"},
                {.names = "--user", .value = "USER", .help = "only this user's home", .repeat = true}},
    .run = run_conda_link,
};

} // namespace sharefs::cli
