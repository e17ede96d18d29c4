#pragma once
// What a command works with. app.cpp makes it once per process and passes it by reference; it is never global.
#include "cli/command.hpp"
#include "config/config.hpp"
#include "plan/say.hpp"
#include "sys/system.hpp"
#include "ui/console.hpp"
#include "ui/envelope.hpp"

#include <chrono>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sharefs::cli {

using Json = nlohmann::ordered_json;

struct GlobalFlags {
  std::string config; ///< --config
  std::string root = "/";
  std::string on; ///< --on: nodes; empty: this machine
  bool json = false, quiet = false, verbose = false;
  bool dry_run = false, check = false, yes = false;
  std::chrono::milliseconds wait{10'000}; ///< longest wait for the host lock
  [[nodiscard]] bool changes_nothing() const { return dry_run || check; }
};

/// The sharefs.yaml of a machine.
inline constexpr const char* k_default_config = "/etc/sharefs/sharefs.yaml";

/// Stands for a working directory that was removed or cannot be reached; no path lies below it.
inline constexpr const char* k_no_directory = "/(unreachable)";

/// The outside world of one run; main() or a test provides it.
struct Host {
  std::function<std::shared_ptr<sys::System>(const std::string& root)> make_system;
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  ui::ConsoleOptions console;
  std::vector<std::string> environment;  ///< NAME=value
  std::string working_directory;         ///< of getcwd(2), or k_no_directory
  sys::WorkerInheritance inherited = {}; ///< set where root has started this process to work as its user
};

class Context {
 public:
  Context(Host& host, sys::System& system, ui::Console& console, GlobalFlags flags, Argv argv);

  sys::System& system;
  ui::Console& console;
  const GlobalFlags flags;
  const Argv argv; ///< the whole command line, with argv[0]
  Host& host;
  bool answered = false; ///< a worker has run the command and printed its document
  ui::Envelope envelope; ///< app.cpp prints it at the end if --json was given

  [[nodiscard]] std::optional<std::string> environment(std::string_view name) const;
  /// Returns the sharefs.yaml of --config, $SHAREFS_CONFIG or /etc/sharefs/sharefs.yaml; it is read once. Errors:
  /// `config` if it is missing, wrong, or writable for others; `timeout` if it lies on a dead mount.
  Result<const config::Config*> config();
  enum class Unreadable { warns, fails };
  /// For commands that also work without a configuration. Returns nullptr if there is no default file, and, with a
  /// warning, if the file cannot be read or trusted or does not answer. Returns an error if the file is wrong, or if
  /// --config names a file that does not exist.
  Result<const config::Config*> config_if_any(Unreadable unreadable = Unreadable::warns);
  /// Returns the text that config() has read; "" if there was none.
  [[nodiscard]] const std::string& config_text() const { return m_config_text; }
  /// Returns the path that config() would read.
  [[nodiscard]] std::string config_path() const;
  /// Adds diagnoses to the envelope and prints them (unless --json). A diagnosis that is found again is not repeated.
  void report(const Diagnoses& diagnoses);
  /// Prints the text, unless it was printed before: a plan may be made again.
  void message_once(const std::string& text);
  /// Prints a table, whose rows are also the list `name` in the envelope; `nothing` is said if the table is empty.
  void show(const ui::Table& table, const char* name, Json rows, std::string_view nothing = {});

 private:
  const Result<config::Config>& load();

  std::optional<Result<config::Config>> m_config;
  std::string m_config_text;
  std::set<Diagnosis> m_reported;
  std::set<std::string> m_said;
  bool m_warned = false; ///< the warning about an unreadable configuration was given
};

/// Returns the functions by which the flow of a room speaks to the user of this command. They must not outlive
/// `context`.
plan::Say say_to(Context& context);

/// Returns the command that undoes an entry of the journal that this command works with: "sharefs undo 17".
std::string undo_command(const Context& context, const std::string& id);

/// Becomes the command, by exec. If that fails the error is printed, and the exit code of env(1) is returned.
int exec_command(Context& context, const Argv& command, const std::vector<std::string>& environment);

/// Adds --config to the arguments of a sharefs on another machine or in another process, so that it reads the same
/// file.
Argv with_config(const Context& context, Argv words);

/// Adds --config to the commands of sharefs in a hint, each in backticks, and in the hints and fixes of diagnoses. So a
/// command that is typed as it is printed reads the same file as this one, also by sudo. Commands for another machine
/// ("`sharefs export --all` on the server") and those with global options stay as they are.
std::string add_config(const Context& context, std::string text);
Diagnoses add_config(const Context& context, Diagnoses diagnoses);

/// Returns an error `permission` with the text `refusal` if the command would change something and this user is not
/// root.
Result<void> require_root(const Context& context, const std::string& refusal);

} // namespace sharefs::cli
