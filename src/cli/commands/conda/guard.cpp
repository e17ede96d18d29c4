#include "cli/commands/conda/guard.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cachefix/guard.hpp"

namespace sharefs::cli {
namespace {

/// Reads the files that the wheel's RECORD lists ("sharefs_guard/storage.py,sha256=...,29000").
Result<conda::GuardFiles> read_wheel(const sys::Files& files, const std::string& site_packages) {
  TRY_ASSIGN(const auto names, files.list(site_packages));
  const auto records = conda::guard_records(names);
  if (records.empty())
    return fail(ErrorCode::not_found, site_packages + " has no sharefs_guard");
  TRY_ASSIGN(const auto record, files.read(join_path(site_packages, records.front() + "/RECORD")));
  conda::GuardFiles found;
  for (const auto& row : split_lines(record)) {
    const std::string name(row.substr(0, row.find(',')));
    TRY_ASSIGN(auto text, files.read(join_path(site_packages, name)));
    found.push_back({name, std::move(text)});
  }
  return found;
}

} // namespace

conda::GuardFiles guard_files(Context& context) {
  const auto config = context.config_if_any();
  if (!config || *config == nullptr || (*config)->caches.guard != "always")
    return {};
  const auto program = context.system.entry({.path = "/proc/self/exe"}).link_target;
  Result<conda::GuardFiles> found;
  for (const auto& guard : cachefix::guard_directories(program))
    if (found = read_wheel(context.system.files(), join_path(parent_path(guard), "site-packages")); found)
      return *std::move(found);
  context.console.warning("the environment gets no guard: " + found.error().message);
  return {};
}

} // namespace sharefs::cli
