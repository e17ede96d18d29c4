#pragma once
// What a command works with. Made once per process by app.cpp, passed by reference, never global.
#include "cli/command.hpp"
#include "config/config.hpp"
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

struct GlobalFlags {
  std::string config; ///< --config
  std::string root = "/";
  std::string on; ///< --on: nodes; empty: this machine
  bool json = false, quiet = false, verbose = false;
  bool dry_run = false, check = false, yes = false;
  std::chrono::milliseconds wait{10'000}; ///< for the host lock
  [[nodiscard]] bool only_looks() const { return dry_run || check; }
};

/// In place of a working directory that was removed or is out of sight: nothing lies below it.
inline constexpr const char* k_no_directory = "/(unreachable)";

/// The outside world of one run, given by main() or by a test.
struct Host {
  std::function<std::shared_ptr<sys::System>(const std::string& root)> make_system;
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  ui::ConsoleOptions console;
  std::vector<std::string> environment; ///< NAME=value
  std::string working_directory;        ///< getcwd(2), or k_no_directory
  sys::WorkerInheritance gifts = {};    ///< where root has started this process for its user
};

class Context {
 public:
  Context(Host& host, sys::System& system, ui::Console& console, GlobalFlags flags, Argv argv);

  sys::System& system;
  ui::Console& console;
  const GlobalFlags flags;
  const Argv argv; ///< the whole command line, argv[0] included
  Host& host;
  bool answered = false; ///< a worker has done the command, and printed its document
  ui::Envelope envelope; ///< printed by app.cpp at the end when --json was given

  [[nodiscard]] std::optional<std::string> environment(std::string_view name) const;
  /// sharefs.yaml of --config, $SHAREFS_CONFIG or /etc/sharefs/sharefs.yaml, read once. Error `config` if there is none
  /// or it is wrong or others may change it, `timeout` if it lies on a dead mount.
  Result<const config::Config*> config();
  enum class Unreadable { warns, fails };
  /// For commands that work without one: nullptr if there is no default file, and, with a warning, if the file cannot
  /// be read or trusted or does not answer. An error if it is wrong, or if --config names one that is not there.
  Result<const config::Config*> config_if_any(Unreadable unreadable = Unreadable::warns);
  /// Path that config() would read.
  [[nodiscard]] std::string config_path() const;
  /// Adds diagnoses to the envelope and shows them (unless --json), each once, also where it is found again.
  void report(const Diagnoses& diagnoses);

 private:
  const Result<config::Config>& load();

  std::optional<Result<config::Config>> m_config;
  std::set<Diagnosis> m_reported;
  bool m_warned = false; ///< that there is no configuration
};

/// What a person types to take back an entry of the journal that this command works with: "sharefs undo 17".
std::string undo_command(const Context& context, const std::string& id);

/// The words of a command of sharefs on another machine or in another process, with the same sharefs.yaml as here.
Argv with_config(const Context& context, Argv words);

/// `permission` with the text `refusal` for a command that would change something and is not root's.
Result<void> require_root(const Context& context, const std::string& refusal);

} // namespace sharefs::cli
