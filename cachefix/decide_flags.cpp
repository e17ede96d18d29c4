// Flags of the user's program: found by the rules. Those that no rule is about are reported where they lie on the
// share.
#include "cachefix/flags.hpp"

#include <algorithm>
#include <cctype>

namespace sharefs::cachefix {
namespace {

/// A flag that no rule is about: reported where its value lies on shared storage.
void keep_unruled(const Launch& launch, const Program& program, const Occurrence& one, Decisions& out) {
  const bool doubtful = may_be_short_for(one.flag, "--cache_dir");
  if (!one.value.starts_with('/') && !one.value.starts_with("~/") && !doubtful)
    return;
  const auto path = launch.absolute(program, one.value);
  if (!path || !launch.stakes.is_shared(*path))
    return;
  out.push_back(keep(one.flag, one.value_index, one.value, CacheClass::never, "no rule is about this flag"));
  if (doubtful)
    out.push_back(
        warning("SF406", one.flag, "may be short for `--cache_dir`, so it was left",
                "write `--cache_dir` in full, or say `--local " + one.flag + "` or `--keep " + one.flag + "`"));
}

/// In the order in which the program reads them: the last counts.
void sort_as_read(Occurrences& found) {
  const auto order = [](const Occurrence& one) {
    return one.spot == Spot::file && one.override_start.starts_with("--") ? one.insert_at : one.name_index;
  };
  std::ranges::stable_sort(found, {}, order);
}

} // namespace

Occurrences read_flags(const Argv& argv, std::size_t begin, std::size_t end) {
  Occurrences found;
  for (std::size_t i = begin; i < end; ++i) {
    const std::string& word = argv[i];
    if (word.size() < 2 || word[0] != '-')
      continue;
    const auto equals = word.find('=');
    Occurrence one;
    one.flag = word.substr(0, equals);
    one.name_index = i;
    if (equals != std::string::npos) {
      one.value_begin = equals + 1;
    } else if (i + 1 < end && !looks_like_option(argv[i + 1])) {
      ++i;
    } else {
      continue; // no value: argparse would refuse it
    }
    one.value_index = i;
    one.value = argv[i].substr(one.value_begin);
    found.push_back(std::move(one));
  }
  return found;
}

Decisions decide_flags(const Launch& launch, const Program& program, const Framework* framework) {
  Decisions out;
  Occurrences found = find_in_files(launch, program, framework, out);
  Occurrences unruled;
  for (Occurrence& one : read_flags(launch.argv, program.begin, program.end)) {
    if (one.flag.size() < 3 || !one.flag.starts_with("--"))
      continue;
    auto rule = rule_for_flag(program, framework, one.flag, launch.rules.user);
    if (rule && !rule->keys.empty()) { // `--model_args pretrained=x,cache_dir=y`: about a part of the value
      const auto part = value_of_key(one.value, rule->keys);
      if (!part)
        continue;
      one.value_begin += part->begin;
      one.value = one.value.substr(part->begin, part->length);
    }
    if (rule)
      one.rule = std::move(*rule);
    (rule ? found : unruled).push_back(std::move(one));
  }
  std::ranges::move(find_overrides(launch, program, framework), std::back_inserter(found));
  sort_as_read(found);
  const auto built_once = find_shared_file_system(launch, program, framework);
  const bool kept = framework != nullptr && framework->keeps_caches;
  std::set<std::string> done;
  for (const Occurrence& first : found) {
    if (first.rule.transform == Transform::leave || (kept && !first.rule.by_user)) {
      out.push_back(keep(first.flag, first.value_index, first.value, first.rule.cache_class,
                         kept ? std::string(framework->name) + " keeps what it loads there" : first.rule.reason));
      continue;
    }
    if (!done.insert(first.rule.flag).second)
      continue;
    Occurrences all;
    std::ranges::copy_if(found, std::back_inserter(all), [&](const Occurrence& one) {
      return one.rule.flag == first.rule.flag && one.rule.transform != Transform::leave;
    });
    append(out, decide_flag(launch, program, std::move(all),
                            is_spelling_of(first.rule.flag, "--cache_dir") ? built_once : std::nullopt));
  }
  for (const Occurrence& one : unruled)
    keep_unruled(launch, program, one, out);
  return out;
}

} // namespace sharefs::cachefix
