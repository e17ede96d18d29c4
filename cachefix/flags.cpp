// Flags of the user's program: found by the rules; those that no rule is about are told where they lie on the share.
#include "cachefix/config_files.hpp"
#include "cachefix/draft.hpp"

#include <algorithm>
#include <cctype>

namespace sharefs::cachefix {
namespace {

/// argparse never takes such a word as a value.
bool looks_like_option(const std::string& word) {
  if (word.size() < 2 || word[0] != '-' || word.find(' ') != std::string::npos)
    return false;
  return !std::all_of(word.begin() + 1, word.end(), [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
}

/// Flags that no rule is about: says so where their value lies on shared storage.
void tell_unruled(Draft& draft, const Program& program, const Framework* framework) {
  for (std::size_t i = program.begin; i < program.end; ++i) {
    const std::string& word = draft.argv[i];
    if (!word.starts_with("--") || rule_for_flag(program, framework, word.substr(0, word.find('=')), draft.rules.user))
      continue;
    const auto equals = word.find('=');
    const bool attached = equals != std::string::npos;
    if (!attached && (i + 1 >= program.end || looks_like_option(draft.argv[i + 1])))
      continue;
    const std::string value = attached ? word.substr(equals + 1) : draft.argv[i + 1];
    const std::string flag = word.substr(0, equals);
    const bool doubtful = may_be_short_for(flag, "--cache_dir");
    if (!value.starts_with('/') && !value.starts_with("~/") && !doubtful)
      continue;
    const auto path = draft.absolute(program, value);
    const sys::Place* place = path ? draft.place(*path) : nullptr;
    if (place == nullptr || !place->shared)
      continue;
    draft.keep(flag, attached ? i : i + 1, value, CacheClass::never, "no rule is about this flag");
    if (doubtful)
      draft.diagnose(Severity::warning, "SF406", flag,
                     "it may be short for `--cache_dir`, which would be rewritten, or mean another option; it was left",
                     "write `--cache_dir` in full, or say `--local " + flag + "` or `--keep " + flag + "`");
  }
}

} // namespace

std::vector<Occurrence> find_flags(const Program& program, const Framework* framework, const Draft& draft) {
  std::vector<Occurrence> found;
  const Argv& argv = draft.argv;
  for (std::size_t i = program.begin; i < program.end; ++i) {
    const std::string& word = argv[i];
    if (word.size() < 3 || !word.starts_with("--"))
      continue;
    const auto equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    auto rule = rule_for_flag(program, framework, flag, draft.rules.user);
    if (!rule)
      continue;
    Occurrence one;
    one.flag = flag;
    one.name_index = i;
    one.rule = std::move(*rule);
    if (equals != std::string::npos) {
      one.value_index = i;
      one.value_begin = equals + 1;
      one.value = word.substr(equals + 1);
    } else {
      if (i + 1 >= program.end || looks_like_option(argv[i + 1]))
        continue; // a flag without a value: argparse would refuse it
      one.value_index = ++i;
      one.value = argv[i];
    }
    found.push_back(std::move(one));
  }
  return found;
}

void sanitize_flags(Draft& draft, const Walk& walk, const Program& program, const Framework* framework) {
  std::vector<Occurrence> found = find_in_files(draft, program, framework);
  for (Occurrence& one : find_flags(program, framework, draft))
    found.push_back(std::move(one));
  for (Occurrence& one : find_overrides(program, framework, draft))
    found.push_back(std::move(one));
  // In the order in which the program reads them: the last counts.
  std::stable_sort(found.begin(), found.end(), [](const Occurrence& a, const Occurrence& b) {
    const auto order = [](const Occurrence& one) {
      return one.spot == Spot::file && one.override_start.starts_with("--") ? one.insert_at : one.name_index;
    };
    return order(a) < order(b);
  });
  const auto built_once = find_shared_file_system(draft, program, framework);
  std::vector<std::string> done;
  for (const Occurrence& first : found) {
    if (first.rule.transform == Transform::leave) {
      draft.keep(first.flag, first.value_index, first.value, first.rule.cache_class, first.rule.reason);
      continue;
    }
    if (std::find(done.begin(), done.end(), first.rule.flag) != done.end())
      continue;
    done.push_back(first.rule.flag);
    std::vector<const Occurrence*> all;
    for (const Occurrence& one : found)
      if (one.rule.flag == first.rule.flag && one.rule.transform != Transform::leave)
        all.push_back(&one);
    transform_flag(draft, walk, program, all,
                   is_spelling_of(first.rule.flag, "--cache_dir") ? built_once : std::nullopt);
  }
  tell_unruled(draft, program, framework);
}

} // namespace sharefs::cachefix
