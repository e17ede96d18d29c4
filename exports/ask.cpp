#include "exports/ask.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "exports/host.hpp"
#include "sys/programs/isolation.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <set>
#include <unordered_map>

namespace sharefs::exports {

namespace {

constexpr std::chrono::seconds k_deadline{60}; ///< the same as for `exportfs -r` in a plan
constexpr std::size_t k_largest_etab = 64U << 20U;
/// A limit is needed because exportfs reads all of /etc/hosts twice for each name.
constexpr std::size_t k_most_names = 20'000;
constexpr const char* k_features = "/proc/fs/nfsd/export_features";
/// exportfs starts in this directory, as at boot: a relative path begins there.
constexpr const char* k_start = "/";

/// Returns the path of file number `i` in the namespace.
std::string path_of(const std::vector<ExportsFile>& files, std::size_t i, Scope scope) {
  if (scope == Scope::host)
    return files[i].name;
  return i == 0 ? std::string(k_exports_file) : fmt::format("{}/{:06}.exports", k_exports_directory, i);
}

bool is_host_name(std::string_view client) {
  // No host is called `192.168.1.10-192.168.1.20` or `10.0.0.300`, so these do not get an address.
  return kind_of(client) == ClientKind::host && client.find_first_not_of("0123456789.-") != std::string_view::npos &&
         std::ranges::all_of(client, [](unsigned char byte) {
           return std::isalnum(byte) != 0 || byte == '.' || byte == '-' || byte == '_';
         });
}

std::set<std::string> clients_of(const std::vector<ExportsFile>& files) {
  std::set<std::string> clients;
  for (const auto& file : files)
    for (const auto& entry : file.exports)
      clients.insert(entry.client);
  return clients;
}

/// Returns the /etc/hosts of the namespace. The namespace has no network, so exportfs cannot ask a name server there:
/// the file is the host's own with a line for each address of the other names. A name that was not resolved, or gave no
/// answer, gets an address of its own from the unused range 240.0.0.0/4.
std::string hosts_for(const std::set<std::string>& clients, const HostFacts& facts) {
  auto text = facts.hosts;
  auto known = facts_in_hosts(text);
  unsigned unknown = 1; // stays below k_most_names
  for (const auto& client : clients) {
    if (!is_host_name(client) || !known.try_emplace(lower_case(client)).second)
      continue;
    auto addresses = std::vector{fmt::format("240.{}.{}.{}", unknown >> 16U, unknown >> 8U & 0xffU, unknown & 0xffU)};
    if (const auto found = facts.names.find(client); found != facts.names.end())
      addresses = found->second.addresses;
    else
      ++unknown;
    for (const auto& address : addresses)
      text += fmt::format("\n{} {}\n", address, client);
  }
  return text;
}

/// Returns the interfaces that addresses of clients name (`fe80::1%eth0`, or with a label `fe80::1%eth0:1`), without
/// those that this host is known not to have.
std::vector<std::string> interfaces_for(const std::set<std::string>& clients, const HostFacts& facts) {
  std::set<std::string> names;
  for (const auto& client : clients) {
    const auto fact = facts.names.find(client);
    const bool none = fact != facts.names.end() && fact->second.addresses.empty();
    if (!has_scope(client) || none || client.find(',') != std::string::npos)
      continue;
    const auto zone = std::string_view(client).substr(client.find('%') + 1);
    const auto name = zone.substr(0, zone.find(':'));
    if (name != "lo" && name.find_first_not_of("0123456789") != std::string_view::npos)
      names.emplace(name);
  }
  return {names.begin(), names.end()};
}

/// Stops the file at the option in quotes of a complaint: `unknown keyword "rx"`. False if it names none of the file.
bool stop_at_option(ExportsFile& file, std::string_view complaint) {
  const auto begin = complaint.find('"') + 1;
  const auto end = complaint.rfind('"');
  if (begin == 0 || end < begin)
    return false;
  const std::string option(complaint.substr(begin, end - begin));
  const bool is_its_text = std::ranges::all_of(
      file.exports, [&](const Export& entry) { return entry.origin.file == file.name; }); // or of sharefs.yaml
  file.refused = option;
  if (is_its_text)
    file = parse(std::string(file.text), std::string(file.name), option);
  return !is_its_text || !file.complete;
}

/// Reads the complaints on exportfs' standard error: `exportfs: /etc/exports:3: unknown keyword "rx"`,
/// `exportfs: /etc/exports: 5: bad fsid "fsid=x"`. Stops the files at the options that they name, and returns those
/// about files whose text looks right.
std::vector<Complaint> read_complaints(std::string_view said, std::vector<ExportsFile>& files, Scope scope) {
  constexpr std::string_view k_program = "exportfs: ";
  constexpr std::size_t k_most = 1000;
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < files.size(); ++i)
    paths.push_back(path_of(files, i, scope) + ":"); // the name of a file may hold colons and line ends, too
  std::vector<Complaint> complaints;
  while (!said.empty() && complaints.size() < k_most) {
    auto text = said;
    said.remove_prefix(std::min(said.find('\n'), said.size() - 1) + 1);
    if (!text.starts_with(k_program))
      continue;
    text.remove_prefix(k_program.size());
    const auto path = std::ranges::find_if(paths, [&](const std::string& one) { return text.starts_with(one); });
    if (path == paths.end())
      continue;
    text.remove_prefix(path->size());
    const auto number = static_cast<std::size_t>(path - paths.begin());
    const auto rest = trim(text.substr(0, text.find('\n'))); // "5: bad fsid ..."
    const auto digits = rest.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string_view::npos || !rest.substr(digits).starts_with(": "))
      continue;
    if (!stop_at_option(files[number], rest.substr(digits + 2)) && files[number].complete)
      complaints.push_back({number, to_utf8(rest.substr(digits + 2))});
  }
  return complaints;
}

