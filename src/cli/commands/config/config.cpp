// sharefs config show, check, keys: print and check sharefs.yaml as sharefs reads it.
#include "base/argv.hpp"
#include "base/json_fields.hpp"
#include "base/path.hpp"
#include "base/try.hpp"
#include "base/visible.hpp"
#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/on_nodes.hpp"
#include "config/keys.hpp"
#include "config/load.hpp"

#include <fmt/format.h>
#include <iterator>

namespace sharefs::cli {

namespace {

// ---- show ----

Result<int> config_show(Context& context, const Arguments& /*arguments*/) {
  TRY_ASSIGN(const auto loaded, context.config_if_any(Context::Unreadable::fails));
  const bool found = loaded != nullptr;
  const config::Config config = found ? *loaded : config::Config{};
  context.envelope.fields["file"] = found ? Json(config.file) : Json(nullptr);
  context.envelope.fields["config"] = config::to_json(config);
  if (!found && !context.flags.json)
    context.console.message(
        fmt::format("there is no {}: these are the defaults; `sharefs init` writes one", context.config_path()));
  context.console.print(config::to_yaml(config));
  return k_exit_ok;
}

// ---- check ----

/// Returns the errors of a text. Where it can be read, the nodes in it are put together as a command would.
std::vector<Error> check_text(Context& context, const std::string& text, const std::string& file) {
  auto [config, errors] = config::check(text, file);
  if (errors.empty())
    if (const auto nodes = check_nodes(context, config); !nodes)
      errors.push_back(nodes.error());
  return std::move(errors);
}

/// Returns the errors of a file. A file that is not the configuration in force may belong to anybody.
std::vector<Error> check_file(Context& context, const std::string& given) {
  if (given == "-")
    return check_text(context, std::string(std::istreambuf_iterator<char>(context.host.in), {}), "<stdin>");
  const auto path = normalize_path(given, context.host.working_directory);
  const auto& files = context.system.files();
  const bool in_force = path == context.config_path();
  const auto text = in_force ? files.read_trusted(path) : files.read(path);
  if (text)
    return check_text(context, *text, in_force ? path : given);
  if (text.error().code == ErrorCode::not_found)
    return {
        {ErrorCode::not_found,
         "there is no " + given,
         "run `sharefs init --output " + shell_quote(given.starts_with('-') ? "./" + given : given) + "` to write one",
         {}}};
  return {text.error()};
}

Result<int> config_check(Context& context, const Arguments& arguments) {
  auto names = arguments.positional;
  if (names.empty())
    names.push_back(context.config_path());
  Json rows = Json::array();
  for (const auto& name : names) {
    const auto errors = check_file(context, name);
    if (!context.flags.json)
      for (const auto& error : errors)
        context.console.error(error);
    if (!errors.empty() && !context.envelope.error)
      context.envelope.error = errors.front();
    if (errors.empty())
      context.console.print(visible(name) + ": ok\n");
    rows.push_back({{"file", name},
                    {"ok", errors.empty()},
                    {"error", errors.empty() ? Json(nullptr) : json_of(errors.front())},
                    {"errors", json_of(errors)}});
  }
  context.envelope.fields["files"] = std::move(rows);
  return context.envelope.error ? k_exit_usage : k_exit_ok;
}

// ---- keys ----

Json key_json(const config::Key& key) {
  const auto fallback = key.fallback();
  return {{"name", key.name},
          {"value", key.value_text("")},
          {"default", fallback.empty() ? Json(nullptr) : Json(fallback)},
          {"required", key.required},
          {"choices", key.choice_list()},
          {"description", key.description}};
}

/// Returns two lines per key, because a table would cut off the descriptions on most terminals.
std::string key_lines(const config::Key& key) {
  std::string value = key.value_text("");
  if (key.required)
    value += "; required";
  else if (const auto fallback = key.fallback(); !fallback.empty())
    value += fmt::format("; default {}", fallback);
  return fmt::format("{}  ({})\n    {}\n", key.name, value, key.description);
}

Result<int> config_keys(Context& context, const Arguments& /*arguments*/) {
  std::string list;
  Json rows = Json::array();
  for (const auto& key : config::keys()) {
    list += key_lines(key);
    rows.push_back(key_json(key));
  }
  context.envelope.fields["keys"] = std::move(rows);
  context.console.print(list);
  return k_exit_ok;
}

} // namespace

extern const CommandSpec k_config_show_command{
    .name = "config show",
    .summary = "Print the configuration in force, defaults included",
    .description =
        "Prints sharefs.yaml as sharefs understands it: every key with its value, also those that have their "
        "default. The output is itself a valid sharefs.yaml. Without a file the defaults are printed.",
    .example = "sharefs config show                       # what is in force on this machine\n"
               "sharefs config show --config draft.yaml   # what another file would mean",
    .run = config_show,
};

extern const CommandSpec k_config_check_command{
    .name = "config check",
    .summary = "Check a configuration file",
    .description =
        "Says whether each FILE is a right configuration, or all that is wrong with it: line, column, and what "
        "was probably meant. Without FILE the configuration in force is checked, its owner and mode included. "
        "Exit code 0 if all are right, 2 if not.",
    .example = "sharefs config check                # the configuration of this machine\n"
               "sharefs config check draft.yaml     # a file that is not installed yet",
    .positional = {.name = "FILE", .help = "file to check instead of the configuration in force; - is stdin"},
    .run = config_check,
};

extern const CommandSpec k_config_keys_command{
    .name = "config keys",
    .summary = "List every key of sharefs.yaml with its meaning",
    .description =
        "Lists the keys of sharefs.yaml, what their values look like, and their defaults. `*` stands for a name "
        "of your choice, `[]` for each element of a list.",
    .example = "sharefs config keys",
    .run = config_keys,
};

} // namespace sharefs::cli
