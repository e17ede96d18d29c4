// sharefs cache list, sharefs cache prune: the node-local caches of `sharefs run`.
#include "base/text.hpp"
#include "cachefix/cache_store.hpp"
#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/exit_code.hpp"
#include "ui/table.hpp"

#include <nlohmann/json.hpp>
#include <ostream>

namespace sharefs::cli {
namespace {

constexpr std::chrono::milliseconds k_store_deadline{60'000};

/// The directories that `run` uses on this host for this user.
Result<std::vector<std::string>> roots_of(Context& context) {
  const auto config = context.config_if_any();
  if (!config)
    return fail(config.error());
  const config::Caches caches = *config == nullptr ? config::Caches{} : (*config)->caches;
  const sys::Identity identity = context.system.identity();
  const std::string name = cachefix::directory_name_of(identity.user, identity.uid);
  std::vector<std::string> roots;
  for (const std::string& directory : caches.local)
    roots.push_back(directory + "/" + name);
  roots.push_back("/var/tmp/sharefs-" + name);
  return roots;
}

std::string age_of(const cachefix::CacheEntry& entry, std::int64_t now) {
  const std::int64_t days = (now - entry.used) / 86'400;
  return entry.used == 0 ? "-" : days == 0 ? "today" : count_of(static_cast<std::size_t>(days), "day");
}

std::int64_t now_of(Context& context) {
  return std::chrono::duration_cast<std::chrono::seconds>(context.system.now().time_since_epoch()).count();
}

nlohmann::ordered_json to_json(const cachefix::CacheEntry& entry) {
  return {{"path", to_utf8(entry.path)}, {"stands_for", to_utf8(entry.stands_for)},
          {"bytes", entry.bytes},        {"used", entry.used},
          {"in_use", entry.in_use},      {"measured", entry.measured}};
}

Result<int> cache_list(Context& context, const Arguments&) {
  const auto roots = roots_of(context);
  if (!roots)
    return fail(roots.error());
  ui::Table table({{"CACHE", false, true}, {"STANDS FOR", false, true}, {"SIZE", true}, {"USED"}, {"STATE"}});
  auto json = nlohmann::ordered_json::array();
  for (const std::string& root : *roots) {
    const auto entries = cachefix::list_caches(root, k_store_deadline);
    if (!entries)
      return fail(entries.error());
    for (const cachefix::CacheEntry& entry : *entries) {
      table.add({{to_utf8(entry.path)},
                 {entry.stands_for.empty() ? "-" : to_utf8(entry.stands_for)},
                 {format_bytes(entry.bytes)},
                 {age_of(entry, now_of(context))},
                 {entry.in_use ? "in use" : ""}});
      json.push_back(to_json(entry));
    }
  }
  context.envelope.fields["caches"] = std::move(json);
  if (!context.flags.json && !table.empty())
    context.console.out() << table.render(context.console.options()) << std::flush;
  if (table.empty())
    context.console.message("no caches of `sharefs run` on this host");
  return k_exit_ok;
}

Result<int> cache_prune(Context& context, const Arguments& arguments) {
  cachefix::PruneRequest request;
  const auto days = parse_size(arguments.value("older-than").value_or("30"));
  if (!days)
    return fail(ErrorCode::usage, "option `--older-than` does not understand `" + *arguments.value("older-than") + "`",
                "a number of days");
  request.older_than = static_cast<std::int64_t>(std::min<std::uint64_t>(*days, 1'000'000)) * 86'400;
  if (const auto keep = arguments.value("keep-size")) {
    request.keep = parse_size(*keep);
    if (!request.keep)
      return fail(ErrorCode::usage, "option `--keep-size` does not understand `" + *keep + "`",
                  "a size: 500M, 10G, 1T");
  }
  const auto roots = roots_of(context);
  if (!roots)
    return fail(roots.error());
  std::vector<std::pair<std::string, cachefix::CacheEntry>> chosen;
  for (const std::string& root : *roots) {
    auto entries = cachefix::list_caches(root, k_store_deadline);
    if (!entries)
      return fail(entries.error());
    for (cachefix::CacheEntry& entry : cachefix::choose_to_prune(std::move(*entries), request, now_of(context)))
      chosen.emplace_back(root, std::move(entry));
  }
  auto json = nlohmann::ordered_json::array();
  for (const auto& [root, entry] : chosen) {
    json.push_back(to_json(entry));
    context.console.message("delete " + to_utf8(entry.path) + " (" + format_bytes(entry.bytes) + ", " +
                            age_of(entry, now_of(context)) + ", for " +
                            (entry.stands_for.empty() ? "?" : to_utf8(entry.stands_for)) + ")");
  }
  context.envelope.fields["pruned"] = std::move(json);
  if (chosen.empty()) {
    context.console.message("nothing to delete");
    return k_exit_ok;
  }
  if (arguments.flag("check"))
    return k_exit_pending;
  if (arguments.flag("dry-run"))
    return k_exit_ok;
  if (!arguments.flag("yes")) {
    if (!context.console.options().in_terminal)
      return fail(ErrorCode::usage, "deleting needs a confirmation and there is no terminal", "add --yes");
    if (!context.console.confirm("Delete " + count_of(chosen.size(), "cache") + "?"))
      return k_exit_failed;
  }
  int code = k_exit_ok;
  for (const auto& [root, entry] : chosen)
    if (auto removed = cachefix::remove_cache(root, entry, k_store_deadline); !removed) {
      context.console.error(removed.error());
      code = k_exit_partly;
    }
  return code;
}

} // namespace

extern const CommandSpec k_cache_list_command = {
    .name = "cache list",
    .summary = "List the node-local caches of `sharefs run`",
    .description = "Your caches on this host: which shared path each stands for, its size, when it was last used, and "
                   "whether a live process uses it.",
    .example = "sharefs cache list",
    .effect = Effect::reads,
    .run = cache_list,
};

extern const CommandSpec k_cache_prune_command = {
    .name = "cache prune",
    .summary = "Delete node-local caches that were not used for long",
    .description = "Deletes your caches on this host by age and size, never one that a live process uses. Nothing on "
                   "shared storage is touched: a job that needs a deleted cache builds it again.",
    .example = "sharefs cache prune --older-than 14 --yes\n"
               "sharefs cache prune --older-than 0 --keep-size 200G --dry-run",
    .effect = Effect::reads, // not a plan: what it deletes is rebuilt by itself and cannot be undone
    .options =
        {{.names = "--older-than", .value = "DAYS", .help = "only those not used for so many days", .fallback = "30"},
         {.names = "--keep-size", .value = "SIZE", .help = "the longest unused first, until so much is left"},
         {.names = "--dry-run", .help = "show what would be deleted"},
         {.names = "--check", .help = "delete nothing; exit code 3 if there is something to delete"},
         {.names = "-y,--yes", .help = "do not ask"}},
    .run = cache_prune,
};

} // namespace sharefs::cli
