// Flags of the user's program: found by the rules, and how one whose value lies on shared storage is taken off there.
// Those that no rule is about are reported where they lie on the share.
#include "base/path.hpp"
#include "cachefix/flags.hpp"

#include <algorithm>
#include <set>

namespace sharefs::cachefix {
namespace {

// Variables that would win over HF_HUB_CACHE in some version of transformers, or in sentence-transformers.
constexpr std::string_view k_older_model_variables[] = {"TRANSFORMERS_CACHE", "PYTORCH_TRANSFORMERS_CACHE",
                                                        "PYTORCH_PRETRAINED_BERT_CACHE", "SENTENCE_TRANSFORMERS_HOME"};

/// Is it out of effect, because the same key or the same option comes later?
bool is_superseded(const Occurrences& all, std::size_t number) {
  return std::ranges::any_of(std::span(all).subspan(number + 1), [&](const Occurrence& later) {
    return later.flag == all[number].flag || later.spot == Spot::word;
  });
}

/// What moving is for: safety, or only speed.
std::string with_locks(const Launch& launch, const std::string& reason, const std::string& path) {
  const sys::LockScope setting = launch.stakes.place(path).lock_scope;
  return setting == sys::LockScope::all_hosts ? reason + " (file locks exclude other hosts there, so it is for speed)"
         : setting == sys::LockScope::this_host
             ? reason + " (file locks do not exclude other hosts there; without `nolock` they would)"
         : setting == sys::LockScope::same_name
             ? reason + " (file locks do not exclude other hosts there: one has the name of this host, see SF247)"
             : reason;
}

Decision change_of(const Occurrence& one, Action action, std::optional<std::string> to) {
  return {.action = action,
          .flag = one.flag,
          .index = one.value_index,
          .from = one.value,
          .to = std::move(to),
          .cache_class = one.rule.cache_class,
          .rule = one.rule.id,
          .reason = one.rule.reason};
}

/// The override of a value in a file, as words of the command line.
Decision override_of(const Occurrence& one, const std::string& value) {
  const bool attached = one.override_start.ends_with('=');
  const Argv words = attached ? Argv{one.override_start + value} : Argv{one.override_start, value};
  Decision decision = change_of(one, Action::set, words.back());
  decision.edits = {{one.insert_at, false, 0, 0, "", words}};
  return decision;
}

Decision with_value(const Occurrence& one, const std::string& value) {
  Decision decision = change_of(one, Action::rewrite, value);
  decision.edits = {{one.value_index, false, one.value_begin, one.value_begin + one.value.size(), value}};
  return decision;
}

/// Another value for one occurrence, mostly the node-local path; without one it is taken out of effect. nullopt: it
/// already is, or nowhere is room for a changed copy.
std::optional<Decision> changed(const Launch& launch, const Program& program, const Occurrences& all,
                                std::size_t number, const std::optional<std::string>& value) {
  const Occurrence& one = all[number];
  if (one.spot == Spot::document)
    return changed_copy(launch, program, one, value);
  if (one.spot == Spot::file)
    return !value && is_superseded(all, number) ? std::nullopt
                                                : std::optional(override_of(one, value.value_or("null")));
  if (value || one.spot == Spot::pair) // a pair may stand against a value in a file: it is emptied, not taken out
    return with_value(one, value.value_or("null"));
  Decision decision = change_of(one, Action::drop, std::nullopt);
  decision.edits = {{one.name_index, true, 0, 0, ""}, {one.value_index, true, 0, 0, ""}};
  return decision;
}

Decision no_copy(const Launch& launch, const Occurrence& one) {
  return warning("SF412", launch.argv[one.value_index],
                 "its cache_dir lies on shared storage and was left: there is no directory for a changed copy where "
                 "you may write and all nodes can read",
                 "give `--cache_dir` on the command line, or start it in such a directory");
}

/// Without the flag: the environment says where datasets and models are.
Decisions drop(const Launch& launch, const Program& program, const Occurrences& all, const std::string& path,
               const std::string& local) {
  const Occurrence& last = all.back();
  Decisions out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (auto decision = changed(launch, program, all, i, std::nullopt))
      out.push_back(*std::move(decision));
    else if (all[i].spot == Spot::document)
      return {no_copy(launch, all[i])};
  }
  const auto set = [&](std::string_view name, const std::string& value, CacheClass cache_class, std::string reason) {
    auto decision = set_variable(launch, program, std::string(name), value, true);
    if (!decision)
      return;
    decision->cache_class = cache_class;
    decision->rule = last.rule.id;
    decision->reason = std::move(reason);
    out.push_back(*std::move(decision));
  };
  const std::string models = "models stay where `" + last.flag + "` had them";
  set("HF_DATASETS_CACHE", local, CacheClass::node_local, "datasets are built on the node's own disk");
  set("HF_HUB_CACHE", path, CacheClass::read_mostly, models);
  set("HUGGINGFACE_HUB_CACHE", path, CacheClass::read_mostly, models + " (for older releases)");
  for (const std::string_view name : k_older_model_variables)
    if (launch.variable(program, name).value_or(path) != path)
      set(name, path, CacheClass::read_mostly, models + " (some libraries read this variable first)");
  rest_on(out.front(), local, path);
  return out;
}

/// Models that are on the share already are found through links in the node-local directory.
void link_models(const Launch& launch, Decision& decision, const std::string& local, const std::string& shared) {
  for (const std::string& name : launch.stakes.names(shared).value_or(Names()))
    if (name.starts_with("models--") && name.find('/') == std::string::npos)
      decision.links.push_back({local + "/" + name, normalize_path(shared) + "/" + name});
}

/// What is not known well enough to be changed.
std::optional<Decision> not_literal(const Program& program, const Occurrences& all) {
  if (std::ranges::any_of(all, [](const Occurrence& one) { return is_unknown(one.value); }))
    return warning("SF403", all.back().flag, "its value is not literal in the shell text, so it was left",
                   "write the path out, or assign the variable literally in the same text");
  const bool relative = std::ranges::any_of(all, [](const Occurrence& one) {
    return !one.value.starts_with('/') && !one.value.starts_with('~') && !one.value.empty() &&
           one.value.find("://") == std::string::npos;
  });
  if (relative && is_unknown(program.directory))
    return warning("SF403", all.back().flag,
                   "its value is relative to a directory that is not known here, so it was left",
                   "write the path out from the root");
  return std::nullopt;
}

/// A setting that speaks against node-local datasets: turned round too if the user asked for the cache to move, else
/// explained.
Decision contradiction(const Launch& launch, const Occurrence& built_once, const Occurrence& last) {
  if (!last.rule.by_user)
    return warning("SF411", launch.argv[built_once.value_index],
                   "data_shared_file_system is true: only one node builds the datasets, so `" + last.flag +
                       "` was left",
                   "to change both, run with `--local --cache_dir`, which sets it to false besides");
  Occurrence off = built_once;
  off.rule = last.rule;
  off.rule.cache_class = CacheClass::node_local;
  off.rule.reason = "each node builds its datasets on its own disk";
  const std::string value = built_once.value.empty() ? "=false" : "false"; // empty: the bare flag
  return off.spot == Spot::file ? override_of(off, value) : with_value(off, value);
}

/// One flag with all its occurrences; the last is the one that counts for argparse. `built_once`: the setting by which
/// one node builds the datasets for all.
Decisions decide_flag(const Launch& launch, const Program& program, Occurrences all,
                      const std::optional<Occurrence>& built_once) {
  if (auto unclear = not_literal(program, all))
    return {*std::move(unclear)};
  const auto is_empty = [](const Occurrence& one) {
    return one.value.empty() || (one.spot == Spot::pair && is_listed(one.value, "null None"));
  };
  std::vector<std::optional<std::string>> paths;
  for (const Occurrence& one : all)
    paths.push_back(is_empty(one) ? std::nullopt : launch.absolute(program, one.value));
  const auto shared = [&](std::size_t i) { return paths[i] && launch.stakes.is_shared(*paths[i]); };
  const std::size_t last = all.size() - 1;
  Decisions out;
  // An earlier occurrence may be the one that a program with its own parser takes.
  Verdict verdict{Way::in_place, ""};
  if (shared(last)) {
    verdict = judge_flag(launch, program, all, *paths[last]);
    if (verdict.says)
      out.push_back(*verdict.says);
    if (verdict.way != Way::leave && launch.local_for(*paths[last]).empty())
      return {no_local_directory(launch, Severity::error)};
    if (verdict.way != Way::leave && built_once) {
      out.push_back(contradiction(launch, *built_once, all[last]));
      if (!out.back().is_change())
        verdict = {Way::leave, "data_shared_file_system is true"};
    }
    if (verdict.way != Way::leave)
      append(out, report_cache(launch, *paths[last], launch.local_for(*paths[last])));
  } else if (all[last].rule.transform == Transform::unless_prepared || all[last].rule.transform == Transform::drop) {
    verdict = {Way::leave, all[last].rule.reason};
  }
  for (Occurrence& one : all) { // with what the verdict found out about them
    if (!verdict.why.empty())
      one.rule.reason = verdict.why;
    if (shared(last))
      one.rule.reason = with_locks(launch, one.rule.reason, *paths[last]);
  }
  if (verdict.way == Way::drop) {
    const std::string& path = *paths[last];
    append(out, drop(launch, program, all, normalize_path(launch.stakes.place(path).path), launch.local_for(path)));
    return out;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto stays = [&](std::string why) {
      out.push_back(keep(all[i].flag, all[i].value_index, all[i].value, all[i].rule.cache_class, std::move(why)));
    };
    if (!paths[i])
      stays(is_empty(all[i]) ? "the value is empty" : "a URL is not a path");
    else if (!shared(i))
      stays("lies on this host's own disk");
    else if (verdict.way == Way::leave)
      stays(verdict.why);
    else if (all[i].spot == Spot::file && is_superseded(all, i))
      stays("what comes later on the command line counts");
    else if (const std::string local = launch.local_for(*paths[i]); !local.empty()) {
      auto decision = changed(launch, program, all, i, local);
      if (!decision) {
        out.push_back(no_copy(launch, all[i]));
        continue;
      }
      rest_on(*decision, local, *paths[i]);
      if (verdict.models && i == last)
        link_models(launch, *decision, local, *paths[i]);
      out.push_back(*std::move(decision));
    }
  }
  return out;
}

/// A flag that no rule is about: reported where its value lies on shared storage.
void keep_unruled(const Launch& launch, const Program& program, const Occurrence& one, Decisions& out) {
  const bool is_short = may_be_short_for(one.flag, "--cache_dir");
  const bool doubtful = is_short || (names_cache(one.flag) && !launch.runs_no_python(program));
  if (!one.value.starts_with('/') && !one.value.starts_with("~/") && !doubtful)
    return;
  const auto path = launch.shared_path(program, one.value);
  if (!path)
    return;
  out.push_back(keep(one.flag, one.value_index, one.value, CacheClass::never, "no rule is about this flag"));
  if (!doubtful || stays_safely(launch, one.flag, *path, launch.is_offline(program)))
    return;
  const std::string choice = "say `--local " + one.flag + "` or `--keep " + one.flag + "`";
  out.push_back(is_short ? warning("SF406", one.flag, "may be short for `--cache_dir`, so it was left",
                                   "write `--cache_dir` in full, or " + choice)
                         : warning("SF406", one.flag,
                                   "may be a cache of datasets, which lies on shared storage; it was left", choice));
}

} // namespace

bool names_cache(std::string_view name) {
  std::string spelled = underscored(name);
  std::ranges::replace(spelled, '.', '_');
  const auto has = [&](auto... parts) { return ((spelled.find(parts) != std::string::npos) || ...); };
  return has("cache_dir", "cache_path", "cache_folder", "cachedir", "hf_cache", "hf_home", "data_cache",
             "dataset_cache", "datasets_cache") &&
         !has("model", "hub", "token", "latent", "feature", "embed", "vae", "processed");
}

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
    if (one.flag.size() < 3)
      continue;
    auto rule =
        one.flag.starts_with("--") ? rule_for_key(launch, program, framework, one.flag.substr(2)) : std::nullopt;
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
  std::ranges::move(find_overrides(launch, program, framework, out), std::back_inserter(found));
  // In the order in which the program reads them: the last counts.
  std::ranges::stable_sort(found, {}, [](const Occurrence& one) {
    return one.spot == Spot::file && one.override_start.starts_with("--") ? one.insert_at : one.name_index;
  });
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
