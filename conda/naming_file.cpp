#include "conda/environment_reader.hpp"

#include <algorithm>

namespace sharefs::conda {

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
