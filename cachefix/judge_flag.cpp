// What is at stake with one flag whose value lies on shared storage.
#include "base/argv.hpp"
#include "base/path.hpp"
#include "cachefix/flags.hpp"

#include <algorithm>

namespace sharefs::cachefix {
namespace {

constexpr std::string_view k_model_flags =
    "--model_name_or_path --model --model_path --pretrained_model_name_or_path --base_model --model_id";
Verdict leave(std::string why, std::optional<Decision> says = std::nullopt) {
  return {Way::leave, std::move(why), false, std::move(says)};
}

/// A file of arguments can be overridden, but its flag cannot be taken out.
bool can_be_dropped(const Occurrences& all) {
  return std::ranges::none_of(
      all, [](const Occurrence& one) { return one.spot == Spot::file && !one.override_start.ends_with('='); });
}

class FlagJudge {
 public:
  FlagJudge(const Launch& launch, const Program& program, const Occurrences& all, const std::string& path)
      : m_launch(launch), m_program(program), m_all(all), m_last(all.back()), m_path(path) {}

  Verdict judge() {
    if (auto stays = at_stake())
      return *std::move(stays);
    Verdict verdict = by_source();
    if (verdict.way == Way::drop && !drop_arrives())
      verdict.way = Way::in_place;
    if (verdict.way != Way::in_place || !verdict.models)
      return verdict;
    const auto& names = m_launch.stakes.names(m_path);
    if (!names)
      return not_read();
    const bool has_models =
        std::ranges::any_of(*names, [](const std::string& name) { return name.starts_with("models--"); });
    if (!has_models || (m_launch.setting.can_write && !runs_elsewhere(m_launch, m_program)) || model_is_directory())
      return verdict;
    return leave("its models would be lost",
                 warning("SF408", m_last.value,
                         "it holds models too, and neither variables nor links reach " +
                             std::string(m_launch.setting.can_write ? "the other nodes" : "this program alone") +
                             ", so `" + m_last.flag + "` was left: launches can fail by the dataset cache race",
                         m_launch.setting.can_write
                             ? "start `sharefs run` on each node, or give the model as a directory"
                             : "put `sharefs run --` in front of it, or give the model as a directory"));
  }

 private:
  /// A server that says no has answered: waiting, or `sharefs recover`, does not help.
  Verdict not_read() {
    if (m_launch.stakes.is_refused(m_path))
      return leave("it may not be read",
                   warning("SF423", m_last.value, "this user may not read it, so `" + m_last.flag + "` was left",
                           "`ls -ld " + shell_quote(m_path) +
                               "` says who may; if that is you by a group, "
                               "`sharefs status` says what the server goes by"));
    return leave("the share does not answer",
                 warning("SF409", m_last.value, "the share does not answer, so `" + m_last.flag + "` was left",
                         "run `sharefs status`"));
  }

  /// Nobody builds there, or what is built there is meant for all.
  std::optional<Verdict> at_stake() {
    const AppliedRule& rule = m_last.rule;
    if (rule.transform == Transform::unless_prepared) {
      const auto& names = m_launch.stakes.names(m_path);
      if (!names)
        return not_read();
      return names->empty() ? Verdict{Way::in_place, ""}
                            : leave("a prepared dataset lies there, which is shared on purpose");
    }
    if (m_last.spot == Spot::document && !m_launch.setting.can_write)
      return leave("a script's copy comes without copies of its files",
                   warning("SF412", m_launch.argv[m_last.value_index],
                           "its cache_dir lies on shared storage and was left: a script's copy comes without copies "
                           "of its files",
                           "give `--cache_dir` on the command line, or put `sharefs run --` in front of it"));
    if (rule.by_user)
      return std::nullopt;
    if (!m_last.derived.empty())
      return foreign("`" + m_last.derived + "` is made of it");
    return stays_safely(m_launch, m_last.flag, m_path, m_launch.is_offline(m_program));
  }

  Verdict foreign(const std::string& what) {
    return leave(what, warning("SF420", m_last.value,
                               what + ", so `" + m_last.flag + "` was left: if nodes build datasets there, they race",
                               "if it is a cache of datasets and models only, say `--local " + m_last.rule.flag + "`"));
  }

  /// What the program's own source shows, where the rule does not know the program.
  Verdict by_source() {
    const AppliedRule& rule = m_last.rule;
    if (rule.transform == Transform::drop)
      return {Way::drop, "", true};
    if (rule.transform != Transform::evidence)
      return by_content({Way::in_place, "", rule.cache_class == CacheClass::mixed});
    const std::string name = base_name(m_program.name);
    const SourceFacts& facts = m_launch.source(m_program);
    const bool shows = facts.parsed && facts.definitions > 0;
    if (shows && !rule.by_user) {
      if (!facts.outputs.empty())
        return foreign(name + " makes other paths of it (" + facts.outputs + ")");
      if (!facts.other_use.empty())
        return foreign(name + " uses it for more than datasets and models (" + facts.other_use + ")");
      if (!facts.escapes && facts.dataset_calls_with == 0 && facts.model_calls_with > 0)
        return leave(name + " reads only models from it, which are shared on purpose");
    }
    if (shows && !facts.escapes && facts.other_use.empty() && facts.dataset_calls_with + facts.model_calls_with > 0) {
      const bool all_hand_on =
          facts.dataset_calls == facts.dataset_calls_with && facts.model_calls == facts.model_calls_with;
      const bool models = facts.model_calls_with > 0;
      Verdict verdict{facts.optional && all_hand_on && models ? Way::drop : Way::in_place,
                      "datasets are built in it by every node at once" +
                          std::string(models ? ", models are only read from it" : ""),
                      models};
      return facts.own_layout ? by_content(std::move(verdict)) : verdict;
    }
    return by_content({Way::in_place, "", true});
  }

  /// What lies there, where the program does not say what it keeps there.
  Verdict by_content(Verdict otherwise) {
    if (m_last.rule.by_user)
      return otherwise;
    if (!m_launch.stakes.names(m_path))
      return not_read();
    const std::string found = m_launch.stakes.foreign_name(m_path);
    return found.empty() ? otherwise
                         : foreign("`" + found + "` lies there, which neither datasets nor a hub library made");
  }

  /// Do the variables that take the flag's place reach the program, and it alone?
  [[nodiscard]] bool drop_arrives() const {
    return can_be_dropped(m_all) && m_launch.walk.has_one_program() && can_carry(m_launch, m_program) &&
           (!runs_elsewhere(m_launch, m_program) || is_plain_value(m_path));
  }

  /// Is the model that is trained a directory (on whatever storage), so that no model cache is asked for it?
  [[nodiscard]] bool model_is_directory() const {
    std::string model;
    for (Occurrence& one : read_flags(m_launch.argv, m_program.begin, m_program.end))
      if (is_listed(underscored(one.flag), k_model_flags))
        model = std::move(one.value);
    const auto path = m_launch.absolute(m_program, model);
    return path && m_launch.stakes.place(*path).kind == sys::EntryKind::directory;
  }

  const Launch& m_launch;
  const Program& m_program;
  const Occurrences& m_all;
  const Occurrence& m_last;
  const std::string& m_path;
};

} // namespace

Verdict judge_flag(const Launch& launch, const Program& program, const Occurrences& all, const std::string& path) {
  return FlagJudge(launch, program, all, path).judge();
}

} // namespace sharefs::cachefix
