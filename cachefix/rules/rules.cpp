#include "cachefix/rules/rules.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <cctype>
#include <fnmatch.h>

namespace sharefs::cachefix {
namespace {

constexpr std::size_t k_shortest_prefix = 9; // "--cache_d": a shorter prefix may mean --cache_latents
CacheClass class_of(const Row& row) {
  return enumerator<CacheClass>("node-local mixed read-mostly shared never", row.get("class")).value();
}

/// True if `word` (`--cache_d`, `--cache-dir`) is a spelling of `flag` (`--cache_dir`).
bool is_spelling_of(std::string_view word, std::string_view flag) {
  const std::string spelled = underscored(word), wanted = underscored(flag);
  return spelled == wanted ||
         (spelled.size() >= k_shortest_prefix && wanted.starts_with(spelled) && wanted.starts_with("--cache_d"));
}

bool matches(const UserRule& rule, const Program& program) {
  return rule.program.empty() || fnmatch(rule.program.c_str(), program.name.c_str(), 0) == 0 ||
         fnmatch(rule.program.c_str(), base_name(program.name).c_str(), 0) == 0;
}

/// Returns the rules of the table's rows of this kind, `flag` or `variable`, one for each name in a row.
std::vector<CacheRule> table_rules(const std::string& kind) {
  std::vector<CacheRule> all;
  for (const Row& row : rows_of(kind))
    for (const std::string& name : split_words(kind == "flag" ? row.get("flags") : row.name))
      all.push_back({.name = name,
                     .cache_class = class_of(row),
                     .reason = row.get("reason"),
                     .of = row.get("of"),
                     .fallback = row.get("default"),
                     .holds_code = row.has("code"),
                     .id = kind == "flag" ? row.name : "variable." + name,
                     .unless = row.get("unless")});
  return all;
}

} // namespace

const char* to_string(CacheClass value) {
  return name_in(std::array{"node-local", "mixed", "read-mostly", "shared", "never"}, value);
}

std::vector<CacheRule> variable_rules(const std::vector<UserRule>& user) {
  static const std::vector<CacheRule> k_table = table_rules("variable");
  std::vector<CacheRule> all = k_table;
  for (const UserRule& rule : user) {
    auto known = std::ranges::find(all, rule.flag, &CacheRule::name);
    if (known == all.end() && rule.local && !rule.flag.starts_with('-') && !rule.flag.empty())
      known = all.insert(all.end(),
                         {.name = rule.flag, .cache_class = CacheClass::node_local, .id = "variable." + rule.flag});
    if (known == all.end() || known->cache_class == CacheClass::never || known->by_user)
      continue;
    known->cache_class = rule.local ? CacheClass::node_local : CacheClass::shared;
    known->reason = "a rule of yours (" + rule.origin + ")";
    known->by_user = true;
  }
  return all;
}

std::string kept_variables(const std::vector<UserRule>& rules) {
  std::vector<std::string> names;
  for (const UserRule& rule : rules) // the first that matches counts
    if (const bool first = std::ranges::find(rules, rule.flag, &UserRule::flag)->origin == rule.origin;
        first && rule.program.empty() && !rule.local && !rule.flag.starts_with('-'))
      names.push_back(rule.flag);
  return join(names, ":");
}

const Row* framework_of(const Program& program, const Argv& argv) {
  const bool module = program.kind == ProgramKind::module;
  const std::string name = module ? program.name : base_name(program.name);
  const std::string verb = module                        ? "-m:" + name
                           : program.begin < program.end ? name + ":" + argv[program.begin]
                                                         : name;
  const auto fits = [&](std::string_view known) {
    return known.ends_with(".py") ? ("/" + program.name).ends_with("/" + std::string(known))
                                  : is_listed(name, known) || is_listed(verb, known);
  };
  if (program.kind == ProgramKind::shell || program.kind == ProgramKind::text)
    return nullptr;
  for (const Row& row : rows_of("program"))
    if (any_word(row.get("names"), ' ', fits))
      return &row;
  return nullptr;
}

bool names_cache(std::string_view name) {
  std::string spelled = underscored(name);
  std::ranges::transform(spelled, spelled.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto has = [&](auto... parts) { return ((spelled.find(parts) != std::string::npos) || ...); };
  return (name.find("_CACHE") != std::string_view::npos ||
          has("cache_dir", "cache_path", "cache_folder", "cachedir", "hf_cache", "data_cache", "dataset_cache",
              "datasets_cache", "cache_home", "cache_root")) &&
         !has("model", "hub", "token", "latent", "feature", "embed", "vae", "processed");
}

std::optional<CacheRule> rule_for_flag(const Program& program, const Row* framework, std::string_view flag,
                                       const std::vector<UserRule>& user) {
  static const std::vector<CacheRule> k_table = table_rules("flag");
  const auto known = std::ranges::find_if(k_table, [&](const CacheRule& rule) {
    return (rule.of.empty() || (framework != nullptr && is_listed(framework->name, rule.of))) &&
           is_spelling_of(flag, rule.name);
  });
  const auto own = std::ranges::find_if(
      user, [&](const UserRule& rule) { return is_spelling_of(flag, rule.flag) && matches(rule, program); });
  if (own == user.end())
    return known == k_table.end() ? std::nullopt : std::optional(*known);
  CacheRule applied{.name = own->flag,
                    .reason = "a rule of yours (" + own->origin + ") " +
                              (own->local ? "puts it on the node's own disk" : "keeps it"),
                    .by_user = true,
                    .id = "user"};
  // The class stays `mixed`, so models stay where they are: nobody wants hundreds of GB of them on each node.
  if (own->local)
    applied.cache_class =
        known != k_table.end() && known->cache_class == CacheClass::mixed ? CacheClass::mixed : CacheClass::node_local;
  return applied;
}

} // namespace sharefs::cachefix
