// sharefs cache list, prune and place: show and delete the node-local caches of `sharefs run`.
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "base/visible.hpp"
#include "cachefix/store/cache_store.hpp"
#include "cachefix/store/local_root.hpp"
#include "cli/commands/cachefix_choices.hpp"
#include "cli/execute.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <iterator>

namespace sharefs::cli {
namespace {

constexpr std::chrono::milliseconds k_store_deadline{60'000};

/// Returns all caches of this user on this host. Caches that cannot be measured are an error.
Result<std::vector<cachefix::CacheEntry>> list_own_caches(Context& context) {
  TRY_ASSIGN(const auto choices, choices_of(context));
  std::vector<cachefix::CacheEntry> all;
  for (const std::string& root : cachefix::own_directories(context.system, choices.local, context.system.identity())) {
    TRY_ASSIGN(auto entries, cachefix::list_caches(context.system, root, k_store_deadline));
    std::move(entries.begin(), entries.end(), std::back_inserter(all));
  }
  return all;
}

std::int64_t seconds_now(Context& context) {
  return std::chrono::duration_cast<std::chrono::seconds>(context.system.now().time_since_epoch()).count();
}

Result<int> cache_list(Context& context, const Arguments&) {
  TRY_ASSIGN(const auto caches, list_own_caches(context));
  ui::Table table({{"CACHE", false, true}, {"STANDS FOR", false, true}, {"SIZE", true}, {"USED"}, {"STATE"}});
  auto json = Json::array();
  for (const cachefix::CacheEntry& entry : caches) {
    table.add({{to_utf8(entry.path)},
               {entry.stands_for.empty() ? "-" : to_utf8(entry.stands_for)},
               {format_bytes(entry.bytes)},
               {cachefix::age_of(entry, seconds_now(context))},
               {entry.left ? "half deleted" : entry.in_use}});
    json.push_back({{"path", to_utf8(entry.path)},
                    {"stands_for", to_utf8(entry.stands_for)},
                    {"bytes", entry.bytes},
                    {"used", entry.used},
                    {"in_use", !entry.in_use.empty()}});
  }
  context.show(table, "caches", std::move(json), "no caches of `sharefs run` on this host");
  return k_exit_ok;
}

Result<cachefix::PruneRequest> prune_request(const Arguments& arguments) {
  cachefix::PruneRequest request;
  auto text = arguments.value("older-than").value_or("");
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos)
    text += "d";
  const auto time = parse_duration(text);
  if (!time)
    return not_understood("older-than", text, "a number of days, or with a unit: 14, 12h, 30d");
  request.older_than = *time / 1000;
  if (const auto keep = arguments.value("keep-size")) {
    request.keep = parse_size(*keep);
    if (!request.keep)
      return not_understood("keep-size", *keep, "a size: 500M, 10G, 1T");
  }
  return request;
}

Result<int> cache_prune(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto request, prune_request(arguments));
  std::optional<std::vector<cachefix::CacheEntry>> caches;
  const auto now = seconds_now(context);
  const auto propose = [&]() -> Result<Proposal> {
    if (caches) { // the plan is made again after the question: a job may have begun meanwhile
      cachefix::note_uses(context.system, *caches);
    } else {
      TRY_ASSIGN(caches, list_own_caches(context));
    }
    return Proposal{cachefix::plan_prune(*caches, request, now), "nothing to delete", true};
  };
  return execute(context, propose).map(&Executed::exit_code);
}

Result<int> cache_place(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto choices, choices_of(context));
  const config::Caches& caches = choices.caches;
  const std::string path = normalize_path(arguments.positional.front(), context.host.working_directory);
  const auto place = caches.guard == "off" ? cachefix::CachePlace{.reason = "caches.guard is off"}
                                           : cachefix::place_of(context.system, path, choices.local);
  context.envelope.fields = {{"place", place.place},
                             {"directory", to_utf8(place.directory)},
                             {"reason", to_utf8(place.reason)},
                             {"shared", place.shared},
                             {"excludes", place.excludes},
                             {"build", caches.build},
                             {"when", caches.when},
                             {"keep", cachefix::kept_variables(choices.rules.user)}};
  const std::string where = place.place == "local"    ? "in " + place.directory
                            : place.place == "unique" ? "there, under a name of its own"
                                                      : "there";
  context.console.print(visible(path + ": built " + where + ": " + place.reason) + "\n");
  return k_exit_ok;
}

} // namespace

extern const CommandSpec k_cache_place_command{
    .name = "cache place",
    .summary = "Say where on this node a shared cache is built, and make that directory",
    .description = "What the guard of `sharefs run` asks for a cache on shared storage: `local` is a directory on this "
                   "node's own disk, which is made (mode 0700); `unique` is the share itself, under a name of its own, "
                   "where no disk of this node can be used; `leave` is what is not shared.",
    .example = "sharefs cache place /data/share/cache\n"
               "sharefs cache place /data/share/cache --json",
    .positional = {.name = "PATH", .help = "the cache", .min = 1, .max = 1},
    .run = cache_place,
};

extern const CommandSpec k_cache_list_command{
    .name = "cache list",
    .summary = "List the node-local caches of `sharefs run`",
    .description = "Your caches on this host: which shared path each stands for, its size, when it was last used, and "
                   "whether a live process uses it.",
    .example = "sharefs cache list",
    .on_nodes = true,
    .run = cache_list,
};

extern const CommandSpec k_cache_prune_command{
    .name = "cache prune",
    .summary = "Delete node-local caches that were not used for long",
    .description = "Deletes your caches on this host by age and size, never one that a live process uses. Nothing on "
                   "shared storage is touched: a job that needs a deleted cache builds it again. Cannot be undone.",
    .example = "sharefs cache prune --older-than 14 --yes\n"
               "sharefs cache prune --older-than 0 --keep-size 200G --dry-run",
    .changes = true,
    .options = {{.names = "--older-than",
                 .value = "TIME",
                 .help = "only those not used for so long; a number is days",
                 .fallback = "30d"},
                {.names = "--keep-size", .value = "SIZE", .help = "the longest unused first, until so much is left"}},
    .on_nodes = true,
    .run = cache_prune,
};

} // namespace sharefs::cli
