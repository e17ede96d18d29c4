#include "base/text.hpp"
#include "exports/filesystem.hpp"
#include "exports/parse.hpp"
#include "exports/plan_export.hpp"
#include "exports/settings.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace sharefs::exports {

namespace {

bool has_any(const std::vector<std::string>& options, std::initializer_list<std::string_view> names) {
  return std::any_of(options.begin(), options.end(), [&](const std::string& option) {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
      return option == name || (name.ends_with('=') && option.starts_with(name));
    });
  });
}

/// "rw,sync" in one element of a list is two options.
std::vector<std::string> complete(const std::vector<std::string>& given) {
  std::vector<std::string> options;
  for (const auto& element : given)
    for (auto& option : split_options(element)) {
      option = std::string(trim(option));
      options.push_back(std::move(option));
    }
  if (options.empty())
    return {"rw", "sync", "no_subtree_check", "root_squash"};
  // exportfs' own defaults too, but it complains where they are not written.
  if (!has_any(options, {"sync", "async"}))
    options.emplace_back("sync");
  if (!has_any(options, {"subtree_check", "no_subtree_check"}))
    options.emplace_back("no_subtree_check");
  return options;
}

/// FNV-1a: the same number on every run and every host, so that file handles outlive a restart.
std::uint32_t hash_of(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char byte : text)
    hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619U;
  return hash;
}

/// fsid of directories on file systems that have none of their own.
class FsidChooser {
 public:
  /// `others`: the exports that are not composed now.
  FsidChooser(const std::vector<const Export*>& others, const Request& request) {
    for (const auto* line : others)
      for (const auto& client : line->clients)
        take(settings_of(client.defaults, client.options));
    for (const auto& desired : request.exports)
      take(settings_of({}, complete(desired.options)));
  }

  std::uint32_t choose(const std::string& directory) {
    auto number = hash_of(directory) & 0x7FFFFFFFU;
    while (number == 0 || m_taken.contains(number))
      number = (number + 1) & 0x7FFFFFFFU;
    m_taken.insert(number);
    return number;
  }

 private:
  void take(const tl::expected<Settings, OptionError>& settings) {
    if (settings && settings->fsid)
      m_taken.insert(*settings->fsid);
  }
  std::set<std::uint32_t> m_taken;
};

bool contains(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

} // namespace

Composed compose(const Actual& actual, const Request& request) {
  Composed composed;
  std::set<std::string> desired_paths;
  for (const auto& desired : request.exports)
    desired_paths.insert(real_path(desired.directory, actual.facts));

  std::vector<std::string> gone = request.remove; // as written or resolved
  std::vector<const Export*> others;
  for (const auto& file : actual.files.files)
    for (const auto& line : file.exports) {
      if (file.name != k_own_file) {
        others.push_back(&line);
        continue;
      }
      const auto real = real_path(line.directory, actual.facts);
      const bool removed = contains(request.remove, line.directory) || contains(request.remove, real);
      if (desired_paths.contains(real))
        continue;
      if (request.exactly || removed) {
        gone.push_back(real);
        continue;
      }
      composed.exports.push_back(line);
      others.push_back(&line);
    }
  FsidChooser fsids(others, request);
  for (const auto& desired : request.exports) {
    Export entry{desired.directory, {}, desired.origin};
    auto options = complete(desired.options);
    const auto fact = actual.facts.directories.find(desired.directory);
    if (fact != actual.facts.directories.end() && !has_any(options, {"fsid="})) {
      const auto file_system = file_system_fact(fact->second.fs_type, fact->second.fs_options);
      if (file_system.exportable == Exportable::needs_fsid) {
        options.push_back(fmt::format("fsid={}", fsids.choose(desired.directory)));
        composed.notes.push_back(fmt::format("{} lies on {}: exported with `{}`, since {}", desired.directory,
                                             fact->second.fs_type, options.back(), file_system.why));
      }
    }
    for (const auto& client : desired.clients)
      entry.clients.push_back({client, {}, options, desired.origin});
    composed.exports.push_back(std::move(entry));
  }

  const auto after = expected_etab(files_after(actual, composed), actual.facts);
  for (const auto& entry : actual.etab) {
    const bool ours = contains(gone, entry.directory) || desired_paths.contains(entry.directory);
    const bool stays = std::any_of(after.entries.begin(), after.entries.end(), [&](const EtabEntry& other) {
      return other.directory == entry.directory && same_client(other.client, entry.client, actual.facts);
    });
    if (ours && !stays)
      composed.retired.push_back(entry);
  }
  return composed;
}

std::string own_file_text(const std::vector<Export>& exports) {
  if (exports.empty())
    return "";
  return "# Managed by sharefs: made from sharefs.yaml by `sharefs export`. Changes made here are lost.\n" +
         format(exports);
}

std::vector<ExportsFile> files_after(const Actual& actual, const Composed& composed) {
  ExportsFile own;
  own.name = k_own_file;
  own.exports = composed.exports;
  std::vector<ExportsFile> files;
  bool placed = false;
  // Where exportfs will read it: /etc/exports first, then by name.
  for (const auto& file : actual.files.files) {
    if (file.name == k_own_file)
      continue;
    if (!placed && file.name != k_exports_file) {
      const auto base = [](const std::string& name) { return name.substr(name.rfind('/') + 1); };
      const auto order = exports_in_order({base(file.name), base(k_own_file)});
      if (!order.empty() && order.front() == base(k_own_file)) {
        files.push_back(own);
        placed = true;
      }
    }
    files.push_back(file);
  }
  if (!placed)
    files.push_back(own);
  return files;
}

} // namespace sharefs::exports
