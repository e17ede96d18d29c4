// sharefs conda list: every environment of the store and of the homes.
#include "cli/commands/conda_list.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/conda_names.hpp"
#include "cli/commands/conda_support.hpp"
#include "cli/exit_code.hpp"
#include "cli/tree_progress.hpp"
#include "tree/tree.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sharefs::cli {

namespace {

using namespace std::chrono_literals;
using conda::Availability;
using conda::ListedEnvironment;

/// Those that have ended without a word are no jobs.
std::vector<conda::Job> jobs_now(const ListedEnvironment& row) {
  auto jobs = row.jobs;
  std::erase_if(jobs, [](const conda::Job& job) { return job.runs == false; });
  return jobs;
}

std::string jobs_text(const ListedEnvironment& row) {
  constexpr std::size_t k_named = 3;
  std::vector<std::string> words;
  const auto jobs = jobs_now(row);
  for (const auto& job : jobs)
    if (words.size() < k_named)
      words.push_back(fmt::format("{}:{}{}", job.host, job.pid, job.runs ? "" : "?"));
  if (jobs.size() > k_named)
    words.push_back(fmt::format("{} more", jobs.size() - k_named));
  return join(words, ", ");
}

std::string state_text(const ListedEnvironment& row) {
  std::string text = to_string(row.availability);
  if (!row.detail.empty())
    text = row.availability == Availability::good ? row.detail : text + ": " + row.detail;
  if (row.holder)
    text += ", changed by " + row.holder->text();
  return text;
}

/// A user's home, or the store, or an installation for all of this host.
std::string place_of(const ListedEnvironment& row, const std::string& store) {
  return !row.user.empty() ? row.user : is_under(row.path, store) ? "store" : "host";
}

void show_environments(Context& context, const std::vector<ListedEnvironment>& rows, const std::string& store) {
  ui::Table table({{.name = "ENV"},
                   {.name = "IN"},
                   {.name = "GENERATION"},
                   {.name = "SIZE", .right = true},
                   {.name = "FILES", .right = true},
                   {.name = "PYTHON"},
                   {.name = "LINKED BY", .truncate = true},
                   {.name = "JOBS", .truncate = true},
                   {.name = "PROTECTED"},
                   {.name = "VERIFIED"},
                   {.name = "STATE", .truncate = true}});
  for (const auto& row : rows) {
    const bool good = row.availability == Availability::good;
    std::vector<ui::Cell> cells;
    for (auto& text :
         {row.name.empty() ? std::string("-") : row.name, place_of(row, store),
          row.generation == 0 ? std::string() : fmt::format("{} ({} kept)", row.generation, row.generations),
          row.bytes ? format_bytes(*row.bytes) : std::string(), row.files ? std::to_string(*row.files) : std::string(),
          row.python, join(row.linked_by, ", "), jobs_text(row), std::string(row.is_protected ? "yes" : ""),
          row.verified == 0 ? std::string() : format_time(row.verified), state_text(row)})
      cells.push_back({text});
    cells.back().colour = good ? ui::Colour::none : ui::Colour::red;
    table.add(std::move(cells));
  }
  context.console.show(table);
}

nlohmann::ordered_json rows_json(const std::vector<ListedEnvironment>& rows) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    auto jobs = nlohmann::ordered_json::array();
    for (const auto& job : row.jobs)
      jobs.push_back({{"host", to_utf8(job.host)},
                      {"pid", job.pid},
                      {"generation", job.generation},
                      {"pinned", job.pinned},
                      {"runs", job.runs ? nlohmann::ordered_json(*job.runs) : nlohmann::ordered_json()}});
    const auto number = [](const auto& value) {
      return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
    };
    nlohmann::ordered_json one{{"name", to_utf8(row.name)},      {"user", to_utf8(row.user)},
                               {"path", to_utf8(row.path)},      {"state", to_string(row.availability)},
                               {"detail", to_utf8(row.detail)},  {"generation", row.generation},
                               {"generations", row.generations}, {"bytes", number(row.bytes)},
                               {"files", number(row.files)},     {"python", to_utf8(row.python)},
                               {"linked_by", row.linked_by},     {"jobs", std::move(jobs)},
                               {"protected", row.is_protected},  {"verified", row.verified}};
    one["changed_by"] = row.holder ? nlohmann::ordered_json(row.holder->text()) : nlohmann::ordered_json();
    all.push_back(std::move(one));
  }
  return all;
}

Result<conda::InventoryRequest> inventory_request(Context& context, const std::string& only) {
  const auto config = context.config_if_any();
  if (!config)
    return fail(config.error());
  conda::InventoryRequest request;
  request.only = only;
  const auto self = context.system.identity();
  std::vector<std::string> names{self.user};
  if (*config != nullptr && (*config)->conda) {
    request.store = (*config)->conda->store;
    request.shares = shares_of(context.system, **config, request.store);
    request.homes = homes_of(*(*config)->conda, self);
    if (auto users = (*config)->conda->users(); self.uid == 0 && !users.empty())
      names = std::move(users);
  }
  for (const auto& name : names)
    if (auto user = context.system.user(name))
      request.users.push_back(std::move(*user));
    else
      context.console.warning(fmt::format("user `{}`: {}", name, user.error().message), user.error().hint);
  return request;
}

