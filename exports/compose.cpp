#include "base/text.hpp"
#include "exports/filesystem.hpp"
#include "exports/parse.hpp"
#include "exports/plan_export.hpp"
#include "exports/settings.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
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

/// A desired export as a line of own file, with all its options.
Export line_of(const Desired& desired, const HostFacts& facts, FsidChooser& fsids, std::vector<std::string>& notes) {
  auto options = complete(desired.options);
  const auto fact = facts.directories.find(desired.directory);
  if (fact != facts.directories.end() && !has_any(options, {"fsid="})) {
    const auto file_system = file_system_fact(fact->second.fs_type, fact->second.fs_options);
    if (file_system.exportable == Exportable::needs_fsid) {
      options.push_back(fmt::format("fsid={}", fsids.choose(desired.directory)));
      notes.push_back(fmt::format("{} lies on {}: exported with `{}`, since {}", desired.directory,
                                  fact->second.fs_type, options.back(), file_system.why));
    }
  }
  Export line{desired.directory, {}, desired.origin};
  for (const auto& client : desired.clients)
    line.clients.push_back({client, {}, options, desired.origin});
  return line;
}

} // namespace

Composed compose(const Actual& actual, const Request& request) {
  Composed composed;
  const auto& facts = actual.facts;
  std::map<std::string, std::vector<const Desired*>> wanted; // by resolved directory; several entries are possible
  for (const auto& desired : request.exports)
    wanted[real_path(desired.directory, facts)].push_back(&desired);
  const auto is_desired = [&](const std::string& real) {
    return std::any_of(request.exports.begin(), request.exports.end(),
                       [&](const Desired& desired) { return real_path(desired.directory, facts) == real; });
  };
  const auto is_kept = [&](const Export& line, const std::string& real) {
    return !request.exactly && !contains(request.remove, line.directory) && !contains(request.remove, real);
  };

  std::vector<const Export*> others;
  for (const auto& file : actual.files.files)
    for (const auto& line : file.exports) {
      const auto real = real_path(line.directory, facts);
      if (file.name != k_own_file || (!is_desired(real) && is_kept(line, real)))
        others.push_back(&line);
    }
  FsidChooser fsids(others, request);

  // Lines stay where they are, so that a second run finds nothing to do in whatever order exports were named.
  const auto put = [&](const std::string& real) {
    for (const auto* desired : wanted[real])
      composed.exports.push_back(line_of(*desired, facts, fsids, composed.notes));
    wanted[real].clear();
  };
  std::vector<std::string> gone = request.remove; // as written or resolved
  for (const auto& file : actual.files.files)
    for (const auto& line : file.exports) {
      if (file.name != k_own_file)
        continue;
      const auto real = real_path(line.directory, facts);
      if (is_desired(real))
        put(real);
      else if (is_kept(line, real))
        composed.exports.push_back(line);
      else
        gone.push_back(real);
    }
  for (const auto& desired : request.exports)
    put(real_path(desired.directory, facts));

  const auto after = expected_etab(files_after(actual, composed), actual.facts);
  for (const auto& entry : actual.etab) {
    const bool ours = contains(gone, entry.directory) || is_desired(entry.directory);
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
