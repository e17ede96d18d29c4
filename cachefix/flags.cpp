// Options of the user's program that name caches.
#include "cachefix/launch.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace sharefs::cachefix {
namespace {

/// One option of a program with its value: `--key value`, or `--key=value`.
struct Option {
  std::string flag = {};       ///< as spelled, without `=value`
  std::size_t index = 0;       ///< of the word with the value
  std::size_t value_begin = 0; ///< offset of the value in that word
  std::string value = {};
};

std::vector<Option> read_program_options(const Argv& argv, const Program& program) {
  std::vector<Option> found;
  for (std::size_t i = program.begin; i < program.end; ++i) {
    const std::string& word = argv[i];
    if (word.size() < 3 || word[0] != '-')
      continue;
    const auto equals = word.find('=');
    Option one{.flag = word.substr(0, equals)};
    if (equals != std::string::npos)
      one.value_begin = equals + 1;
    else if (i + 1 < program.end && !looks_like_option(argv[i + 1]))
      ++i;
    else
      continue; // no value: argparse would refuse it
    one.index = i;
    one.value = argv[i].substr(one.value_begin);
    found.push_back(std::move(one));
  }
  return found;
}

/// Made by the datasets and hub libraries.
constexpr std::string_view k_library_names =
    "models--* datasets--* spaces--* .* downloads extracted hub modules datasets xet metrics evaluate assets token "
    "version.txt CACHEDIR.TAG *_modules json csv parquet text arrow imagefolder audiofolder videofolder webdataset "
    "pandas generator xml sql spark cache-* *.lock *.incomplete";

/// Does something lie in a directory that only these libraries make?
bool is_of_libraries(const Names& names) {
  return std::ranges::any_of(names, [](const std::string& name) {
    return is_listed(name, "models--* datasets--* *_modules json csv parquet arrow generator") ||
           name.find("___") != std::string::npos;
  });
}

/// The first name in a directory that neither datasets nor a hub library makes there; empty: none.
std::string foreign_name(const Names& names) {
  const auto found = std::ranges::find_if(names, [](const std::string& name) {
    return !is_listed(name, k_library_names) && name.find("___") == std::string::npos;
  });
  return found == names.end() ? "" : *found;
}

class FlagDecider {
 public:
  FlagDecider(const Launch& launch, const Program& program, const Framework* framework)
      : m_launch(launch), m_program(program), m_framework(framework),
        m_options(read_program_options(launch.argv, program)) {}

  Decisions decide() {
    for (const Option& one : m_options) {
      const auto rule = one.flag.starts_with("--")
                            ? rule_for_flag(m_program, m_framework, one.flag, m_launch.rules.user)
                            : std::nullopt;
      const auto path = m_launch.shared_path(m_program, one.value);
      const bool moved = rule && is_moved(rule->cache_class);
      const bool keeps = m_framework != nullptr && m_framework->keeps_caches && rule && !rule->by_user;
      if (!rule && path)
        unknown(one, *path);
      else if (!rule)
        continue;
      else if (!moved || keeps)
        stays(one, *rule, keeps ? std::string(m_framework->name) + " keeps what it loads there" : rule->reason);
      else if (!path)
        stays(one, *rule, one.value.empty() ? "the value is empty" : "lies on this host's own disk");
      else
        cache(one, *rule, *path);
    }
    return std::move(m_out);
  }

 private:
  void stays(const Option& one, const AppliedRule& rule, std::string why) {
    m_out.push_back(keep(one.flag, one.index, one.value, rule.cache_class, std::move(why)));
  }
  void stays(const Option& one, const AppliedRule& rule, std::string why, Decision said) {
    stays(one, rule, std::move(why));
    m_out.push_back(std::move(said));
  }

  /// A flag that no rule is about. Where the guard gets hold of the program, what is built there is known then.
  void unknown(const Option& one, const std::string& path) {
    m_out.push_back(keep(one.flag, one.index, one.value, CacheClass::never, "no rule is about this flag"));
    if (names_cache(one.flag) && !m_launch.runs_no_python(m_program) && !m_launch.unguarded(m_program).empty() &&
        !locks_are_enough(m_launch, path))
      m_out.push_back(warning("SF406", one.flag,
                              "may be a cache of datasets, which lies on shared storage; it was left",
                              "say `--local " + one.flag + "` or `--keep " + one.flag + "`"));
  }

  /// Is it the place of models, as another option of the same command shows?
  [[nodiscard]] bool is_of_models(const std::string& path) const {
    return std::ranges::any_of(m_options, [&](const Option& other) {
      const auto value = m_launch.absolute(m_program, other.value);
      const bool of_models =
          other.flag.find("model") != std::string::npos || other.flag.find("hub") != std::string::npos;
      return of_models && value && is_under(normalize_path(*value), normalize_path(path));
    });
  }