Diagnoses diagnose_unpinned(const std::vector<ListedEnvironment>& rows) {
  Diagnoses found;
  for (const auto& row : rows) {
    const auto unpinned = static_cast<std::size_t>(std::ranges::count(row.jobs, false, &conda::Job::pinned));
    if (unpinned > 0)
      found.push_back({Severity::warning, "SF320", row.path,
                       "an update would change what is imported by " + count_of(unpinned, "program") +
                           " of it that `sharefs conda run` did not start",
                       "start them with `sharefs conda run " + shell_quote(row.name) + " -- CMD`", ""});
  }
  return found;
}

constexpr std::chrono::seconds k_counting{10}; ///< from then on no other environment is counted
constexpr std::chrono::seconds k_no_progress{5};

/// The files of those that are not made of generations, as the users whose they are. How many were left.
std::size_t count_files(Context& context, CondaListing& listing, bool all) {
  const auto until = sys::deadline_in(k_counting);
  std::size_t left = 0;
  for (auto& row : listing.environments) {
    if (row.bytes || row.name.empty() || row.generations > 0 || row.availability != Availability::good)
      continue;
    if (!all && sys::Clock::now() >= until) {
      ++left;
      continue;
    }
    TreeProgress progress(context, "counting " + row.path);
    tree::Options options;
    options.deadline = k_no_progress;
    tree::Place place{.path = row.path, .root = context.system.files().root()};
    if (row.user.empty() && is_under(row.path, listing.store)) {
      options.as = listing.by;
    } else if (!row.user.empty()) {
      const auto user = std::ranges::find(listing.users, row.user, &sys::User::name);
      if (user == listing.users.end())
        continue; // not as root in somebody's home
      place.beneath = user->home;
      options.as = *user;
    }
    const auto measured = tree::measure(place, options, progress.on());
    if (measured && measured->unread == 0) {
      row.bytes = measured->bytes;
      row.files = measured->files;
    }
  }
  return left;
}

Result<int> list_environments(Context& context, const Arguments& arguments) {
  const auto only = arguments.positional.empty() ? std::string() : arguments.positional.front();
  auto listing = read_conda_listing(context, only);
  if (!listing)
    return fail(listing.error());
  say_read_by(context, listing->store, listing->by);
  if (listing->denied)
    context.console.error(nobody_may(context, listing->store));
  const auto uncounted = count_files(context, *listing, !only.empty());
  const auto& rows = listing->environments;
  for (const auto& row : rows)
    clear_uses(context, listing->store, row.name, row.ended);
  context.envelope.fields["store"] = to_utf8(listing->store);
  context.envelope.fields["environments"] = rows_json(rows);
  if (!rows.empty())
    show_environments(context, rows, listing->store);
  context.report(listing->found);
  if (uncounted > 0)
    context.console.message(fmt::format("{} not counted within {}: `sharefs conda list ENV` counts those of one name",
                                        count_of(uncounted, "environment"), format_duration(k_counting / 1us)));
  if (rows.empty() && !only.empty())
    return fail(ErrorCode::not_found, fmt::format("there is no environment `{}`", only),
                "`sharefs conda list` shows all of them");
  if (rows.empty())
    context.console.message("there is no environment");
  const auto good =
      static_cast<std::size_t>(std::ranges::count(rows, Availability::good, &ListedEnvironment::availability));
  return exit_code_for(good, rows.size() - good + listing->problems);
}

} // namespace

Result<CondaListing> read_conda_listing(Context& context, const std::string& only) {
  const auto request = inventory_request(context, only);
  if (!request)
    return fail(request.error());
  auto inventory = conda::probe_inventory(context.system, *request);
  if (!inventory)
    return fail(inventory.error());
  CondaListing listing{request->store,
                       std::move(inventory->environments),
                       request->users,
                       std::move(inventory->by),
                       inventory->denied,
                       std::move(inventory->found),
                       0};
  listing.problems = listing.found.size();
  std::ranges::move(diagnose_unpinned(listing.environments), std::back_inserter(listing.found));
  return listing;
}

extern const CommandSpec k_conda_list_command{
    .name = "conda list",
    .summary = "List the environments of the store and of the homes",
    .description =
        "One row for each environment: its present generation, size, Python, the users whose homes link to it, and the "
        "jobs that work with it now: of this host, and those that `sharefs conda run` has noted on others (with `?`: "
        "only their hosts know whether they still run). VERIFIED is when the present generation was last compared "
        "with conda's records, file by file, and found good; empty: that is not known. The "
        "sizes of generations were noted when they were made; those of other environments are counted, for ten seconds "
        "or, with ENV, all of them. A share that is not mounted, a server that does not answer and a link that leads "
        "nowhere are told apart, and never waited for. Exits with 4 if some are not good.",
    .example = "sharefs conda list\n"
               "sharefs conda list llm_train --json",
    .effect = Effect::reads,
    .positional = {.name = "ENV", .help = "only environments of this name", .max = 1},
    .run = list_environments,
};

} // namespace sharefs::cli
