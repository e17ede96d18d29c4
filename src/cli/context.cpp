#include "cli/context.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "config/load.hpp"
#include "ui/table.hpp"

#include <fmt/format.h>
#include <ostream>
#include <utility>

namespace sharefs::cli {

namespace {

/// The read limit is higher than the limit of config::check, which reports a file that is too large.
constexpr std::size_t k_config_limit = 16U << 20U;

} // namespace

Context::Context(Host& given_host, sys::System& given_system, ui::Console& given_console, GlobalFlags given_flags,
                 Argv given_argv)
    : system(given_system), console(given_console), flags(std::move(given_flags)), argv(std::move(given_argv)),
      host(given_host) {}

std::optional<std::string> Context::environment(std::string_view name) const {
  for (const auto& entry : host.environment)
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  return std::nullopt;
}

std::string Context::config_path() const {
  const auto given = flags.config.empty() ? environment("SHAREFS_CONFIG").value_or("") : flags.config;
  return given.empty() ? k_default_config : normalize_path(given, host.working_directory);
}

const Result<config::Config>& Context::load() {
  if (m_config)
    return *m_config;
  const auto path = config_path();
  const auto& given = host.inherited.config;
  auto text = given ? Result<std::string>(*given) : system.files().read_trusted(path, k_config_limit);
  if (text)
    m_config = config::parse(m_config_text = std::move(*text), path);
  else if (text.error().code == ErrorCode::not_found)
    m_config = fail(ErrorCode::not_found, "there is no " + path,
                    "run `sharefs init` to make one, or name it with --config FILE");
  else {
    auto error = text.error();
    if (error.code == ErrorCode::permission && error.hint.empty())
      error.hint = fmt::format("every user of sharefs reads it: run `chmod a+r {}` as root", shell_quote(path));
    m_config = fail(std::move(error));
  }
  return *m_config;
}

Result<const config::Config*> Context::config() {
  const auto& loaded = load();
  if (loaded)
    return &*loaded;
  auto error = loaded.error();
  if (error.code != ErrorCode::timeout) // a file that is missing or cannot be trusted is a configuration error
    error.code = ErrorCode::config;
  return fail(std::move(error));
}

Result<const config::Config*> Context::config_if_any(Unreadable unreadable) {
  const auto& loaded = load();
  if (loaded || loaded.error().code == ErrorCode::config) // a file that could be read counts, also if it is wrong
    return config();
  const bool missing = loaded.error().code == ErrorCode::not_found;
  if (missing && config_path() == k_default_config)
    return nullptr;
  if (unreadable == Unreadable::fails || (missing && !flags.config.empty())) {
    m_warned = true; // the error reports it
    return config();
  }
  if (!std::exchange(m_warned, true))
    console.warning("going on without the configuration: " + loaded.error().message, "");
  return nullptr;
}

void Context::report(const Diagnoses& diagnoses) {
  Diagnoses fresh;
  for (const auto& one : diagnoses)
    if (m_reported.insert(one).second)
      fresh.push_back(one);
  fresh = add_config(*this, std::move(fresh));
  envelope.diagnoses.insert(envelope.diagnoses.end(), fresh.begin(), fresh.end());
  if (!flags.json)
    console.diagnoses(fresh);
}

void Context::message_once(const std::string& text) {
  if (m_said.insert(text).second)
    console.message(text);
}

std::string undo_command(const Context& context, const std::string& id) {
  const auto& root = context.flags.root;
  const bool is_worker =
      context.host.inherited.is_worker; // root reads the text, but the entry is not in root's journal
  return (is_worker ? "sudo -u " + shell_quote(context.system.identity().user) + " " : "") + "sharefs " +
         (root == "/" ? "" : "--root " + shell_quote(root) + " ") + "undo " + id;
}

void Context::show(const ui::Table& table, const char* name, Json rows, std::string_view nothing) {
  envelope.fields[name] = std::move(rows);
  console.show(table);
  if (table.empty())
    console.message(nothing);
}

int exec_command(Context& context, const Argv& command, const std::vector<std::string>& environment) {
  context.host.out.flush();
  context.host.err.flush();
  const Error error = context.system.exec(command, environment);
  context.console.error(error);
  return error.code == ErrorCode::not_found    ? k_exit_not_found
         : error.code == ErrorCode::permission ? k_exit_not_executable
                                               : k_exit_run_failed;
}

Argv with_config(const Context& context, Argv words) {
  if (!context.flags.config.empty())
    words.insert(words.end(), {"--config", context.config_path()});
  return words;
}

std::string add_config(const Context& context, std::string text) {
  const auto path = context.config_path();
  if (path == k_default_config)
    return text;
  constexpr std::string_view k_program = "sharefs ";
  const auto option = "--config " + shell_quote(path) + " ";
  for (auto at = text.find(k_program); at != std::string::npos; at = text.find(k_program, at)) {
    const auto before = std::string_view(text).substr(0, at);
    at += k_program.size();
    const auto end = text.find('`', at);
    const auto words = std::string_view(text).substr(at, end - at);
    const bool is_command = before.ends_with('`') || before.ends_with("`sudo ") || before.ends_with("&& ");
    const bool is_elsewhere = end != std::string::npos && text.compare(end, 5, "` on ") == 0;
    if (is_command && !is_elsewhere && !words.starts_with('-') && words.find("--config") == std::string::npos)
      text.insert(at, option);
  }
  return text;
}

Diagnoses add_config(const Context& context, Diagnoses diagnoses) {
  for (auto& one : diagnoses) {
    one.hint = add_config(context, std::move(one.hint));
    if (!one.fix.empty())
      one.fix = add_config(context, "`" + one.fix).substr(1);
  }
  return diagnoses;
}

Result<void> require_root(const Context& context, const std::string& refusal) {
  if (context.flags.changes_nothing() || context.system.identity().uid == 0)
    return {};
  auto words = context.argv; // sudo passes no $SHAREFS_CONFIG on
  if (context.flags.config.empty() && context.config_path() != k_default_config)
    words.insert(words.begin() + 1, {"--config", context.config_path()});
  return fail(ErrorCode::permission, refusal, "run `sudo " + shell_join(words) + "`");
}

} // namespace sharefs::cli