  /// A cache on shared storage that is to be moved, or guarded.
  void cache(const Option& one, const AppliedRule& rule, const std::string& path) {
    const bool mixed = rule.cache_class == CacheClass::mixed;
    const std::string unguarded = m_launch.unguarded(m_program);
    const bool literal = rule.by_user || !unguarded.empty() || m_launch.rules.guard->build == "local";
    if (!rule.by_user && locks_are_enough(m_launch, path))
      return stays(one, rule, "file locks exclude other hosts there, and caches.when is racy");
    if (mixed && !literal) {
      m_out.push_back(guarded(m_launch, one.flag, one.index, one.value, path));
      return;
    }
    const bool asked = rule.by_user || (m_launch.rules.guard && m_launch.rules.guard->build == "local");
    if (!rule.by_user && !mixed && is_of_models(path))
      return stays(one, rule, "models are read from it, as another option shows");
    if (rule.unless_prepared && m_program.begin < m_program.end && m_launch.argv[m_program.begin] == "preprocess")
      return stays(one, rule, "it is asked to prepare this place");
    if (mixed && !asked && m_launch.is_offline(m_program))
      return stays(one, rule, "offline, what lies there is needed");
    const auto& names = m_launch.facts.names(path);
    if (!names && m_launch.facts.is_refused(path))
      return stays(one, rule, "it may not be read",
                   warning("SF423", one.value, "this user may not read it, so `" + one.flag + "` was left",
                           "`ls -ld " + shell_quote(path) +
                               "` says who may; if that is you by a group, `sharefs status` says what the server goes "
                               "by"));
    if (!names)
      return stays(one, rule, "the share does not answer",
                   warning("SF409", one.value, "the share does not answer, so `" + one.flag + "` was left",
                           "run `sharefs status`"));
    if (rule.unless_prepared && !names->empty())
      return stays(one, rule, "a prepared dataset lies there, which is shared on purpose");
    if (const std::string foreign = foreign_name(*names); mixed && !asked && !foreign.empty())
      return stays(one, rule, "`" + foreign + "` lies there",
                   warning("SF420", one.value,
                           "`" + foreign + "` lies there, which neither datasets nor a hub library made, so `" +
                               one.flag + "` was left: if nodes build datasets there, they race",
                           "if it is a cache of datasets and models only, say `--local " + rule.flag + "`"));
    if (mixed && !asked && m_launch.runs_no_python(m_program) && !is_of_libraries(*names))
      return stays(one, rule, "nothing in it says that it is a cache of datasets");
    move(one, rule, path, *names);
  }

  void move(const Option& one, const AppliedRule& rule, const std::string& path, const Names& names) {
    const bool mixed = rule.cache_class == CacheClass::mixed;
    const bool models =
        mixed && std::ranges::any_of(names, [](const std::string& name) { return name.starts_with("models--"); });
    if (models && runs_elsewhere(m_launch, m_program)) { // links are made on this host only
      if (m_launch.unguarded(m_program).empty())
        m_out.push_back(guarded(m_launch, one.flag, one.index, one.value, path));
      else
        stays(one, rule, "its models would be lost",
              warning("SF408", one.value,
                      "it holds models too, to which no links are made on the other nodes, so `" + one.flag +
                          "` was left: launches can fail by the dataset cache race",
                      "start `sharefs run` on each node, or give the model as a directory"));
      return;
    }
    const std::string local = m_launch.local_for(path);
    if (local.empty()) {
      m_out.push_back(no_local_directory(m_launch, Severity::error));
      return;
    }
    Decision decision{.action = Action::rewrite,
                      .flag = one.flag,
                      .index = one.index,
                      .from = one.value,
                      .to = local,
                      .cache_class = rule.cache_class,
                      .rule = rule.id,
                      .reason = with_locks(m_launch, rule.reason, path),
                      .edits = {{one.index, one.value_begin, one.value_begin + one.value.size(), local}},
                      .directory = local,
                      .stands_for = normalize_path(path)};
    if (models)
      for (const std::string& name : names)
        if (name.starts_with("models--") && name.find('/') == std::string::npos)
          decision.links.push_back({local + "/" + name, normalize_path(path) + "/" + name});
    m_out.push_back(std::move(decision));
  }

  const Launch& m_launch;
  const Program& m_program;
  const Framework* m_framework;
  std::vector<Option> m_options;
  Decisions m_out;
};

} // namespace

std::string caches_named(const Launch& launch) {
  Program nobody;
  nobody.end = launch.argv.size();
  nobody.directory = launch.start.directory;
  std::vector<std::string> names;
  for (const Option& one : read_program_options(launch.argv, nobody))
    if (const auto rule = rule_for_flag(nobody, nullptr, one.flag, launch.rules.user);
        rule && is_moved(rule->cache_class) && launch.shared_path(nobody, one.value))
      names.push_back("`" + to_utf8(one.flag + " " + one.value) + "`");
  return join(names, ", ");
}

Decisions decide_flags(const Launch& launch, const Program& program, const Framework* framework) {
  const bool known = launch.walk.understood && !is_plain_tool(program.name);
  return known ? FlagDecider(launch, program, framework).decide() : Decisions();
}

} // namespace sharefs::cachefix
