// One flag whose value lies on shared storage: which way it is taken off there, and how.
#include "base/path.hpp"
#include "cachefix/config_files.hpp"
#include "cachefix/draft.hpp"
#include "cachefix/shell.hpp"

#include <algorithm>

namespace sharefs::cachefix {
namespace {

constexpr std::string_view k_model_flags =
    "--model_name_or_path --model --model_path --pretrained_model_name_or_path --base_model --model_id";
// Variables that would win over HF_HUB_CACHE in some version of transformers.
constexpr std::string_view k_older_model_variables[] = {"TRANSFORMERS_CACHE", "PYTORCH_TRANSFORMERS_CACHE",
                                                        "PYTORCH_PRETRAINED_BERT_CACHE"};

/// Is the model that is trained a directory (on whatever storage), so that no model cache is asked for it?
/// nullopt: not known yet.
std::optional<bool> model_is_directory(Draft& draft, const Program& program) {
  std::string model;
  for (Occurrence& one : read_flags(draft.argv, program.begin, program.end))
    if (is_listed(underscored(one.flag), k_model_flags))
      model = std::move(one.value);
  const auto path = draft.absolute(program, model);
  if (!path)
    return false;
  const sys::Entry* place = draft.place(*path);
  if (place == nullptr)
    return std::nullopt;
  return place->kind == sys::EntryKind::directory;
}

enum class Way { in_place, drop, leave, wait };

/// A file of arguments can be overridden, but its flag cannot be taken out.
bool can_be_dropped(const Occurrences& all) {
  return std::none_of(all.begin(), all.end(), [](const Occurrence* one) {
    return one->spot == Spot::file && !one->override_start.ends_with('=');
  });
}

/// Is it out of effect, because the same key or the same option comes later?
bool is_superseded(const Occurrences& all, std::size_t number) {
  return std::any_of(all.begin() + static_cast<std::ptrdiff_t>(number) + 1, all.end(), [&](const Occurrence* later) {
    return later->flag == all[number]->flag || later->spot == Spot::word;
  });
}

/// A changed copy beside a file that only this host has does not reach the programs on other hosts. nullopt: not known
/// yet.
std::optional<bool> copy_would_be_missed(Draft& draft, const Walk& walk, const Program& program,
                                         const Occurrence& one) {
  if (one.spot != Spot::document || !runs_elsewhere(draft, walk, program))
    return false;
  const sys::Entry* place = draft.place(one.file);
  return place == nullptr ? std::nullopt : std::optional<bool>(!place->shared);
}

/// What lies in a shared directory, or how to go on without knowing: where the share does not answer, that is said.
tl::expected<const std::vector<std::string>*, Way> names_on_share(Draft& draft, const Occurrence& last,
                                                                  const std::string& path) {
  const auto* names = draft.listing(path);
  if (names == nullptr)
    return tl::unexpected(Way::wait);
  if (*names)
    return &**names;
  draft.diagnose(Severity::warning, "SF409", last.value, "the share does not answer, so `" + last.flag + "` was left",
                 "run `sharefs status`");
  return tl::unexpected(Way::leave);
}

/// A directory that is shared on purpose once it is filled.
Way unless_prepared(Draft& draft, const Occurrence& last, const std::string& path) {
  const auto names = names_on_share(draft, last, path);
  if (!names)
    return names.error();
  return (*names)->empty() ? Way::in_place : Way::leave;
}

/// How the rule's transform is done here: what the source shows, and whether the environment arrives.
Way choose(Draft& draft, const Walk& walk, const Program& program, const Occurrences& all, const std::string& path,
           bool& models_matter) {
  const Occurrence& last = *all.back();
  models_matter = last.rule.cache_class == CacheClass::mixed;
  Transform transform = last.rule.transform;
  const auto missed = copy_would_be_missed(draft, walk, program, last);
  if (!missed)
    return Way::wait;
  if (last.spot == Spot::document && !draft.can_write) {
    draft.diagnose(
        Severity::warning, "SF412", draft.argv[last.value_index],
        "its cache_dir lies on shared storage and was left: a script's copy comes without copies of its files",
        "give `--cache_dir` on the command line, or put `sharefs run --` in front of it");
    return Way::leave;
  }
  if (*missed) {
    draft.diagnose(Severity::warning, "SF412", draft.argv[last.value_index],
                   "its cache_dir lies on shared storage and was left: the other nodes would not see a changed copy",
                   "put the file on the share, or give `--cache_dir` on the command line");
    return Way::leave;
  }
  if (transform == Transform::unless_prepared)
    return unless_prepared(draft, last, path);
  if (transform == Transform::evidence) {
    transform = Transform::in_place;
    const auto script = draft.absolute(program, program.name);
    if (program.python && program.kind == ProgramKind::file && script) {
      const auto* source = draft.text(*script);
      if (source == nullptr)
        return Way::wait;
      const Evidence evidence = *source ? evidence_of(**source) : Evidence::none;
      if (evidence == Evidence::environment)
        transform = Transform::drop;
      models_matter = evidence != Evidence::datasets_only;
    }
  }
  if (transform == Transform::leave)
    return Way::leave;
  // Other programs would look for their models where HF_HUB_CACHE says, too.
  const bool alone = draft.alone && walk.has_one_program() && !draft.out.set.contains("HF_HUB_CACHE");
  if (transform == Transform::drop && can_be_dropped(all) && alone) {
    const auto carried = can_carry(draft, walk, program);
    if (!carried)
      return Way::wait;
    if (*carried && (!runs_elsewhere(draft, walk, program) || is_plain_value(path)))
      return Way::drop;
  }
  if (!models_matter)
    return Way::in_place;
  const auto names = names_on_share(draft, last, path);
  if (!names)
    return names.error();
  const bool has_models = std::any_of((*names)->begin(), (*names)->end(),
                                      [](const std::string& name) { return name.starts_with("models--"); });
  if (!has_models || (draft.can_write && !runs_elsewhere(draft, walk, program)))
    return Way::in_place;
  const auto directory = model_is_directory(draft, program);
  if (!directory)
    return Way::wait;
  if (*directory)
    return Way::in_place;
  draft.diagnose(Severity::warning, "SF408", last.value,
                 "it holds models too, and neither variables nor links reach " +
                     std::string(draft.can_write ? "the other nodes" : "this program alone") + ", so `" + last.flag +
                     "` was left: launches can fail by the dataset cache race",
                 draft.can_write ? "start `sharefs run` on each node, or give the model as a directory"
                                 : "put `sharefs run --` in front of it, or give the model as a directory");
  return Way::leave;
}

/// Models that are on the share already are found through links in the node-local directory.
void link_models(Draft& draft, const std::string& local, const std::string& shared) {
  const auto* names = draft.listing(shared);
  if (names == nullptr || !*names)
    return;
  for (const std::string& name : **names)
    if (name.starts_with("models--") && name.find('/') == std::string::npos)
      draft.out.links.push_back({local + "/" + name, normalize_path(shared) + "/" + name});
}

/// Puts the override of a value in a file into the command line.
void insert_override(Draft& draft, const Occurrence& one, const std::string& value) {
  auto& before = draft.edits[one.insert_at].before;
  if (one.override_start.ends_with('=')) {
    before.push_back(one.override_start + value);
  } else {
    before.push_back(one.override_start);
    before.push_back(value);
  }
  draft.out.changes.push_back({ChangeKind::argument, one.flag, one.value_index, one.value,
                               one.override_start.ends_with('=') ? one.override_start + value : value,
                               one.rule.cache_class, ChangeAction::set, one.rule.id, one.rule.reason});
}

/// Takes one occurrence out of effect.
void drop_one(Draft& draft, const Occurrences& all, std::size_t number) {
  const Occurrence& one = *all[number];
  switch (one.spot) {
  case Spot::word:
    draft.edits[one.name_index].dropped = true;
    draft.edits[one.value_index].dropped = true;
    draft.out.changes.push_back({ChangeKind::argument, one.flag, one.value_index, one.value, std::nullopt,
                                 one.rule.cache_class, ChangeAction::drop, one.rule.id, one.rule.reason});
    return;
  case Spot::pair: // it may stand against a value in a file: it is emptied, not taken out
    draft.replace(one.value_index, one.value_begin, one.value.size(), "null");
    draft.out.changes.push_back({ChangeKind::argument, one.flag, one.value_index, one.value, "null",
                                 one.rule.cache_class, ChangeAction::rewrite, one.rule.id, one.rule.reason});
    return;
  case Spot::file:
    if (!is_superseded(all, number))
      insert_override(draft, one, "null");
    return;
  case Spot::document:
    use_changed_copy(draft, one, std::nullopt);
    return;
  }
}

void drop(Draft& draft, const Program& program, const Occurrences& all, const std::string& path,
          const std::string& local) {
  const Occurrence& last = *all.back();
  for (std::size_t i = 0; i < all.size(); ++i)
    drop_one(draft, all, i);
  const std::string models = "models stay where `" + last.flag + "` had them";
  draft.set_variable(program, "HF_DATASETS_CACHE", local, CacheClass::node_local, last.rule.id,
                     "datasets are built on the node's own disk");
  draft.set_variable(program, "HF_HUB_CACHE", path, CacheClass::read_mostly, last.rule.id, models);
  draft.set_variable(program, "HUGGINGFACE_HUB_CACHE", path, CacheClass::read_mostly, last.rule.id,
                     models + " (for older releases)");
  for (const std::string_view name : k_older_model_variables)
    if (draft.variable(program, name).value_or(path) != path)
      draft.unset_variable(program, std::string(name), last.rule.id,
                           "older releases would look for models there and not where `" + last.flag + "` had them");
}

/// Gives one occurrence another value, mostly the node-local path.
void put_in_place(Draft& draft, const Occurrence& one, const std::string& value) {
  switch (one.spot) {
  case Spot::word:
  case Spot::pair:
    draft.replace(one.value_index, one.value_begin, one.value.size(), value);
    draft.out.changes.push_back({ChangeKind::argument, one.flag, one.value_index, one.value, value,
                                 one.rule.cache_class, ChangeAction::rewrite, one.rule.id, one.rule.reason});
    return;
  case Spot::file:
    insert_override(draft, one, value);
    return;
  case Spot::document:
    use_changed_copy(draft, one, value);
    return;
  }
}

std::string why_left(const Occurrence& one) {
  if (one.rule.transform == Transform::leave)
    return one.rule.reason;
  if (one.rule.transform == Transform::unless_prepared)
    return "a prepared dataset lies there, which is shared on purpose";
  return "it could not be changed safely";
}

/// A setting that speaks against node-local datasets: explained, or turned round too if the user asked for the cache to
/// move. True if the cache may move.
bool settle_contradiction(Draft& draft, const Occurrence& built_once, const Occurrence& last) {
  if (!last.rule.by_user) {
    draft.diagnose(Severity::warning, "SF411", draft.argv[built_once.value_index],
                   "data_shared_file_system is true: only one node builds the datasets, so `" + last.flag +
                       "` was left",
                   "to change both, run with `--local --cache_dir`, which sets it to false besides");
    return false;
  }
  Occurrence off = built_once;
  off.rule = last.rule;
  off.rule.cache_class = CacheClass::node_local;
  off.rule.reason = "each node builds its datasets on its own disk";
  put_in_place(draft, off, built_once.value.empty() ? "=false" : "false"); // empty: the bare flag
  return true;
}

} // namespace

void transform_flag(Draft& draft, const Walk& walk, const Program& program, const Occurrences& all,
                    const std::optional<Occurrence>& built_once) {
  struct Judged {
    std::optional<std::string> path;
    const sys::Entry* place = nullptr;
  };
  if (std::any_of(all.begin(), all.end(),
                  [](const Occurrence* one) { return one->value.find(k_unknown_part) != std::string::npos; })) {
    draft.diagnose(Severity::warning, "SF403", all.back()->flag,
                   "its value is not literal in the shell text, so it was left",
                   "write the path out, or assign the variable literally in the same text");
    return;
  }
  const bool directory_known = program.directory.find(k_unknown_part) == std::string::npos;
  if (!directory_known && draft.any_shared() && std::any_of(all.begin(), all.end(), [](const Occurrence* one) {
        return !one->value.starts_with('/') && !one->value.starts_with('~') && !one->value.empty() &&
               one->value.find("://") == std::string::npos;
      })) {
    draft.diagnose(Severity::warning, "SF403", all.back()->flag,
                   "its value is relative to a directory that is not known here, so it was left",
                   "write the path out from the root");
    return;
  }
  std::vector<Judged> judged;
  bool waiting = false;
  for (const Occurrence* one : all) {
    Judged judgement;
    judgement.path = draft.absolute(program, one->value);
    if (judgement.path) {
      judgement.place = draft.place(*judgement.path);
      waiting = waiting || judgement.place == nullptr;
    }
    judged.push_back(std::move(judgement));
  }
  if (waiting)
    return;
  const auto shared = [&](std::size_t i) { return judged[i].place != nullptr && judged[i].place->shared; };
  const auto keep = [&](std::size_t i, std::string why) {
    draft.keep(all[i]->flag, all[i]->value_index, all[i]->value, all[i]->rule.cache_class, std::move(why));
  };
  const std::size_t last = all.size() - 1;
  Way way = Way::leave;
  bool models_matter = false;
  std::optional<std::string> local;
  if (shared(last)) {
    way = choose(draft, walk, program, all, *judged[last].path, models_matter);
    if (way == Way::wait)
      return;
    if (way == Way::drop || way == Way::in_place)
      local = draft.local_for(*judged[last].path);
    if (local && built_once && !settle_contradiction(draft, *built_once, *all[last])) {
      for (std::size_t i = 0; i < all.size(); ++i)
        keep(i, "data_shared_file_system is true");
      return;
    }
    if (local)
      draft.report_leftovers(*judged[last].path);
    if (way == Way::drop && local) {
      drop(draft, program, all, normalize_path(judged[last].place->path), *local);
      return;
    }
  } else if (all[last]->rule.transform == Transform::in_place || all[last]->rule.transform == Transform::evidence) {
    way = Way::in_place; // an earlier occurrence may be the one that a program with its own parser takes
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!judged[i].path)
      keep(i, all[i]->value.empty() ? "the value is empty" : "a URL is not a path");
    else if (!shared(i))
      keep(i, "lies on this host's own disk");
    else if (way != Way::in_place)
      keep(i, why_left(*all[i]));
    else if (all[i]->spot == Spot::file && is_superseded(all, i))
      keep(i, "what comes later on the command line counts");
    else if (const auto place_here = draft.local_for(*judged[i].path)) {
      put_in_place(draft, *all[i], *place_here);
      if (models_matter && i == last)
        link_models(draft, *place_here, *judged[i].path);
    }
  }
}

} // namespace sharefs::cachefix
