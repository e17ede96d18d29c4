// sharefs export check: reports what exportfs would make of exports files, and what it would silently drop.
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/export/support.hpp"
#include "exports/export_flow.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace sharefs::cli {

namespace {

/// Describes a client: "192.168.16.0-192.168.19.255 (1,024)" for a network, its kind for others.
std::string meaning_of(const std::string& client) {
  using exports::ClientKind;
  const auto kind = exports::kind_of(client);
  if (kind == ClientKind::everyone)
    return "everyone";
  if (kind == ClientKind::host && !exports::canonical_address(client).empty())
    return "address";
  if (kind != ClientKind::network)
    return exports::to_string(kind);
  const auto network = exports::parse_network(client);
  if (!network || !network->contiguous())
    return network ? "network" : "-";
  return fmt::format("{}-{} ({})", network->first(), network->last(), network->count());
}

ui::Table table_of(const exports::HostFiles& host, const exports::ExpectedEtab& expected) {
  ui::Table table({{"DIRECTORY"}, {"CLIENT"}, {"WHO"}, {"OPTIONS", false, true}, {"FROM", false, true}});
  for (std::size_t number = 0; number < host.files.size(); ++number) {
    auto outcome = expected.outcomes[number].begin();
    for (const auto& entry : host.files[number].exports) {
      const bool lost = !(outcome++)->exported();
      table.add({{entry.directory},
                 {entry.client},
                 {meaning_of(entry.client)},
                 {lost ? "not exported" : summary(entry.settings), lost ? ui::Colour::red : ui::Colour::none},
                 {entry.origin.text()}});
    }
  }
  return table;
}

/// Adds "exported" and the line of etab, flavour by flavour.
void add_etab(const exports::ExpectedEtab& expected, const exports::Outcome& outcome, Json& json) {
  json["exported"] = outcome.exported();
  if (!outcome.exported())
    return;
  const auto& entry = expected.entries[*outcome.position];
  auto flavours = Json::array();
  for (const auto& flavour : entry.settings.security)
    flavours.push_back({{"sec", flavour.name}, {"options", to_utf8(effective(entry.settings, flavour))}});
  json["etab"] = {
      {"directory", to_utf8(entry.directory)}, {"client", to_utf8(entry.client)}, {"flavours", std::move(flavours)}};
}

/// Lists the entries of `file` that were exported, and those that were lost behind an error; exportfs decides which.
Json file_json(const exports::ExportsFile& file, std::size_t number, const exports::ExpectedEtab& expected) {
  const auto& outcomes = expected.outcomes[number];
  auto taken = Json::array();
  auto lost = Json::array();
  auto all = to_json(file.exports);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool behind = i >= file.taken && !outcomes[i].exported();
    if (!behind)
      add_etab(expected, outcomes[i], all[i]);
    (behind ? lost : taken).push_back(std::move(all[i]));
  }
  return {
      {"file", to_utf8(file.name)},
      {"complete", file.complete && std::ranges::count(expected.complaints, number, &exports::Complaint::file) == 0},
      {"exports", std::move(taken)},
      {"lost", std::move(lost)}};
}

Result<int> run_export_check(Context& context, const Arguments& arguments) {
  exports::CheckRequest request{arguments.positional, context.host.working_directory, {}, arguments.flag("host")};
  if (std::ranges::count(request.names, "-") > 0)
    request.standard_input.assign(std::istreambuf_iterator<char>(context.host.in), {});
  TRY_ASSIGN(const auto checked, exports::check(context.system, request, say_to(context)));
  const auto& [host, expected, found] = checked;
  if (host.files.empty() && host.diagnoses.empty()) {
    context.console.message("there is neither /etc/exports nor a file in /etc/exports.d: nothing to check");
    return k_exit_ok;
  }
  if (context.flags.json) { // the text of ten thousand lines takes noticeable time
    auto& files = context.envelope.fields["files"] = Json::array();
    for (std::size_t number = 0; number < host.files.size(); ++number)
      files.push_back(file_json(host.files[number], number, expected));
  }
  context.console.show(table_of(host, expected));
  context.report(found);
  context.console.message(
      fmt::format("{} in {}: {}, {}", count_of(exports::count_directories(expected.entries), "export"),
                  count_of(host.files.size(), "file"), count_of(count(found, Severity::error), "error"),
                  count_of(count(found, Severity::warning), "warning")));
  return has_errors(found) ? k_exit_failed : k_exit_ok;
}

} // namespace

extern const CommandSpec k_export_check_command{
    .name = "export check",
    .summary = "Say what exportfs makes of exports files",
    .description =
        "Runs exportfs on exports(5) files in namespaces of its own, where it changes nothing, and tells, with "
        "line and column, what it exports and what it drops without a word: spaces before `(`, networks with "
        "host bits, unknown options, duplicates. Where it cannot be asked, only what is certain from the text "
        "is said, and that it is only that. Without FILE: /etc/exports and /etc/exports.d/*.exports, checked "
        "against this host's directories, file systems and names. Needs no sharefs.yaml. Exits with 1 if "
        "there are errors; warnings are allowed.",
    .example = "sharefs export check\n"
               "sharefs export check new.exports --json\n"
               "echo '/mnt 192.168.16.11/22(rw)' | sharefs export check -",
    .positional = {.name = "FILE", .help = "Exports files in the order in which exportfs reads them; - is stdin"},
    .options = {{.names = "--host", .help = "Check named files against this host too"}},
    .run = run_export_check,
};

} // namespace sharefs::cli
