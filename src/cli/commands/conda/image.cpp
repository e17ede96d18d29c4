// sharefs conda image: the image of the present generation, if it has none yet.
#include "base/json_fields.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/support.hpp"

namespace sharefs::cli {

namespace {

Result<int> run_image(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto where, store_name(context, arguments.positional.front()));
  TRY_ASSIGN(const auto imaging, conda::plan_image(context.system, where.store, where.name, say_to(context)));
  Proposal proposal{imaging.plan, "the present generation has an image"};
  proposal.takes_long = true;
  const auto make = [&] {
    auto made = conda::make_missing_image(context.system, imaging, lease_settings(context), say_to(context));
    if (made)
      context.envelope.fields["image"] = json_of(*made->image);
    return made;
  };
  return execute_switch(context, std::move(proposal), make).map(&Executed::exit_code);
}

} // namespace

extern const CommandSpec k_conda_image_command{
    .name = "conda image",
    .summary = "Make the image of an environment's present generation, if it has none, or a damaged one",
    .description =
        "An image is one file with all of a generation, beside it on the share, about a third of its size: `sharefs "
        "conda stage` brings it to a node in seconds, where a copy of its files takes minutes. `conda share` and "
        "`conda update` make one (`conda.image`); this makes it for a generation that is older, or where there was no "
        "room. Made by mksquashfs of squashfs-tools.",
    .example = "sharefs conda image llm_train",
    .changes = true,
    .positional = {.name = "ENV", .help = "a shared environment, by its name in the store", .min = 1, .max = 1},
    .elsewhere = change_store_as_owner,
    .run = run_image,
};

} // namespace sharefs::cli
