#include "conda/environment_reader.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/fs/sha256.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

namespace sharefs::conda {

namespace {

constexpr std::size_t k_head_bytes = 4096;
constexpr std::size_t k_large_record = 4U << 20U;
constexpr std::uint64_t k_largest_script = 256U << 10U;

bool names_prefix(const tree::Entry& entry) {
  return S_ISREG(entry.mode) &&
         (entry.path.starts_with("bin/") ||
          (entry.path.ends_with(".pc") && base_name(parent_path("/" + entry.path)) == "pkgconfig"));
}

} // namespace

Result<EnvironmentReader> EnvironmentReader::read(const sys::Files& files, const std::string& path,
                                                  const sys::Pulse& pulse) {
  auto tree = tree::Reader::open(files, path, pulse);
  if (!tree)
    return fail(tree.error());
  EnvironmentReader reader(std::move(*tree));
  reader.m_entries = reader.m_tree.list();
  const auto* meta = reader.entry("conda-meta");
  if (meta == nullptr || !S_ISDIR(meta->mode))
    return fail(ErrorCode::not_found, path + " is no conda environment: it has no directory `conda-meta`",
                "`conda env list` knows where environments lie");
  reader.read_records(files, pulse);
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

const RecordedFile* EnvironmentReader::recorded(std::string_view path) const {
  const auto* found = known(path);
  return found == nullptr ? nullptr : &m_records[found->record].record.files[found->number];
}

void EnvironmentReader::read_records(const sys::Files& files, const sys::Pulse& pulse) {
  std::vector<const tree::Entry*> of_records;
  for (const auto& one : m_entries)
    if (S_ISREG(one.mode) && one.path.starts_with("conda-meta/") && one.path.ends_with(".json") &&
        path_depth("/" + one.path) == 2)
      of_records.push_back(&one);
  std::mutex mutex, memory; // of a large record at a time: it takes ten times its size
  m_tree.in_parallel(of_records.size(), [&](std::size_t i) {
    ReadRecord one{of_records[i]->path, {}, {}};
    std::string problem;
    if (const int error = m_tree.read(one.path, k_record_limit + 1, one.text); error != 0)
      problem = errno_text(error);
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
    // libmamba leaves the placeholders out; the package in the cache has them, if it is still there.
    const bool incomplete = problem.empty() && std::ranges::any_of(one.record.files, [](const RecordedFile& file) {
                              return file.patched() && file.placeholder.empty();
                            });
    std::string paths;
    if (incomplete && check_prefix(one.record.package))
      if (auto package = tree::Reader::open(files, one.record.package, pulse);
          package && package->read("info/paths.json", k_record_limit + 1, paths) == 0)
        add_placeholders(one.record, paths);
    const std::scoped_lock lock(mutex);
    if (problem.empty())
      m_records.push_back(std::move(one));
    else
      m_problems.push_back({Kind::bad_record, one.path, problem});
  });
  std::ranges::sort(m_records, {}, &ReadRecord::path);
  for (std::size_t record = 0; record < m_records.size(); ++record) {
    const auto& recorded_files = m_records[record].record.files;
    for (std::size_t number = 0; number < recorded_files.size(); ++number)
      m_known.emplace(recorded_files[number].path, KnownFile{record, number});
  }
}

bool leads_out(const std::string& path, const std::string& target) {
  // Counted, since normalize_path() ends at the root.
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
    const auto document = nlohmann::json::parse(text, nullptr, false);
    const auto info = document.is_object() ? document.find("dir_info") : document.end();
    const bool editable =
        info != document.end() && info->is_object() && info->contains("editable") && info->at("editable") == true;
    return editable ? std::optional<std::string>("") : std::nullopt;
  }
  for (const auto& line : split_lines(text))
    if (const auto named = normalize_path(line);
        line.starts_with('/') && !is_under(named, decision.right) &&
        std::ranges::none_of(decision.replace, [&](const auto& old) { return is_under(named, old); }))
      return line;
  return std::nullopt;
}

std::uint32_t bits_as_open_as(std::uint32_t top, std::uint32_t mode) {
  std::uint32_t wanted = 0;
  for (const unsigned shift : {0U, 3U})
    if (((top >> shift) & 5U) == 5U)
      wanted |= (S_ISDIR(mode) || (mode & S_IXUSR) != 0 ? 5U : 4U) << shift;
  return wanted;
}

std::vector<PrefixUse> find_prefixes(const EnvironmentReader& reader) {
  std::vector<const tree::Entry*> scripts;
  for (const auto& entry : reader.entries())
    if (names_prefix(entry))
      scripts.push_back(&entry);
  std::map<std::string, PrefixUse> uses;
  std::mutex mutex;
  reader.tree().in_parallel(scripts.size(), [&](std::size_t i) {
    std::string content;
    const auto limit = scripts[i]->size <= k_largest_script ? k_largest_script : k_head_bytes;
    if (reader.tree().read(scripts[i]->path, limit, content) != 0)
      return;
    const auto named = named_prefixes(std::string_view(content).substr(0, k_head_bytes));
    if (named.empty())
      return;
    const auto* recorded = reader.recorded(scripts[i]->path);
    const bool certain =
        recorded != nullptr && recorded->patched() && sys::sha256(content) == recorded->sha256_in_prefix;
    const std::scoped_lock lock(mutex);
    for (const auto& prefix : named) {
      auto& use = uses[prefix];
      use.prefix = prefix;
      use.certain = use.certain || certain;
      ++use.files;
    }
  });
  std::vector<PrefixUse> all;
  for (auto& [prefix, use] : uses)
    all.push_back(std::move(use));
  return all;
}

} // namespace sharefs::conda
