#include "conda/environment_reader.hpp"

#include "base/json.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "conda/guard_wheel.hpp"
#include "sys/fs/sha256.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fmt/format.h>
#include <map>
#include <mutex>

namespace sharefs::conda {

namespace {

constexpr std::size_t k_large_record = 1U << 20U;
constexpr std::size_t k_largest_guard_record = 64U << 10U;
constexpr std::size_t k_largest_editable = 64U << 10U; // direct_url.json
constexpr std::uint64_t k_largest_script = 256U << 10U;

} // namespace

Result<EnvironmentReader> EnvironmentReader::read(const sys::Files& files, const std::string& path,
                                                  const sys::ProgressCounters& counters) {
  TRY_ASSIGN(auto tree, tree::Reader::open(files, path, counters));
  EnvironmentReader reader(std::move(tree));
  auto entries = reader.m_tree.list();
  if (!entries)
    return fail(entries.error().code, path + ": " + entries.error().message, "see what is in it: `du --inodes`");
  reader.m_entries = std::move(*entries);
  const auto* meta = reader.entry("conda-meta");
  if (meta == nullptr || !S_ISDIR(meta->mode))
    return fail(ErrorCode::not_found, path + " is no conda environment: it has no directory `conda-meta`",
                "`conda env list` knows where environments lie");
  if (auto read = reader.read_records(files, counters); !read)
    return fail(read.error().code, path + ": " + read.error().message, read.error().hint);
  return reader;
}

const tree::Entry* EnvironmentReader::entry(std::string_view path) const {
  const auto found = std::ranges::lower_bound(m_entries, path, {}, &tree::Entry::path);
  return found != m_entries.end() && found->path == path ? &*found : nullptr;
}

const EnvironmentReader::KnownFile* EnvironmentReader::known(std::string_view path) const {
  const auto found = m_known.find(path);
  return found == m_known.end() ? nullptr : &found->second;
}

Result<void> EnvironmentReader::read_records(const sys::Files& files, const sys::ProgressCounters& counters) {
  constexpr std::string_view k_hint = "what its packages have brought is not in such records: install it anew";
  std::vector<const tree::Entry*> of_records;
  std::uint64_t bytes = 0;
  for (const auto& one : m_entries)
    if (S_ISREG(one.mode) && one.path.starts_with("conda-meta/") && one.path.ends_with(".json") &&
        path_depth("/" + one.path) == 2) {
      of_records.push_back(&one);
      bytes += std::min<std::uint64_t>(one.size, k_record_limit); // of one record no more is read
      if (bytes > k_all_records_limit)
        return fail(ErrorCode::failed,
                    fmt::format("the records in its conda-meta are larger than {}", format_bytes(k_all_records_limit)),
                    std::string(k_hint));
    }
  std::atomic<std::size_t> named = 0;
  // `memory` lets one thread parse a large record at a time, since that takes many times its size.
  std::mutex mutex, memory;
  tree::in_parallel(of_records.size(), [&](std::size_t i) {
    ReadRecord one{of_records[i]->path, {of_records[i]->mtime, of_records[i]->mtime_ns}, {}, {}};
    std::string problem;
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(of_records[i]->size, k_record_limit));
    if (const int error = m_tree.read(one.path, most + 1, one.text);
        error != 0 || one.text.size() > of_records[i]->size)
      problem = errno_text(error != 0 ? error : ESTALE);
    else {
      std::unique_lock large(memory, std::defer_lock);
      if (one.text.size() > k_large_record)
        large.lock();
      auto record = parse_record(one.text);
      if (record)
        one.record = std::move(*record);
      else
        problem = record.error().message;
    }
    if (!problem.empty())
      one = {one.path, one.modified, {}, {}};
    if (named.fetch_add(one.record.files.size()) + one.record.files.size() > k_all_recorded)
      return;
    // libmamba's records have no placeholders; the package in the cache has them, if it still exists.
    const bool incomplete = problem.empty() && std::ranges::any_of(one.record.files, [](const RecordedFile& file) {
                              return file.patched() && file.placeholder.empty();
                            });
    if (incomplete && check_prefix(one.record.package))
      if (auto package = tree::Reader::open(files, one.record.package, counters); package) {
        constexpr auto k_path = "info/paths.json";
        std::string paths;
        std::unique_lock large(memory, std::defer_lock);
        bool read = package->read(k_path, k_large_record, paths) == 0;
        if (read && paths.size() == k_large_record) {
          large.lock();
          read = package->read(k_path, k_record_limit + 1, paths) == 0;
        }
        if (read)
          add_placeholders(one.record, paths);
      }
    const std::scoped_lock lock(mutex);
    if (problem.empty())
      m_records.push_back(std::move(one));
    else
      m_problems.push_back({Kind::bad_record, one.path, problem});
  });
  if (named > k_all_recorded)
    return fail(ErrorCode::failed, fmt::format("the records in its conda-meta name more than {} files", k_all_recorded),
                std::string(k_hint));
  read_guard();
  std::ranges::sort(m_records, {}, &ReadRecord::path);
  for (std::size_t record = 0; record < m_records.size(); ++record)
    for (const auto& file : m_records[record].record.files)
      m_known.emplace(file.path, KnownFile{record, &file});
  return {};
}

