// sharefs export check: what exportfs would make of exports files, and what it would silently lose.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/export_support.hpp"
#include "cli/exit_code.hpp"
#include "exports/diagnose.hpp"
#include "exports/host.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <optional>

namespace sharefs::cli {

namespace {

constexpr std::size_t k_file_limit = 16U << 20U;
constexpr std::chrono::milliseconds k_read_deadline{5000};

/// A file that the user names may lie on a dead mount: read in a child.
Result<std::string> read_named(Context& context, const std::string& word) {
  if (word == "-")
    return std::string(std::istreambuf_iterator<char>(context.host.in), {});
  const auto fact = context.system.entry(
      {.path = join_path(context.host.working_directory, word), .follow = true, .read_bytes = k_file_limit},
      k_read_deadline);
  if (fact.kind == sys::EntryKind::missing)
    return fail(ErrorCode::not_found, fmt::format("there is no file {}", word));
  if (fact.error_number != 0)
    return fail(errno_error(fact.error_number, word));
  if (fact.kind != sys::EntryKind::file)
    return fail(ErrorCode::usage, fmt::format("{} is no file", word));
  if (fact.size > k_file_limit)
    return fail(ErrorCode::failed, fmt::format("{} is larger than {}", word, format_bytes(k_file_limit)));
  return fact.content;
}

Result<exports::HostFiles> read_files(Context& context, const std::vector<std::string>& words) {
  if (words.empty())
    return exports::read_host_files(context.system.files());
  exports::HostFiles host;
  for (const auto& word : words) {
    const auto text = read_named(context, word);
    if (!text)
      return fail(text.error());
    host.files.push_back(exports::parse(*text, word == "-" ? "<stdin>" : word));
  }
  return host;
}

/// "192.168.16.0-192.168.19.255 (1,024)" for networks; what is left to be said of others.
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
  for (std::size_t number = 0; number < host.files.size(); ++number)
    for (const auto* list : {&host.files[number].exports, &host.files[number].lost})
      for (std::size_t i = 0; i < list->size(); ++i) {
        const auto& entry = (*list)[i];
        const bool lost = list == &host.files[number].lost || !expected.positions[number][i];
        table.add({{entry.directory},
                   {entry.client},
                   {meaning_of(entry.client)},
                   {lost ? "not exported" : summary(entry.settings), lost ? ui::Colour::red : ui::Colour::none},
                   {entry.origin.text()}});
      }
  return table;
}

/// "exported", and then the line of etab, flavour by flavour.
void add_etab(const exports::ExpectedEtab& expected, const std::optional<std::size_t>& position,
              nlohmann::ordered_json& json) {
  json["exported"] = position.has_value();
  if (!position)
    return;
  const auto& entry = expected.entries[*position];
  auto flavours = nlohmann::ordered_json::array();
  for (const auto& flavour : entry.settings.security)
    flavours.push_back({{"sec", flavour.name}, {"options", to_utf8(effective(entry.settings, flavour))}});
  json["etab"] = {
      {"directory", to_utf8(entry.directory)}, {"client", to_utf8(entry.client)}, {"flavours", std::move(flavours)}};
}

nlohmann::ordered_json files_json(const exports::HostFiles& host, const exports::ExpectedEtab& expected) {
  auto files = nlohmann::ordered_json::array();
  for (std::size_t number = 0; number < host.files.size(); ++number) {
    const auto& file = host.files[number];
    auto exports = to_json(file.exports);
    for (std::size_t i = 0; i < exports.size(); ++i)
      add_etab(expected, expected.positions[number][i], exports[i]);
    files.push_back({{"file", to_utf8(file.name)},
                     {"complete", file.complete && !expected.stopped.contains(file.name)},
                     {"exports", std::move(exports)},
                     {"lost", to_json(file.lost)}});
  }
  return files;
}

Result<int> run_export_check(Context& context, const Arguments& arguments) {
  const auto& words = arguments.positional;
  const auto host = read_files(context, words);
  if (!host)
    return fail(host.error());
  if (host->files.empty() && host->diagnoses.empty()) {
    context.console.message("there is neither /etc/exports nor a file in /etc/exports.d: nothing to check");
    return k_exit_ok;
  }
  exports::HostFacts facts;
  if (words.empty() || arguments.flag("host")) {
    const ui::Console::Progress progress(context.console, "looking up directories and names");
    auto probed = exports::probe_facts(context.system, host->files);
    if (!probed)
      return fail(probed.error());
    facts = std::move(*probed);
  }
  const auto expected = exports::expected_etab(host->files, facts);
  auto found = exports::diagnose(host->files, expected, facts);
  found.insert(found.end(), host->diagnoses.begin(), host->diagnoses.end());
  if (context.flags.json) // ten thousand lines are felt
    context.envelope.fields["files"] = files_json(*host, expected);
  context.console.show(table_of(*host, expected));
  context.report(found);
  const auto of = [&](Severity severity) {
    return static_cast<std::size_t>(
        std::count_if(found.begin(), found.end(), [&](const Diagnosis& one) { return one.severity == severity; }));
  };
  context.console.message(fmt::format("{} in {}: {}, {}", count_of(exports::count_directories(expected.entries), "export"),
                                      count_of(host->files.size(), "file"), count_of(of(Severity::error), "error"),
                                      count_of(of(Severity::warning), "warning")));
  return has_errors(found) ? k_exit_failed : k_exit_ok;
}

} // namespace

extern const CommandSpec k_export_check_command{
    .name = "export check",
    .summary = "Say what exportfs makes of exports files",
    .description = "Reads exports(5) files exactly as exportfs does and tells, with line and column, what they really "
                   "mean and what exportfs drops without a word: spaces before `(`, networks with host bits, unknown "
                   "options, duplicates. Without FILE: /etc/exports and /etc/exports.d/*.exports, checked against this "
                   "host's directories, file systems and names. Needs no sharefs.yaml. Exits with 1 if there are "
                   "errors; warnings are allowed.",
    .example = "sharefs export check\n"
               "sharefs export check new.exports --json\n"
               "echo '/mnt 192.168.16.11/22(rw)' | sharefs export check -",
    .effect = Effect::reads,
    .positional = {.name = "FILE",
                   .help = "Exports files in the order in which exportfs reads them; - is stdin",
                   .min = 0,
                   .max = 0},
    .options = {{.names = "--host", .help = "Check named files against this host too"}},
    .run = run_export_check,
};

} // namespace sharefs::cli
