#include "cli/commands/init/facts.hpp"

#include "base/path.hpp"
#include "base/source.hpp"
#include "base/text.hpp"
#include "base/visible.hpp"
#include "config/keys.hpp"
#include "config/load.hpp"
#include "config/yaml_text.hpp"
#include "mounts/profiles.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace sharefs::cli {

namespace {

using config::yaml_scalar;

// ---- parts of the file ----

constexpr std::size_t k_line_width = 100;
constexpr std::size_t k_most_named = 8; ///< names in one comment

/// Puts `margin` and `# ` in front of every line.
std::string comment_out(std::string_view block, std::string_view margin) {
  std::string out;
  for (const auto& line : split_lines(block)) {
    const auto own = std::string_view(line).substr(line.starts_with(margin) ? margin.size() : 0);
    out += fmt::format("{}# {}\n", margin, visible(own));
  }
  return out;
}

/// Returns `KEY: [a, b]`, or one element per line if that is too long.
std::string list_text(std::string_view margin, std::string_view key, const std::vector<std::string>& values) {
  std::vector<std::string> scalars;
  for (const auto& value : values)
    scalars.push_back(config::yaml_scalar(value));
  auto line = fmt::format("{}{}: [{}]\n", margin, key, join(scalars, ", "));
  if (line.size() <= k_line_width)
    return line;
  line = fmt::format("{}{}:\n", margin, key);
  for (const auto& scalar : scalars)
    line += fmt::format("{}  - {}\n", margin, scalar);
  return line;
}

/// Joins the first names and the number of the others.
std::string join_few(std::vector<std::string> names) {
  if (names.size() > k_most_named) {
    const auto more = names.size() - k_most_named;
    names.resize(k_most_named);
    names.push_back(fmt::format("{} more", more));
  }
  return join(names, ", ");
}

/// Returns the reason why config::parse refuses these sections, without the place; "" if it accepts them.
std::string find_refusal(const std::string& sections) {
  const auto parsed = config::parse("version: 1\n" + sections, "");
  if (parsed)
    return {};
  const auto& message = parsed.error().message; // ":LINE:COLUMN: what"
  const auto what = message.find(": ");
  return what == std::string::npos ? message : message.substr(what + 2);
}

/// Returns the entry; in comments, with the reason, if `sections`, which contain it, are refused.
std::string entry_or_comment(const std::string& sections, const std::string& entry, std::string_view margin) {
  const auto why = find_refusal(sections);
  if (why.empty())
    return entry;
  return fmt::format("{}# not taken over: {}\n", margin, visible(why)) + comment_out(entry, margin);
}

// ---- servers ----

constexpr std::string_view k_servers_head =
    "# Servers, and the directories that they export. `sharefs export --all`, run on a server, makes it so.\n"
    "# `access` of an export says who may use the directory itself: keep, open (1777), or {group: NAME} (2770).\n";
constexpr std::string_view k_servers_example = "servers:\n"
                                               "  storage1:\n"
                                               "    address: 192.168.16.1\n"
                                               "    exports:\n"
                                               "      - path: /mnt/share\n"
                                               "        clients: [192.168.16.0/24]\n"
                                               "        options: [rw, sync, no_subtree_check]\n"
                                               "        access: keep\n";

/// Clients of one directory that have the same options.
struct Group {
  std::vector<std::string> clients;
  exports::Export first;
};
struct FoundExport {
  std::string path;
  std::vector<Group> groups;
  std::vector<std::string> origins;
};

/// Normalizes a directory as sharefs.yaml has it: `/mnt/share/` becomes /mnt/share. A path with `..` stays, because
/// links decide where it leads.
std::string plain_directory(const std::string& directory) {
  const auto names = split(directory, '/');
  const bool climbs = std::ranges::find(names, "..") != names.end();
  return directory.starts_with('/') && !climbs ? normalize_path(directory) : directory;
}

/// Returns the exports; directories, groups and clients stay in the order of the files.
std::vector<FoundExport> exports_of(const InitFacts& facts) {
  std::vector<FoundExport> found;
  std::map<std::string, std::size_t> directories;
  std::map<std::pair<std::size_t, std::string>, std::size_t> groups;
  std::set<std::pair<std::size_t, std::string_view>> clients; // exportfs uses the first of two equal clients
  for (const auto& file : facts.exports)
    for (const auto& entry : file.read()) {
      const auto path = plain_directory(entry.directory);
      const auto directory = directories.try_emplace(path, found.size()).first->second;
      if (directory == found.size())
        found.push_back({path, {}, {}});
      auto& same = found[directory];
      if (auto line = entry.line.text(); same.origins.empty() || same.origins.back() != line)
        same.origins.push_back(std::move(line));
      if (!clients.emplace(directory, entry.client).second)
        continue;
      const auto group = groups.try_emplace({directory, summary(entry.settings)}, same.groups.size()).first->second;
      if (group == same.groups.size())
        same.groups.push_back({{}, entry});
      same.groups[group].clients.push_back(entry.client);
    }
  return found;
}

/// Returns the options as they are written; in full if sharefs.yaml would read them differently (without options
/// exportfs exports ro). `own`: they stand behind the options of an export, which has none.
std::vector<std::string> options_of(const exports::Export& entry, bool own) {
  const auto& options = entry.options;
  const std::vector<std::string> none;
  const auto again =
      exports::make_export(entry.directory, entry.client, own ? none : options, {}, own ? options : none);
  return again.settings == entry.settings ? options : exports::split_options(summary(entry.settings));
}

std::string export_text(const FoundExport& found) {
  auto text = fmt::format("      - path: {}\n", yaml_scalar(found.path));
  if (found.groups.size() == 1) {
    const auto& [clients, first] = found.groups.front();
    return text + list_text("        ", "clients", clients) +
           list_text("        ", "options", options_of(first, false));
  }
  text += "        clients:\n";
  for (const auto& [clients, first] : found.groups) {
    auto hosts = list_text("            ", "hosts", clients);
    hosts.replace(10, 1, "-");
    text += hosts + list_text("            ", "options", options_of(first, true));
  }
  return text;
}

std::string host_name(const InitFacts& facts) {
  const auto name = facts.hostname.substr(0, facts.hostname.find('.'));
  return config::check_name(name) || config::plain_meaning(name) ? "storage1" : name;
}

/// Returns the short names of servers in mounts: a typing mistake in such a name is found only if `servers:` describes
/// it.
std::set<std::string> named_servers(const InitFacts& facts) {
  std::set<std::string> names;
  for (const auto& mount : facts.mounts)
    if (const auto server = parse_source(mount.source).server;
        !server.empty() && server.find_first_of(".:") == std::string::npos &&
        find_refusal(fmt::format("servers:\n  {0}: {{address: {0}}}\n", server)).empty())
      names.insert(server);
  return names;
}

std::string servers_section(const InitFacts& facts) {
  const auto found = exports_of(facts);
  auto others = named_servers(facts);
  others.erase(host_name(facts));
  std::string text(k_servers_head);
  if (found.empty() && others.empty())
    return text + "# None was found on this host. For example:\n" + comment_out(k_servers_example, "");
  const bool foreign = std::ranges::any_of(found, [](const FoundExport& entry) {
    return std::ranges::any_of(entry.origins,
                               [](const std::string& origin) { return !origin.starts_with(exports::k_own_file); });
  });
  if (foreign)
    text += "# Lines that stand in another exports file too, of which exportfs takes the first: run `sharefs export "
            "--all`, then\n# take them out there.\n";
  for (const auto& file : facts.exports)
    if (!file.complete)
      text += fmt::format("# {} has an error, and exportfs does not read on behind it: `sharefs export check`.\n",
                          visible(file.name));
  text += "servers:\n";
  if (!found.empty()) {
    const auto address = facts.addresses.empty() ? host_name(facts) : facts.addresses.front();
    text += fmt::format("  {}:\n    address: {}", host_name(facts), yaml_scalar(address));
    if (facts.addresses.size() > 1)
      text += fmt::format("  # or {}", join_few({facts.addresses.begin() + 1, facts.addresses.end()}));
    text += "\n    exports:\n";
    for (const auto& one : found) {
      const auto entry = export_text(one);
      text += fmt::format("      # {}\n", visible(join_few(one.origins))) +
              entry_or_comment("servers:\n  x:\n    exports:\n" + entry, entry, "      ");
    }
  }
  for (const auto& name : others)
    text +=
        fmt::format("  {0}:\n    address: {0}  # run `sharefs init` there too: its exports are not known here\n", name);
  return text;
}

// ---- mounts ----

constexpr std::string_view k_mounts_head =
    "# What every machine mounts, by name: `sharefs mount --all`. Profiles: safe (waits for a server that is away;\n"
    "# nosuid,nodev), recipe (rw,bg,soft,nolock), immutable (read-only); more by `options: [...]`.\n";
constexpr std::string_view k_mounts_example =
    "mounts:\n  share: {from: \"storage1:/mnt/share\", at: /data/share, profile: safe}\n";

/// Makes a name for a mount. `taken` has the names so far, each with the last number that was appended to it.
std::string mount_name(const std::string& target, std::map<std::string, int>& taken) {
  auto first = base_name(target);
  for (auto& letter : first)
    if (config::check_name(std::string("x") + letter))
      letter = '-';
  if (config::check_name(first) || config::plain_meaning(first))
    first = "share";
  if (taken.try_emplace(first, 1).second)
    return first;
  for (int& number = taken[first];;)
    if (auto name = fmt::format("{}-{}", first, ++number); taken.try_emplace(name, 1).second)
      return name;
}

/// Returns the source of a mount, with the server's name as the file has it.
std::string from_of(const std::string& source, const InitFacts& facts) {
  const auto remote = parse_source(source);
  if (remote.server.empty())
    return source;
  const bool own = std::ranges::find(facts.addresses, remote.server) != facts.addresses.end();
  const bool exporting =
      std::ranges::any_of(facts.exports, [](const exports::ExportsFile& file) { return file.taken > 0; });
  const auto server = own && exporting ? host_name(facts) : remote.server;
  return format_source(server, normalize_path(remote.path));
}

/// Returns the profile `safe` and the options with which a mount behaves as it does now.
std::string behaviour_text(const std::vector<std::string>& options) {
  return "    profile: safe\n" + (options.empty() ? "" : list_text("    ", "options", options));
}

/// Names what mounts it at boot: that is left alone until the user lets sharefs do it.
std::string boot_text(const InitFacts& facts, const std::string& target) {
  for (const auto* entries : {&facts.boot, &facts.not_taken})
    for (const auto& entry : *entries)
      if (entry.target == target)
        return fmt::format("    boot: none  # {} {}\n", visible(entry.origin),
                           entries == &facts.boot ? "does it" : "has it, and does not mount it at boot");
  return "";
}

/// Returns the entries that the file does not have as present mounts.
std::vector<mounts::BootEntry> left_out(const InitFacts& facts) {
  auto entries = facts.not_taken;
  std::erase_if(entries, [&](const mounts::BootEntry& entry) {
    return entry.is_nfs() &&
           std::ranges::find(facts.mounts, entry.target, &sys::MountEntry::target) != facts.mounts.end();
  });
  return entries;
}

/// Returns the reason why an NFS mount is left out; for another file system its type.
std::string why_left_out(const mounts::BootEntry& entry) {
  if (!entry.is_nfs())
    return entry.type;
  return is_expanded(entry.source) ? "a shell computes the source" : "not mounted at boot";
}

/// Lists what is left out: sharefs mounts only NFS, and would make an NFS mount or a bind mount of another file system.
std::string left_out_text(const InitFacts& facts) {
  std::string text;
  for (const auto& entry : left_out(facts))
    text +=
        visible(fmt::format("#   {}: {} on {} ({}{})", entry.origin, entry.source, entry.target, why_left_out(entry),
                            entry.is_nfs()       ? ""
                            : entry.type.empty() ? "no NFS"
                                                 : ", no NFS")) +
        "\n";
  return text.empty() ? text : "# Not taken over, and left as it is:\n" + text;
}

std::string mounts_section(const InitFacts& facts) {
  std::string text(k_mounts_head);
  text += left_out_text(facts);
  if (facts.mounts.empty() && facts.boot.empty())
    return text + "# No NFS mount was found on this host. For example:\n" + comment_out(k_mounts_example, "");
  text += "mounts:\n";
  std::map<std::string, int> taken;
  std::set<std::string> targets;
  const auto add = [&](const std::string& comment, const std::string& from, const std::string& target,
                       const std::string& rest) {
    if (!targets.insert(target).second)
      return;
    const auto entry = fmt::format("  {}:\n    from: {}\n    at: {}\n{}{}", mount_name(target, taken),
                                   yaml_scalar(from), yaml_scalar(target), rest, boot_text(facts, target));
    text += fmt::format("  # {}\n", visible(comment)) + entry_or_comment("mounts:\n" + entry, entry, "  ");
  };
  for (const auto& mount : facts.mounts)
    add("now " + mount.super_options, from_of(mount.source, facts), mount.target,
        behaviour_text(mounts::options_beside_safe(mount)));
  for (const auto& entry : facts.boot)
    add("not mounted now; " + entry.origin, from_of(entry.source, facts), entry.target,
        behaviour_text(mounts::options_beside_safe(entry.options)));
  return text;
}

// ---- the rest ----

/// The section is only an example: a person has to say who works in a shared store, and where the homes have conda.
std::string conda_section(const InitFacts& facts) {
  const auto share = facts.mounts.empty() ? "/data/share" : facts.mounts.front().target;
  return "# Shared conda environments: `sharefs conda link --all` makes ~/CONDA/envs/ENV in each home a link to "
         "STORE/ENV.\n"
         "# For example:\n" +
         comment_out(fmt::format("conda:\n  store: {}\n  envs: [llm_train]\n  homes:\n"
                                 "    users: [alice, bob]\n    conda: miniconda3\n",
                                 yaml_scalar(join_path(share, "conda"))),
                     "");
}

std::string rest_section(const InitFacts& facts) {
  const auto share = facts.mounts.empty() ? "/data/share" : facts.mounts.front().target;
  const auto hostfile = facts.hostfile.empty() ? join_path(share, "hostfile") : facts.hostfile;
  const auto nodes = "nodes:\n  hostfile: " + yaml_scalar(hostfile) + "\n";
  return "# Where `sharefs run` puts caches that must not lie on shared storage: on each node's own disk.\n"
         "caches:\n"
         "  local: /var/cache/sharefs\n"
         "\n"
         "# The nodes of the cluster, one `HOST slots=GPUS` per line as DeepSpeed has it.\n" +
         (facts.hostfile.empty() ? comment_out(nodes, "") : nodes);
}

} // namespace