/// Finds the name that etab has for a client. For a host this is its canonical name; if the host shares an address with
/// hosts that exportfs has read before, it is the name of the first of them.
class NamesInEtab {
 public:
  explicit NamesInEtab(const Names& names) : m_facts(names) {}

  /// Has to be called in the order in which exportfs reads the entries. `taken` means that exportfs takes an entry of
  /// this client, and so remembers its addresses: other clients with one of these addresses get its name.
  std::string resolve(const std::string& client, bool taken) {
    if (kind_of(client) != ClientKind::host)
      return client;
    const auto fact = m_facts.find(client);
    const auto addresses = fact != m_facts.end() ? fact->second.addresses : std::vector{client};
    std::size_t first = m_names.size();
    for (const auto& address : addresses)
      if (const auto known = m_by_address.find(normalize_client(address)); known != m_by_address.end())
        first = std::min(first, known->second);
    if (first < m_names.size())
      return m_names[first];
    auto name = fact == m_facts.end() || fact->second.canonical.empty() ? client : fact->second.canonical;
    if (taken) {
      m_names.push_back(name);
      for (const auto& address : addresses)
        m_by_address.emplace(normalize_client(address), first);
    }
    return name;
  }

 private:
  const Names& m_facts;
  std::vector<std::string> m_names;
  std::unordered_map<std::string, std::size_t> m_by_address;
};

