#include "base/text.hpp"
#include "exports/filesystem.hpp"
#include "exports/plan_export.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <set>
#include <utility>

namespace sharefs::exports {

namespace {

bool has_any(const std::vector<std::string>& options, std::initializer_list<std::string_view> names) {
  return std::ranges::find_first_of(options, names) != options.end();
}

std::vector<std::string> words_of(const std::vector<std::string>& elements) {
  std::vector<std::string> words;
  for (const auto& element : elements)
    for (const auto& option : split_options(element))
      words.emplace_back(trim(option));
  return words;
}

/// Returns the options of all clients with those of one behind them. A `sec=` begins the options of its flavours
/// (exports(5)), so the client's stand behind those of each. Flavours of the client's own take the place of theirs.
std::vector<std::string> with_own(const std::vector<std::string>& options, const std::vector<std::string>& own) {
  const auto names_flavours = [](const std::string& option) { return option.starts_with("sec="); };
  const auto is_of_flavours = [](const std::string& option) {
    return std::ranges::any_of(k_flag_options, [&](const FlagOption& row) {
      return (row.flag & k_flavour_flags) != 0 && (option == row.set || option == row.clear);
    });
  };
  const bool own_flavours = std::ranges::any_of(own, names_flavours);
  std::vector<std::string> all;
  bool is_behind = false;
  for (const auto& option : options) {
    const bool is_first = names_flavours(option) && !std::exchange(is_behind, true);
    if (own_flavours && (names_flavours(option) || (is_behind && is_of_flavours(option))))
      continue;
    if (names_flavours(option) && !is_first)
      all.insert(all.end(), own.begin(), own.end());
    all.push_back(option);
  }
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

/// FNV-1a gives the same number in every run and on every host, so that file handles stay valid after a restart.
std::uint32_t hash_of(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char byte : text)
    hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619U;
  return hash;
}

/// Chooses an fsid for directories on file systems that have none of their own.
class FsidChooser {
 public:
  void take(const Export& entry) { m_taken.insert(entry.settings.value("fsid")); }

  /// Returns the same number for all clients of a directory.
  std::string choose(const std::string& directory) {
    const auto [chosen, added] = m_chosen.emplace(directory, hash_of(directory) & 0x7FFFFFFFU);
    auto& number = chosen->second;
    while (added && (number == 0 || !m_taken.insert(std::to_string(number)).second))
      number = (number + 1) & 0x7FFFFFFFU;
    return std::to_string(number);
  }

 private:
  std::set<std::string> m_taken;
  std::map<std::string, std::uint32_t> m_chosen;
};

/// Returns the entry with an `fsid=`, if its file system needs or wants one.
Export with_fsid(Export entry, const HostFacts& facts, FsidChooser& fsids, std::vector<std::string>& notes) {
  const auto place = facts.directories.find(entry.directory);
  if (place == facts.directories.end() || entry.settings.values.contains("fsid"))
    return entry;
  const auto file_system = file_system_of(place->second, facts.mounts);
  if (file_system.exportable == Exportable::yes || file_system.exportable == Exportable::no)
    return entry;
  const auto fsid = fsids.choose(entry.directory);
  entry.settings.values["fsid"] = fsid;
  entry.options.push_back("fsid=" + fsid);
  auto note = fmt::format("{} lies on {}: exported with `{}`, since {}", entry.directory, place->second.fs_type,
                          entry.options.back(), file_system.why);
  if (notes.empty() || notes.back() != note)
    notes.push_back(std::move(note));
  return entry;
}

/// Returns the files of the host, with the exports `own` in the file of sharefs.
std::vector<ExportsFile> files_with(const Actual& actual, const std::vector<Export>& own) {
  std::vector<ExportsFile> files;
  for (const auto& file : actual.files.files)
    if (file.name != k_own_file)
      files.push_back(file);
  // exportfs reads /etc/exports first, then the other files by name.
  const auto place = std::find_if(files.begin(), files.end(), [](const ExportsFile& file) {
    return file.name != k_exports_file && ::strverscmp(file.name.c_str(), k_own_file) > 0;
  });
  files.insert(place, {k_own_file, own, own.size(), true, {}, own_file_text(own)});
  return files;
}

} // namespace

Export make_export(std::string directory, std::string client, const std::vector<std::string>& options, Origin origin,
                   const std::vector<std::string>& own) {
  Export entry;
  entry.directory = std::move(directory);
  entry.client = std::move(client);
  entry.options = words_of(options);
  if (entry.options.empty())
    entry.options = {"rw", "sync", "no_subtree_check", "root_squash"};
  // These are exportfs' defaults, but it warns if they are not written.
  if (!has_any(entry.options, {"sync", "async"}))
    entry.options.emplace_back("sync");
  if (!has_any(entry.options, {"subtree_check", "no_subtree_check"}))
    entry.options.emplace_back("no_subtree_check");
  entry.options = with_own(entry.options, words_of(own));
  entry.settings = settings_of(entry.options);
  entry.origin = entry.line = std::move(origin);
  return entry;
}

Composed compose(const Actual& actual, const Request& request, const Ask& ask) {
  Composed composed;
  const auto& facts = actual.facts;
  std::map<std::string, std::vector<const Export*>> wanted; // by resolved directory
  for (const auto& entry : request.exports)
    wanted[real_path(entry.directory, facts)].push_back(&entry);
  std::set<std::string> gone(request.remove.begin(), request.remove.end()); // directories, as written or resolved
  const auto is_kept = [&](const Export& entry, const std::string& real) {
    return !request.exactly && !gone.contains(entry.directory) && !gone.contains(real);
  };

  FsidChooser fsids;
  for (const auto& entry : request.exports)
    fsids.take(entry);
  for (const auto& file : actual.files.files)
    for (const auto& entry : file.read())
      if (const auto real = real_path(entry.directory, facts);
          file.name != k_own_file || (!wanted.contains(real) && is_kept(entry, real)))
        fsids.take(entry);

  // Lines keep their order in the file, so that a second run that names the exports in another order changes nothing.
  const auto put = [&](const std::string& real) {
    for (const auto* entry : wanted[real])
      composed.exports.push_back(with_fsid(*entry, facts, fsids, composed.notes));
    wanted[real].clear();
  };
  std::set<std::string> withdrawn;
  for (const auto& file : actual.files.files)
    for (const auto& entry : file.read()) {
      if (file.name != k_own_file)
        continue;
      const auto real = real_path(entry.directory, facts);
      if (wanted.contains(real))
        put(real);
      else if (is_kept(entry, real))
        composed.exports.push_back(entry);
      else
        withdrawn.insert(real);
    }
  for (const auto& entry : request.exports)
    put(real_path(entry.directory, facts));
  gone.merge(withdrawn);

  composed.files = files_with(actual, composed.exports);
  composed.expected = ask(composed.files, facts);
  const ExportIndex stays(facts, composed.expected.entries);
  for (const auto& entry : actual.etab)
    if ((gone.contains(entry.directory) || wanted.contains(entry.directory)) && !stays.has(entry))
      composed.retired.push_back(entry);
    else if (actual.server.running() && !stays.has(entry)) // without a running server they are not in force
      composed.adhoc.push_back(entry);
  return composed;
}

std::string own_file_text(const std::vector<Export>& exports) {
  if (exports.empty())
    return "";
  return "# Managed by sharefs: made from sharefs.yaml by `sharefs export`. Changes made here are lost.\n" +
         format(exports);
}

} // namespace sharefs::exports
