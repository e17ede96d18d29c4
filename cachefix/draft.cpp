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

/// What is known of `key`; nullptr: nothing yet, the question is noted.
template <class Known>
const typename Known::mapped_type* find(const Known& known, std::set<std::string>& questions, const std::string& key) {
  const auto found = known.find(key);
  if (found == known.end())
    questions.insert(key);
  return found == known.end() ? nullptr : &found->second;
}

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
  return facts.any_shared == false ? &k_nowhere_shared : find(facts.places, out.questions.places, path);
}

const std::optional<std::string>* Draft::text(const std::string& path) {
  return find(facts.texts, out.questions.texts, path);
}

const std::optional<std::vector<std::string>>* Draft::listing(const std::string& path) {
  return find(facts.listings, out.questions.listings, path);
}

const std::optional<std::string>* Draft::tree(const std::string& shell_text) {
  return find(facts.trees, out.questions.trees, shell_text);
}

void Draft::report_leftovers(const std::string& path) {
  const auto* names = find(facts.leftovers, out.questions.leftovers, path);
  if (names == nullptr || names->empty())
    return;
  const std::string others = names->size() == 1 ? "" : " and " + count_of(names->size() - 1, "other");
  diagnose(Severity::info, "SF410", path, "earlier launches left " + names->front() + others,
           "delete them when no job uses this cache; sharefs never does");
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
  add_once(out.directories, path);
  out.origins[path] = shared;
  return path;
}

void Draft::diagnose(Severity severity, std::string code, const std::string& subject, std::string message,
                     std::string hint) {
  add_once(out.diagnoses, {severity, std::move(code), to_utf8(subject), std::move(message), std::move(hint), ""});
}

void Draft::keep(std::string flag, std::optional<std::size_t> index, std::string value, CacheClass cache_class,
                 std::string reason) {
  add_once(out.kept, {std::move(flag), index, std::move(value), cache_class, std::move(reason)});
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
