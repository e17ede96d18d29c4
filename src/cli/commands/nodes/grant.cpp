// sharefs nodes grant: gives nodes one thing that ssh needs there, or removes it. `nodes trust` starts it as a step of
// its plan, so that `undo` can remove it.
#include "base/random.hpp"
#include "base/try.hpp"
#include "cli/commands/nodes/trust.hpp"
#include "cli/exit_code.hpp"
#include "cli/fleet_view.hpp"

#include <fmt/format.h>

namespace sharefs::cli {

namespace {

Result<int> run_nodes_grant(Context& context, const Arguments& arguments) {
  const auto grant = fleet::grant_from(arguments.positional.at(0));
  const auto mark = arguments.value("mark").value_or("");
  if (!grant)
    return fail(ErrorCode::usage, fmt::format("`nodes grant` does not know `{}`", arguments.positional.at(0)),
                "one of key, hosts, users, mesh");
  if (!are_random_letters(mark))
    return fail(ErrorCode::usage, "option `--mark` needs letters and digits; they mark the lines that are added");
  TRY_ASSIGN(const auto known, known_nodes(context));
  TRY_ASSIGN(const auto nodes, chosen_of(known, arguments.positional.at(1)));
  TRY_ASSIGN(const auto trust, begin_trust(context, arguments, nodes));
  fleet::Granting granting{.grant = *grant,
                           .ca = given_path(context, arguments, "ca"),
                           .mark = mark,
                           .password = given_path(context, arguments, "password-file")};
  if (const auto of = arguments.value("of")) {
    TRY_ASSIGN(const auto all, chosen_of(known, *of));
    TRY_ASSIGN(granting.mesh, fleet::read_ssh_settings(context.system, all));
  }
  TRY_ASSIGN(const auto outcomes,
             fleet::grant_on_nodes(trust, trust.nodes, granting,
                                   arguments.flag("remove") ? fleet::GrantWork::remove : fleet::GrantWork::add));
  show_outcomes(context, outcomes);
  if (const auto name = arguments.value("record")) {
    TRY_ASSIGN(const auto made,
               plan::PrivateDirectory::make(context.system.files(), fleet::record_of_grant(trust, *name)));
    TRY(fleet::write_outcomes(made, outcomes));
    return k_exit_ok; // the process that reads the record reports failures
  }
  return fleet::exit_code_of(outcomes);
}

} // namespace

extern const CommandSpec k_nodes_grant_command{
    .name = "nodes grant",
    .summary = "Bring one thing to nodes that ssh needs there, as `nodes trust` does it, or take it away",
    .description =
        "`key`: this user's public key in authorized_keys; `hosts`: certificates of the host keys by the authority "
        "--ca; `users`: user certificates of the authority --ca are believed; `mesh`: the host keys of all nodes in "
        "/etc/ssh/ssh_known_hosts. --remove takes away the lines that were added with this mark, and no others.",
    .example = "sharefs nodes grant key gpu07 --mark k3x9              # as a step of `sharefs nodes trust`\n"
               "sharefs nodes grant key gpu07 --mark k3x9 --remove     # as `sharefs undo` takes it back",
    .effect = Effect::reads,
    .positional = {.name = "WHAT NODES", .help = "key, hosts, users or mesh, and where", .min = 2, .max = 2},
    .options = with_fleet_options(
        {{.names = "--mark", .value = "TEXT", .help = "stands at the end of each line that is added"},
         {.names = "--remove", .help = "take it away"},
         {.names = "--key", .value = "FILE", .help = "the user's key, instead of ssh's first"},
         {.names = "--ca", .value = "KEY", .help = "the private key of the authority"},
         {.names = "--of", .value = "NODES", .help = "the nodes whose host keys the others shall know"},
         {.names = "--password-file", .value = "FILE", .help = "a file of this user alone with the password for nodes"},
         {.names = "--record", .value = "NAME", .help = "leave the answers for `nodes trust`"}}),
    .run = run_nodes_grant,
};

} // namespace sharefs::cli
