// sharefs conda list: every environment of the store.
#include "base/json_fields.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/support.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

using conda::Availability;
using conda::ListedEnvironment;

/// Names the jobs, without those that are known to have ended.
std::string jobs_text(const ListedEnvironment& row) {
  constexpr std::size_t k_named = 3;
  std::vector<std::string> words;
  auto jobs = row.jobs;
  std::erase_if(jobs, [](const conda::Job& job) { return job.runs == false; });
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
    text += ": " + row.detail;
  if (row.holder)
    text += ", changed by " + row.holder->text();
  return text;
}

void show_environments(Context& context, const std::vector<ListedEnvironment>& rows) {
  ui::Table table({{.name = "ENV"},
                   {.name = "GENERATION"},
                   {.name = "SIZE", .right = true},
                   {.name = "FILES", .right = true},
                   {.name = "IMAGE", .right = true},
                   {.name = "PYTHON"},
                   {.name = "LINKED BY", .truncate = true},
                   {.name = "JOBS", .truncate = true},
                   {.name = "PROTECTED"},
                   {.name = "GUARD"},
                   {.name = "VERIFIED"},
                   {.name = "STATE", .truncate = true}});
  auto json = Json::array();
  for (const auto& row : rows) {
    const bool good = row.availability == Availability::good;
    table.add({{row.name.empty() ? "-" : row.name},
               {row.generation == 0 ? "" : fmt::format("{} ({} kept)", row.generation, row.generations)},
               {row.bytes ? format_bytes(*row.bytes) : ""},
               {row.files ? std::to_string(*row.files) : ""},
               {row.image_bytes ? format_bytes(*row.image_bytes) : ""},
               {row.python},
               {join(row.linked_by, ", ")},
               {jobs_text(row)},
               {row.is_protected ? "yes" : ""},
               {row.has_guard ? "yes" : ""},
               {row.verified == 0 ? "" : format_time(row.verified)},
               {state_text(row), good ? ui::Colour::none : ui::Colour::red}});
    auto& one = json.emplace_back(json_of(row));
    one["user"] = "";
    one["changed_by"] = row.holder ? Json(row.holder->text()) : Json();
  }
  context.show(table, "environments", std::move(json));
}

Result<int> list_environments(Context& context, const Arguments& arguments) {
  const auto only = arguments.positional.empty() ? std::string() : arguments.positional.front();
  TRY_ASSIGN(const auto found, read_inventory(context, only));
  report_reader(context, found.store, found.by);
  if (found.denied)
    context.console.error(nobody_may(context, found.store));
  const auto& rows = found.environments;
  context.envelope.fields["store"] = to_utf8(found.store);
  show_environments(context, rows);
  context.report(found.found);
  if (rows.empty() && !only.empty())
    return fail(ErrorCode::not_found, fmt::format("there is no environment `{}`", only),
                "`sharefs conda list` shows all of them");
  if (rows.empty())
    context.console.message("there is no environment");
  const auto good =
      static_cast<std::size_t>(std::ranges::count(rows, Availability::good, &ListedEnvironment::availability));
  return exit_code_for(good, rows.size() - good + found.problems);
}

} // namespace

Result<conda::Inventory> read_inventory(Context& context, const std::string& only) {
  TRY_ASSIGN(const auto section, conda_section(context));
  conda::LinkRequest request;
  request.store = section->store;
  if (!only.empty())
    request.environments = {only};
  request.homes = homes_of(*section, context.system.identity());
  request.shares = shares_of(context.system, **context.config(), request.store);
  return conda::probe_inventory(context.system, request);
}

extern const CommandSpec k_conda_list_command{
    .name = "conda list",
    .summary = "List the environments of the store",
    .description =
        "One row for each environment: its present generation, size, Python, the users whose homes link to it, and the "
        "jobs that work with it now: of this host, and those that `sharefs conda run` has noted on others (with `?`: "
        "only their hosts know whether they still run). VERIFIED is when the present generation was last compared with "
        "conda's records, file by file, and found good; empty: that is not known. GUARD: its Python programs end the "
        "dataset cache race without `sharefs run` (`caches.guard: always`). SIZE was noted when the generation was "
        "made. A share that is not mounted, a server that does not answer and a link that leads nowhere are told "
        "apart, and never waited for. Exits with 4 if some are not good.",
    .example = "sharefs conda list\n"
               "sharefs conda list llm_train --json",
    .positional = {.name = "ENV", .help = "only environments of this name", .max = 1},
    .on_nodes = true,
    .run = list_environments,
};

} // namespace sharefs::cli