std::string init_text(const InitFacts& facts) {
  const auto head = fmt::format(
      "# sharefs.yaml: what the shared storage of this cluster should be. The same file belongs on every machine.\n"
      "# Written by `sharefs init`{}{} from what was found there. After editing: `sharefs config check`.\n"
      "# All keys: `sharefs config keys`.\n"
      "version: 1\n",
      facts.hostname.empty() ? "" : " on ", visible(facts.hostname));
  auto text =
      join({head, servers_section(facts), mounts_section(facts), conda_section(facts), rest_section(facts)}, "\n");
  if (config::parse(text, ""))
    return text;
  // Each part was checked by itself, so this is not expected. A file of comments is better than one that cannot be
  // parsed.
  return head + "\n" + comment_out(text.substr(head.size()), "");
}

std::string summary_of(const InitFacts& facts, const std::string& text) {
  const auto config = config::parse(text, "");
  std::size_t exports = 0;
  for (const auto& server : config ? config->servers : std::vector<config::Server>())
    exports += server.exports.size();
  auto summary =
      fmt::format("{} and {}", count_of(exports, "export"), count_of(config ? config->mounts.size() : 0, "NFS mount"));
  std::vector<std::string> others;
  for (const auto& entry : left_out(facts))
    others.push_back(fmt::format("{} ({})", entry.target, why_left_out(entry)));
  return others.empty() ? summary : visible(summary + "; not taken over: " + join_few(others));
}

} // namespace sharefs::cli
