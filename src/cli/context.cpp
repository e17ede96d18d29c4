#include "cli/context.hpp"

#include "base/path.hpp"
#include "config/load.hpp"
#include "sys/process/process.hpp"

#include <chrono>

namespace sharefs::cli {

namespace {

constexpr const char* k_default_config = "/etc/sharefs/sharefs.yaml";
constexpr std::size_t k_config_limit = 1U << 20U;

/// A file that is missing or not to be trusted is a matter of configuration (exit 2), not of the work.
Result<const config::Config*> as_configuration_error(Result<const config::Config*> loaded) {
  if (!loaded && loaded.error().code != ErrorCode::timeout)
    loaded.error().code = ErrorCode::config;
  return loaded;
}

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
  std::string given = flags.config;
  if (given.empty())
    given = environment("SHAREFS_CONFIG").value_or("");
  return given.empty() ? k_default_config : normalize_path(given, host.working_directory);
}

Result<const config::Config*> Context::load() {
  if (m_config)
    return &*m_config;
  const auto path = config_path();
  const auto& files = system.files();
  const bool is_default = path == k_default_config;
  const auto missing = [&] {
    return fail(ErrorCode::not_found, "there is no " + path,
                "run `sharefs init` to make one, or name it with --config FILE");
  };
  if (is_default) { // the usual case of `sharefs run`: found out before anything dearer is asked
    const auto info = files.info(path);
    if (info && !*info)
      return missing();
  }
  const auto euid = system.identity().uid;
  // A file that the user named may lie on a dead mount: read it in a child. The child hands back the text only after it
  // has judged owner and mode of the very file that it opened.
  const auto load = [&]() -> Result<std::string> {
    auto opened = files.read_with_info(path, k_config_limit);
    if (!opened)
      return fail(opened.error());
    if (auto trusted = config::check_trust(path, opened->info.uid, opened->info.mode, euid); !trusted)
      return fail(trusted.error());
    return std::move(opened->content);
  };
  auto text = is_default ? load() : sys::in_child(std::nullopt, std::chrono::seconds(5), load);
  if (!text && text.error().code == ErrorCode::not_found)
    return missing();
  if (!text && text.error().code == ErrorCode::timeout)
    return fail(ErrorCode::timeout, "reading " + path + " did not end within 5 s",
                "it may lie on a dead mount: run `sharefs status`");
  if (!text)
    return fail(text.error());
  auto parsed = config::parse(*text, path);
  if (!parsed)
    return fail(parsed.error());
  m_config = std::move(*parsed);
  return &*m_config;
}

Result<const config::Config*> Context::config() {
  return as_configuration_error(load());
}

Result<const config::Config*> Context::config_if_any() {
  auto loaded = load();
  const bool named = !flags.config.empty() || environment("SHAREFS_CONFIG").has_value();
  if (!loaded && loaded.error().code == ErrorCode::not_found && !named)
    return nullptr;
  return as_configuration_error(std::move(loaded));
}

void Context::report(const Diagnoses& diagnoses) {
  envelope.diagnoses.insert(envelope.diagnoses.end(), diagnoses.begin(), diagnoses.end());
  if (!flags.json)
    console.diagnoses(diagnoses);
}

} // namespace sharefs::cli
