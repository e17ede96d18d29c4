#include "cachefix/draft.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cstdint>

namespace sharefs::cachefix {
namespace {

std::optional<std::string> last_assigned(const Program& program, std::string_view name) {
  for (auto it = program.assigned.rbegin(); it != program.assigned.rend(); ++it)
    if (it->name == name)
      return it->value;
  return std::nullopt;
}

const sys::Entry k_nowhere_shared{};

} // namespace

std::string key_of(const std::string& text) {
  // FNV-1a, 64 bits: short, and the same on every node and in every version.
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ULL;
  }
  static constexpr char k_digits[] = "0123456789abcdef";
  std::string out;
  for (int i = 0; i < 12; ++i, hash >>= 4U)
    out += k_digits[hash & 15U];
  return out;
}

std::string cache_key(const std::string& shared_path) {
  return key_of(normalize_path(shared_path));
}

std::optional<std::string> Draft::variable(const Program& program, std::string_view name) const {
  std::optional<std::string> value = last_assigned(program, name);
  const bool taken_away =
      program.cleared || std::find(program.unset.begin(), program.unset.end(), name) != program.unset.end();
  if (!value && !taken_away)
    for (const std::string& entry : facts.environment)
      if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
        value = entry.substr(name.size() + 1);
        break; // getenv(3) takes the first
      }
  return value && !value->empty() ? value : std::nullopt;
}

std::string Draft::home(const Program& program) const {
  const auto home = variable(program, "HOME");
  if (home && home->starts_with('/'))
    return *home;
  return facts.home;
}

std::optional<std::string> Draft::absolute(const Program& program, const std::string& value) const {
  if (value.empty() || value.find("://") != std::string::npos || value.find('\0') != std::string::npos)
    return std::nullopt;
  if (value.front() == '/')
    return value;
  if (value == "~" || value.starts_with("~/")) {
    const std::string base = home(program);
    return base.empty() ? std::nullopt : std::optional<std::string>(base + value.substr(1));
  }
  return program.directory == "/" ? "/" + value : program.directory + "/" + value;
}

bool Draft::any_shared() {
  out.questions.mounts = out.questions.mounts || !facts.any_shared;
  return facts.any_shared.value_or(false);
}

const sys::Entry* Draft::place(const std::string& path) {
  if (facts.any_shared == false)
    return &k_nowhere_shared;
  const auto known = facts.places.find(path);
  if (known != facts.places.end())
    return &known->second;
  out.questions.places.insert(path);
  return nullptr;
}

const std::optional<std::string>* Draft::text(const std::string& path) {
  const auto known = facts.texts.find(path);
  if (known != facts.texts.end())
    return &known->second;
  out.questions.texts.insert(path);
  return nullptr;
}

const std::optional<std::vector<std::string>>* Draft::listing(const std::string& path) {
  const auto known = facts.listings.find(path);
  if (known != facts.listings.end())
    return &known->second;
  out.questions.listings.insert(path);
  return nullptr;
}

void Draft::report_leftovers(const std::string& path) {
  const auto known = facts.leftovers.find(path);
  if (known == facts.leftovers.end()) {
    out.questions.leftovers.insert(path);
    return;
  }
  if (!known->second.empty())
    diagnose(Severity::info, "SF410", path,
             known->second.size() == 1
                 ? "1 left-over directory of an earlier launch: " + known->second.front()
                 : std::to_string(known->second.size()) + " left-over directories of earlier launches, the first is " +
                       known->second.front(),
             "delete them when no job uses this cache; sharefs never does");
}

const std::optional<std::string>* Draft::tree(const std::string& shell_text) {
  const auto known = facts.trees.find(shell_text);
  if (known != facts.trees.end())
    return &known->second;
  out.questions.trees.insert(shell_text);
  return nullptr;
}

std::optional<std::string> Draft::local_for(const std::string& shared_path) {
  if (!facts.local) {
    out.questions.local = true;
    return std::nullopt;
  }
  if (facts.local->directory.empty())
    return std::nullopt;
  const std::string shared = normalize_path(shared_path);
  std::string path = facts.local->directory + "/" + cache_key(shared);
  if (std::find(out.directories.begin(), out.directories.end(), path) == out.directories.end())
    out.directories.push_back(path);
  out.origins[path] = shared;
  return path;
}

void Draft::diagnose(Severity severity, std::string code, std::string subject, std::string message, std::string hint) {
  Diagnosis diagnosis{severity, std::move(code), to_utf8(subject), std::move(message), std::move(hint), ""};
  if (std::find(out.diagnoses.begin(), out.diagnoses.end(), diagnosis) == out.diagnoses.end())
    out.diagnoses.push_back(std::move(diagnosis));
}

void Draft::keep(std::string flag, std::optional<std::size_t> index, std::string value, CacheClass cache_class,
                 std::string reason) {
  Kept kept{std::move(flag), index, std::move(value), cache_class, std::move(reason)};
  if (std::find(out.kept.begin(), out.kept.end(), kept) == out.kept.end())
    out.kept.push_back(std::move(kept));
}

void Draft::replace(std::size_t index, std::size_t begin, std::size_t length, const std::string& text) {
  WordEdit& edit = edits[index];
  const std::string& original = argv[index];
  // Several values in one word (srun --export=A=x,B=y): count from the end, which earlier edits have not moved.
  const std::size_t behind = original.size() - begin - length;
  std::string now = edit.text.value_or(original);
  const std::size_t grown = now.size() - original.size(); // may wrap around; so does the sum
  now.replace(begin + grown, now.size() - behind - (begin + grown), text);
  edit.text = std::move(now);
}

Argv Draft::final_argv() const {
  Argv result;
  result.reserve(argv.size() + edits.size());
  for (std::size_t i = 0; i <= argv.size(); ++i) {
    const auto edit = edits.find(i);
    if (edit != edits.end())
      result.insert(result.end(), edit->second.before.begin(), edit->second.before.end());
    if (i == argv.size() || (edit != edits.end() && edit->second.dropped))
      continue;
    result.push_back(edit != edits.end() && edit->second.text ? *edit->second.text : argv[i]);
  }
  return result;
}

void Draft::set_variable(const Program& program, const std::string& name, const std::string& value,
                         CacheClass cache_class, const std::string& rule, const std::string& reason) {
  const std::optional<std::string> now = variable(program, name);
  if (now == value)
    return;
  for (auto it = program.assigned.rbegin(); it != program.assigned.rend(); ++it) {
    if (it->name != name)
      continue;
    replace(it->index, it->value_begin, it->value.size(), value);
    out.changes.push_back(
        {ChangeKind::argument, name, it->index, it->value, value, cache_class, ChangeAction::rewrite, rule, reason});
    return;
  }
  if (const auto set = out.set.find(name); set != out.set.end() && set->second == value)
    return;
  out.set[name] = value;
  out.unset.erase(name);
  out.changes.push_back(
      {ChangeKind::environment, name, std::nullopt, now, value, cache_class, ChangeAction::set, rule, reason});
}

void Draft::unset_variable(const Program& program, const std::string& name, const std::string& rule,
                           const std::string& reason) {
  const std::optional<std::string> now = variable(program, name);
  if (!now || out.unset.contains(name))
    return;
  out.unset.insert(name);
  out.set.erase(name);
  out.changes.push_back({ChangeKind::environment, name, std::nullopt, now, std::nullopt, CacheClass::read_mostly,
                         ChangeAction::unset, rule, reason});
}

} // namespace sharefs::cachefix
