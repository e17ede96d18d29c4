#include "cli/commands/export/support.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/identity/identity.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

constexpr std::chrono::milliseconds k_name_deadline{3000};

bool is_own(sys::System& system, const sys::Identity& identity, const config::Server& server) {
  return sys::is_this_host(identity, server.address) || sys::is_this_host(identity, server.name) ||
         leads_here(system, identity, server.address, k_name_deadline).value_or(false);
}

Result<void> add_desired(sys::System& system, const config::Export& entry, exports::Request& request) {
  const auto directory = normalize_path(entry.path);
  for (const auto& client : entry.clients)
    for (const auto& host : client.hosts) {
      auto one = exports::make_export(directory, host, entry.options,
                                      client.options.empty() ? entry.origin : client.origin, client.options);
      one.line = entry.origin;
      request.exports.push_back(std::move(one));
    }
  TRY_ASSIGN(auto access, directory_access(system, entry.access, entry.origin));
  if (access.kind != plan::DirectoryAccess::Kind::keep)
    request.access[directory] = std::move(access);
  return {};
}

/// An export that a word of the command line may name.
struct Named {
  std::string name, path;
  const config::Export* entry = nullptr; ///< nullptr: it is only in the exports file of sharefs
};

bool means(const std::string& word, const Named& named) {
  return word == named.name || normalize_path(word) == named.path || word == base_name(named.path);
}

Result<std::vector<Named>> select(const std::vector<std::string>& words, const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const auto& named : all)
    names.push_back(named.path);
  if (words.empty())
    return fail(ErrorCode::usage, "no export was named",
                names.empty() ? "this host has no `exports:` in sharefs.yaml"
                              : fmt::format("name an export ({}) or use --all", join(names, ", ")));
  std::vector<Named> selected;
  for (const auto& word : words) {
    std::vector<std::string> paths;
    for (const auto& named : all) {
      if (!means(word, named))
        continue;
      selected.push_back(named);
      if (std::find(paths.begin(), paths.end(), named.path) == paths.end())
        paths.push_back(named.path);
    }
    if (paths.size() > 1)
      return fail(ErrorCode::usage, fmt::format("`{}` is more than one export: {}", word, join(paths, ", ")),
                  "give the whole path");
    if (!paths.empty())
      continue;
    std::vector<std::string> further{"check"}; // a misspelt `sharefs export check`
    for (const auto& name : names)
      further.push_back(base_name(name));
    const auto hint = name_hint(word, names, "the exports are", std::move(further));
    return fail(ErrorCode::usage, fmt::format("there is no export `{}` of this host", word),
                hint.empty() ? "this host has no `exports:` in sharefs.yaml" : hint);
  }
  return selected;
}

} // namespace

Result<plan::DirectoryAccess> directory_access(sys::System& system, const config::Access& access,
                                               const Origin& origin) {
  using enum plan::DirectoryAccess::Kind;
  if (access.kind != config::Access::Kind::group)
    return plan::DirectoryAccess{access.kind == config::Access::Kind::open ? open : keep, {}};
  const auto gid = exports::resolve_group(system, access.group);
  if (!gid) {
    auto error = gid.error();
    error.message = origin.text() + ": " + error.message;
    return fail(error);
  }
  return plan::DirectoryAccess{group, access.group, *gid, access.mode | (access.sticky ? 01000U : 0U)};
}

std::optional<bool> leads_here(sys::System& system, const sys::Identity& identity, const std::string& name,
                               std::chrono::milliseconds deadline) {
  if (!exports::canonical_address(name).empty())
    return false;
  const auto fact = deadline.count() > 0 ? exports::resolve_name(system, name, deadline) : std::nullopt;
  if (!fact)
    return std::nullopt;
  return std::ranges::any_of(fact->addresses,
                             [&](const std::string& address) { return sys::is_this_host(identity, address); });
}

std::size_t OwnServers::exports() const {
  std::size_t count = 0;
  for (const auto* server : servers)
    count += server->exports.size();
  return count;
}