void EnvironmentReader::read_guard() {
  for (const auto& entry : m_entries) {
    const auto directory = parent_path("/" + entry.path);
    if (!S_ISREG(entry.mode) || base_name(entry.path) != "RECORD" || guard_records({base_name(directory)}).empty())
      continue;
    const auto site_packages = parent_path(directory).substr(1);
    ReadRecord one{entry.path, {entry.mtime, entry.mtime_ns}, {}, {}};
    const int error = m_tree.read(one.path, k_largest_guard_record, one.text);
    auto record = error == 0 ? parse_distribution(one.text, site_packages) : fail(ErrorCode::failed, errno_text(error));
    if (!record) {
      m_problems.push_back({Kind::bad_record, one.path, record.error().message});
      continue;
    }
    one.record = *std::move(record);
    one.record.name = "sharefs-guard";
    m_records.push_back(std::move(one));
  }
}

bool names_prefix(const tree::Entry& entry) {
  return S_ISREG(entry.mode) &&
         (entry.path.starts_with("bin/") ||
          (entry.path.ends_with(".pc") && base_name(parent_path("/" + entry.path)) == "pkgconfig"));
}

bool leads_out(const std::string& path, const std::string& target) {
  // The depth is counted, because normalize_path() does not show that a path leads above its root.
  std::size_t depth = path_depth(parent_path("/" + path));
  for (const auto& part : split(target, '/')) {
    if (part == ".." && depth == 0)
      return true;
    depth = part == ".." ? depth - 1 : part.empty() || part == "." ? depth : depth + 1;
  }
  return false;
}

bool may_be_editable(const std::string& path) {
  const auto name = base_name(path);
  return name.starts_with("__editable__") || name.ends_with(".egg-link") || name == "direct_url.json" ||
         name.ends_with(".pth");
}

std::optional<std::string> editable_in(const std::string& path, const std::string& text,
                                       const PrefixDecision& decision) {
  const auto name = base_name(path);
  if (name.starts_with("__editable__") || name.ends_with(".egg-link"))
    return "";
  if (name == "direct_url.json") { // PEP 610
    const auto document = read_json(text, {.bytes = k_largest_editable}).value_or(nlohmann::json());
    const bool editable = member(member(document, "dir_info"), "editable") == true;
    return editable ? std::optional<std::string>("") : std::nullopt;
  }
  for (const auto& line : split_lines(text))
    if (const auto named = normalize_path(line);
        line.starts_with('/') && !is_under(named, decision.right) &&
        std::ranges::none_of(decision.replace, [&](const auto& old) { return is_under(named, old); }))
      return line;
  return std::nullopt;
}

plan::FileChange change_of(const tree::Entry& entry) {
  plan::FileChange change;
  change.path = entry.path;
  change.identity = identity_of(entry);
  change.identity.changed = 0; // the content and the mode are compared instead
  return change;
}

std::uint32_t bits_as_open_as(std::uint32_t top, std::uint32_t mode) {
  std::uint32_t wanted = 0;
  for (const unsigned shift : {0U, 3U})
    if (((top >> shift) & 5U) == 5U)
      wanted |= (S_ISDIR(mode) || (mode & S_IXUSR) != 0 ? 5U : 4U) << shift;
  return wanted;
}

Result<std::vector<PrefixUse>> find_prefixes(EnvironmentReader& reader) {
  std::vector<const tree::Entry*> scripts;
  for (const auto& entry : reader.entries())
    if (names_prefix(entry))
      scripts.push_back(&entry);
  std::map<std::string, PrefixUse> uses;
  std::mutex mutex;
  tree::in_parallel(scripts.size(), [&](std::size_t i) {
    std::string content;
    const auto limit = scripts[i]->size <= k_largest_script ? k_largest_script : k_head_bytes;
    if (const int error = reader.tree().read(scripts[i]->path, limit, content); error != 0) {
      const std::scoped_lock lock(mutex);
      return error == ESTALE ? reader.add_problem({Kind::changing, scripts[i]->path, ""})
                             : reader.add_problem({Kind::unreadable, scripts[i]->path, errno_text(error)});
    }
    const auto named = named_prefixes(std::string_view(content).substr(0, k_head_bytes));
    if (named.empty())
      return;
    const auto* known = reader.known(scripts[i]->path);
    const bool certain =
        known != nullptr && known->file->patched() && sys::sha256(content) == known->file->sha256_in_prefix;
    const std::scoped_lock lock(mutex);
    for (const auto& prefix : named) {
      if (uses.size() > k_most_prefixes)
        return;
      auto& use = uses[prefix];
      use.prefix = prefix;
      use.certain = use.certain || certain;
      ++use.files;
    }
  });
  if (uses.size() > k_most_prefixes)
    return fail(ErrorCode::failed,
                fmt::format("the scripts in its bin name more than {} prefixes of environments", k_most_prefixes),
                "nothing that conda or pip installs does: see what is in it");
  std::vector<PrefixUse> all;
  for (auto& [prefix, use] : uses)
    all.push_back(std::move(use));
  return all;
}