/// Assigns the lines of `etab` to the entries of the files, and stores them in `expected` in the order of the files. An
/// entry after an error gets only a line that is left over, for the case that exportfs has read on after all.
void assign_lines(std::vector<Export> etab, const std::vector<ExportsFile>& files, const HostFacts& facts,
                  ExpectedEtab& expected) {
  const auto key = [](const std::string& directory, const std::string& client) {
    return directory + '\0' + client; // a NUL byte cannot be part of a path
  };
  // The names of two hosts may differ only in case, so the normalized spelling is used only if no line has the exact
  // name.
  std::unordered_map<std::string, std::size_t> lines;
  for (std::size_t i = 0; i < etab.size(); ++i)
    lines.emplace(key(etab[i].directory, etab[i].client), i);
  for (std::size_t i = 0; i < etab.size(); ++i)
    lines.emplace(key(etab[i].directory, normalize_client(etab[i].client)), i);
  NamesInEtab names(facts.names);
  const auto find = [&](const Export& written) -> std::optional<std::size_t> {
    const auto client = names.resolve(written.client, false);
    const auto relative = normalize_path(join_path(k_start, written.directory)); // as exportfs resolves it
    for (const auto& directory : {etab_path(written.directory, facts), written.directory, etab_path(relative, facts)})
      for (const auto& name : {client, normalize_client(client)})
        if (const auto line = lines.find(key(directory, name)); line != lines.end()) {
          names.resolve(written.client, true);
          return line->second;
        }
    return std::nullopt;
  };
  std::vector<std::optional<std::size_t>> taken(etab.size()); // for each line the position of its entry
  expected.outcomes.resize(files.size());
  const auto take = [&](std::size_t file, std::size_t i) {
    const auto& written = files[file].exports[i];
    const auto line = find(written);
    auto& outcome = expected.outcomes[file].emplace_back();
    if (line && !taken[*line]) {
      taken[*line] = outcome.position = expected.entries.size();
      auto& entry = expected.entries.emplace_back(etab[*line]);
      entry.origin = written.origin;
      entry.line = written.line;
    } else if (line && i < files[file].taken) {
      outcome = {taken[*line], true};
    }
  };
  for (std::size_t file = 0; file < files.size(); ++file)
    for (std::size_t i = 0; i < files[file].taken; ++i)
      take(file, i);
  for (std::size_t file = 0; file < files.size(); ++file)
    for (std::size_t i = files[file].taken; i < files[file].exports.size(); ++i)
      take(file, i);
  for (std::size_t i = 0; i < etab.size(); ++i)
    if (!taken[i])
      expected.entries.push_back(std::move(etab[i]));
}

/// True for a file without entries and faults: for it exportfs writes nothing, so it need not be asked.
bool is_empty(const ExportsFile& file) {
  return file.exports.empty() && file.complete && file.diagnoses.empty();
}

std::string find_failure(const Result<sys::Completed>& completed) {
  if (!completed)
    return completed.error().message;
  if (completed->timed_out)
    return fmt::format("`exportfs` gave no answer within {} s", k_deadline.count());
  if (completed->out.size() >= k_largest_etab)
    return "`exportfs` writes more than can be read";
  if (completed->exit_code > 128)
    return fmt::format("`exportfs` crashes on these files (signal {})", completed->exit_code - 128);
  if (completed->exit_code >= sys::k_no_result)
    return fmt::format("`exportfs` failed: {}", trim(to_utf8(completed->err)));
  return "";
}

} // namespace

ExpectedEtab read_answer(std::string_view etab, const std::vector<ExportsFile>& files, const HostFacts& facts,
                         std::vector<Complaint> complaints) {
  std::vector<Export> entries;
  std::set<std::pair<std::string, std::string>> unreadable; // by directory and client
  const auto in_hosts = facts_in_hosts(facts.hosts);
  int number = 0;
  ExpectedEtab expected;
  for (const auto& line : split_lines(etab)) {
    auto entry = parse_etab_line(line, {k_etab, ++number, 1});
    if (entry) {
      const bool readable = is_readable(line, *entry);
      // The namespace has no name server, so etab has the name as written where the host has its canonical name.
      if (const auto fact = facts.names.find(entry->client);
          fact != facts.names.end() && !fact->second.canonical.empty() && !in_hosts.contains(lower_case(entry->client)))
        entry->client = fact->second.canonical;
      if (!readable)
        unreadable.emplace(entry->directory, entry->client);
      entries.push_back(std::move(*entry));
    }
    expected.broken |= !entry;
  }
  expected.complaints = std::move(complaints);
  assign_lines(std::move(entries), files, facts, expected);
  for (std::size_t i = 0; i < expected.entries.size() && !unreadable.empty(); ++i)
    if (unreadable.contains({expected.entries[i].directory, expected.entries[i].client}))
      expected.unreadable.push_back(i);
  return expected;
}

