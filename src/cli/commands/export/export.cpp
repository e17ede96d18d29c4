// sharefs export: puts this host's exports of sharefs.yaml into force and verifies them.
#include "cli/commands/export/support.hpp"
#include "cli/execute.hpp"
#include "exports/export_flow.hpp"

#include "base/try.hpp"

namespace sharefs::cli {

namespace {

/// Shows the plan, applies it, verifies the exports, and undoes the change if they are not as wanted.
Result<int> put_into_force(Context& context, const exports::Request& request) {
  exports::Proposed proposed;
  const auto say = say_to(context);
  const auto propose = [&]() -> Result<Proposal> {
    const auto result = exports::propose(context.system, request, proposed, say);
    context.envelope.fields["exports"] = to_json(proposed.composed.exports);
    TRY(result);
    return Proposal{proposed.plan, proposed.nothing};
  };
  TRY_ASSIGN(const auto executed, execute(context, propose));
  if (executed.exit_code != k_exit_ok || (!executed.applied() && !proposed.plan.empty()))
    return executed.exit_code;
  TRY_ASSIGN(const auto found, exports::verify(context.system, request, proposed, say));
  return conclude_exports(context, executed, proposed, found).map([] { return k_exit_ok; });
}

Result<int> run_export(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto config, context.config());
  TRY_ASSIGN(const auto files, exports::read_host_files(context.system.files()));
  const auto own = find_own_servers(context.system, *config);
  if (own.servers.empty() && !(arguments.flag("remove") && files.own))
    return fail(not_a_server(context.system, *config));
  TRY_ASSIGN(const auto request, export_request(context.system, *config, arguments, own, files));
  TRY(require_root(context, "only root can export"));
  return put_into_force(context, request);
}

} // namespace

extern const CommandSpec k_export_command{
    .name = "export",
    .summary = "Export directories of this host, and verify it",
    .description =
        "Puts this host's exports of sharefs.yaml into force: the directory and its access, "
        "/etc/exports.d/sharefs.exports, the portmapper and the NFS server if they do not run, and `exportfs -r`. "
        "Then compares what is really exported, by etab and over the network, and takes everything back if a client is "
        "missing or has other rights. A running server is never restarted, and nothing is installed. Refused are "
        "directories that users could replace by others, and access to those of the system. /etc/exports is never "
        "touched: a line there that sharefs.yaml has too is named, and counts until you take it out.",
    .example = "sharefs export --all              # every export of this host\n"
               "sharefs export /mnt/share --dry-run\n"
               "sharefs export --remove share     # withdraw it; the directory stays",
    .changes = true,
    .positional = {.name = "NAME", .help = "PATH, SERVER:PATH, or the last part of PATH"},
    .options = {{.names = "--all", .help = "Every export of this host"},
                {.names = "--remove", .help = "Withdraw the exports instead; directories and files stay"},
                {.names = "--recursive", .help = "Give what lies below to the group of `access:`, too"},
                {.names = "--drop-adhoc",
                 .help = "Let the reload drop what stands in no exports file (`exportfs CLIENT:DIRECTORY`)"}},
    .on_nodes = true,
    .run = run_export,
};

} // namespace sharefs::cli