OwnServers find_own_servers(sys::System& system, const config::Config& config) {
  const auto identity = system.identity();
  OwnServers own;
  for (const auto& server : config.servers) {
    if (!is_own(system, identity, server))
      continue;
    own.servers.push_back(&server);
    if (own.address.empty() && !exports::canonical_address(server.address).empty() &&
        sys::is_this_host(identity, server.address))
      own.address = server.address;
  }
  if (own.address.empty())
    own.address = identity.addresses.empty() ? "127.0.0.1" : identity.addresses.front();
  return own;
}

Error not_a_server(sys::System& system, const config::Config& config) {
  const auto identity = system.identity();
  std::vector<std::string> servers;
  for (const auto& server : config.servers)
    servers.push_back(server.name == server.address ? server.name
                                                    : fmt::format("{} ({})", server.name, server.address));
  const auto addresses = identity.addresses.empty() ? "no address" : join(identity.addresses, ", ");
  if (servers.empty())
    return {ErrorCode::config, "sharefs.yaml has no `servers:`, so this host exports nothing",
            "run `sharefs config keys` for what can be written", ""};
  return {ErrorCode::config,
          fmt::format("this host (`{}`, {}) is no server of sharefs.yaml, which has {}", identity.hostname, addresses,
                      join(servers, ", ")),
          "run this on the server, or correct the server's `address`", ""};
}

Result<exports::Request> export_request(sys::System& system, const config::Config& config, const Arguments& arguments,
                                        const OwnServers& own, const exports::HostFiles& files) {
  const bool all = arguments.flag("all"), remove = arguments.flag("remove"), recursive = arguments.flag("recursive");
  if (all && !arguments.positional.empty())
    return fail(ErrorCode::usage, "both names and --all were given", "leave one of them out");
  if (recursive && remove)
    return fail(ErrorCode::usage, "--recursive does not go with --remove", "leave it out");
  std::vector<Named> known;
  for (const auto* server : own.servers)
    for (const auto& entry : server->exports)
      known.push_back({entry.name, normalize_path(entry.path), &entry});
  if (remove)
    for (const auto& directory : exports::own_directories(files))
      if (std::none_of(known.begin(), known.end(), [&](const Named& named) { return named.path == directory; }))
        known.push_back({"", directory, nullptr});
  TRY_ASSIGN(known, all ? Result<std::vector<Named>>(known) : select(arguments.positional, known));
  exports::Request request;
  request.exactly = all;
  request.recursive = recursive;
  request.drop_adhoc = arguments.flag("drop-adhoc");
  request.config_file = config.file;
  request.address = own.address;
  request.members = config.conda ? config.conda->users() : std::vector<std::string>();
  for (const auto& named : known)
    if (remove)
      request.remove.push_back(named.path);
    else
      TRY(add_desired(system, *named.entry, request));
  if (recursive && std::ranges::none_of(request.access, [](const auto& access) {
        return access.second.kind == plan::DirectoryAccess::Kind::group;
      }))
    return fail(ErrorCode::config,
                "--recursive gives what lies below a directory to the group of its `access:`, and no "
                "named export has one",
                "write `access: {group: NAME}` in sharefs.yaml");
  return request;
}

Result<void> conclude_exports(Context& context, const Executed& executed, const exports::Proposed& proposed,
                              const Diagnoses& found) {
  context.report(found);
  context.envelope.fields["verified"] = !has_errors(found);
  if (!has_errors(found)) {
    if (!proposed.composed.exports.empty())
      context.console.message(proposed.actual.server.version3
                                  ? "verified in etab and over the network"
                                  : "verified in etab (a server for version 4 only lists nothing over the network)");
    return {};
  }
  if (!executed.applied() || executed.report->journal_id.empty() || proposed.plan.empty())
    return fail(ErrorCode::failed, "the exports are not as sharefs.yaml has them", "see the errors above");
  TRY(roll_back(context, executed.report->journal_id, "the exports are not as wanted"));
  return fail(ErrorCode::failed, "the exports were not as wanted, and everything was taken back",
              "see the errors above");
}

Json to_json(const std::vector<exports::Export>& list) {
  auto json = Json::array();
  for (const auto& entry : list)
    json.push_back({{"directory", to_utf8(entry.directory)},
                    {"client", to_utf8(entry.client)},
                    {"kind", exports::to_string(exports::kind_of(entry.client))},
                    {"options", to_utf8(summary(entry.settings))},
                    {"origin", to_utf8(entry.origin.text())}});
  return json;
}

} // namespace sharefs::cli