// The prefixes in one file.

namespace {

PrefixChange change_for(const RecordedFile* recorded, const std::string& from, const std::string& to, bool env) {
  PrefixChange change;
  change.from = from;
  change.to = to;
  change.env_is_prefix = env;
  if (recorded != nullptr && recorded->mode) {
    change.mode = *recorded->mode;
    change.slot = recorded->placeholder.size();
  }
  return change;
}

} // namespace

std::size_t count_prefix(std::string_view content, const PrefixNeedle& needle, std::size_t most) {
  std::size_t count = 0;
  for (const auto& encoding : needle.encodings())
    for (auto at = content.find(encoding.bytes); at != std::string_view::npos && count <= most;
         at = content.find(encoding.bytes, at + encoding.bytes.size()))
      ++count;
  return count;
}

void find_restored(const std::vector<PrefixNeedle>& needles, std::size_t old, NamingFile& file) {
  const auto& recorded = *file.recorded;
  for (std::size_t i = 0; i <= old; ++i)
    for (const bool env : {false, true}) {
      if (env ? !file.bytes.starts_with("#!/usr/bin/env ") : !file.holds[i])
        continue;
      if (!restores_package(file.bytes, change_for(&recorded, needles[i].prefix(), recorded.placeholder, env),
                            recorded.sha256))
        continue;
      file.restored = true;
      if (env)
        file.env_prefix = needles[i].prefix();
      return;
    }
}

std::vector<std::string> prefixes_to_replace(const std::vector<PrefixNeedle>& needles, std::size_t old,
                                             const NamingFile& file) {
  const auto* recorded = file.recorded;
  std::vector<std::string> found;
  for (std::size_t i = 1; i <= old; ++i)
    if (file.holds[i])
      found.push_back(needles[i].prefix());
  if (recorded != nullptr && recorded->mode && !recorded->placeholder.empty() &&
      PrefixNeedle(recorded->placeholder).in(file.bytes)) // the installation was interrupted
    found.push_back(recorded->placeholder);
  if (file.sound && recorded->type != PathType::entry_point && !recorded->patched()) {
    // The file is as the package has it, so a prefix in it is the package's own text and stays, except for a prefix in
    // the first lines, which starts the program.
    const auto heads = named_prefixes(std::string_view(file.bytes).substr(0, k_head_bytes));
    std::erase_if(found, [&](const std::string& prefix) {
      return !file.starts || std::ranges::find(heads, prefix) == heads.end();
    });
  }
  // `#!/usr/bin/env` was written because the prefix is too long for a kernel; this may even be the right prefix.
  if (!file.env_prefix.empty() && std::ranges::find(found, file.env_prefix) == found.end())
    found.insert(found.begin(), file.env_prefix);
  return found;
}

bool shows_prefix(const NamingFile& file, const PrefixDecision& decision) {
  const auto heads = named_prefixes(std::string_view(file.bytes).substr(0, k_head_bytes));
  return file.starts && std::ranges::any_of(heads, [&](const std::string& prefix) {
           return std::ranges::find(decision.replace, prefix) != decision.replace.end();
         });
}

ReplacedPrefixes replace_in(const NamingFile& file, const std::vector<std::string>& prefixes,
                            const std::string& right) {
  ReplacedPrefixes replaced{.after = file.bytes, .edits = {}, .named = {}};
  std::size_t rounds = 0;
  for (const auto& from : prefixes) {
    auto change = change_for(file.recorded, from, right, from == file.env_prefix);
    change.guessed = file.recorded == nullptr || !file.recorded->mode;
    if (change.guessed)
      change.mode = guessed_mode(file.bytes);
    auto made = prefix_edits(replaced.after, change);
    if (!made) {
      replaced.no_room = made.error().message;
      return replaced;
    }
    replaced.named.push_back(from);
    if (made->empty())
      continue;
    replaced.after = apply_edits(replaced.after, *made).value_or(replaced.after);
    replaced.edits = std::move(*made);
    ++rounds;
  }
  if (rounds > 1)
    replaced.edits = find_edits(file.bytes, replaced.after);
  return replaced;
}

} // namespace sharefs::conda