ExpectedEtab predict_from_text(const std::vector<ExportsFile>& files, const HostFacts& facts) {
  const auto can_be_none = [&](const std::string& client) {
    const auto kind = kind_of(client);
    if (kind == ClientKind::network) {
      const auto network = parse_network(client);
      return !network && !network.error().zero;
    }
    const auto name = facts.names.find(client);
    return kind == ClientKind::host &&
           (client.find(',') != std::string::npos || (name != facts.names.end() && name->second.addresses.empty()));
  };
  std::vector<Export> etab;
  NamesInEtab names(facts.names);
  std::set<std::pair<std::string, std::string>> taken;
  for (const auto& file : files)
    for (const auto& written : file.read()) {
      if (can_be_none(written.client))
        continue;
      auto entry = written;
      entry.directory = etab_path(entry.directory, facts);
      entry.client = names.resolve(entry.client, true);
      if (taken.emplace(entry.directory, normalize_client(entry.client)).second)
        etab.push_back(std::move(entry));
    }
  ExpectedEtab expected;
  assign_lines(std::move(etab), files, facts, expected);
  return expected;
}

ExpectedEtab ask_exportfs(sys::System& system, std::vector<ExportsFile>& files, const HostFacts& facts, Scope scope) {
  if (std::ranges::all_of(files, is_empty))
    return predict_from_text(files, facts);
  const auto not_asked = [&](std::string why) {
    auto expected = predict_from_text(files, facts);
    expected.not_asked = std::move(why);
    return expected;
  };
  if (!facts.waits_for.empty()) {
    auto expected =
        not_asked(fmt::format("`exportfs` would wait for `{}`, which does not answer", to_utf8(facts.waits_for)));
    expected.cure =
        "`exportfs -r` would wait, too: `sharefs status` shows what hangs; bring that back, or take it out of "
        "the exports";
    return expected;
  }

  sys::Isolation isolation;
  isolation.empty = {parent_path(k_etab)};
  isolation.result = k_etab;
  if (scope == Scope::given)
    isolation.empty.emplace_back(k_exports_directory);
  for (std::size_t i = 0; i < files.size(); ++i)
    isolation.files[path_of(files, i, scope)] = files[i].text;
  const auto clients = clients_of(files);
  if (static_cast<std::size_t>(std::ranges::count_if(clients, is_host_name)) > k_most_names)
    return not_asked(fmt::format("it would look up more than {} names", k_most_names));
  isolation.files["/etc/hosts"] = hosts_for(clients, facts);
  isolation.files["/etc/nsswitch.conf"] = "hosts: files\npasswd: files\ngroup: files\nnetgroup: files\n";
  isolation.files["/etc/host.conf"] = "multi on\n";
  isolation.interfaces = interfaces_for(clients, facts);
  // exportfs reads there which flags the kernel's server keeps for each security flavour.
  if (const auto features = system.entry({.path = k_features, .read_bytes = 4096}); !features.content.empty())
    isolation.files[k_features] = features.content;

  sys::Command command;
  command.argv = {"exportfs", "-r"};
  command.environment = {{"LC_ALL", "C"}};
  command.directory = k_start;
  command.deadline = k_deadline;
  command.output_limit = k_largest_etab;
  command.isolation = std::make_shared<const sys::Isolation>(std::move(isolation));
  const auto completed = system.run(command);
  if (auto why = find_failure(completed); !why.empty()) {
    auto expected = not_asked(std::move(why));
    if (completed && !completed->timed_out && completed->exit_code > 128)
      expected.cure =
          "`exportfs -r` would crash, too; the cause is mostly `squash_uids=`, which has no effect any more";
    return expected;
  }
  auto complaints = read_complaints(completed->err, files, scope);
  return read_answer(completed->out, files, facts, std::move(complaints));
}

} // namespace sharefs::exports
