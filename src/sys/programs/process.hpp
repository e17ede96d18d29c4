#pragma once
// Runs programs by argument vector, with a deadline, never through a shell.
#include "base/argv.hpp"
#include "base/result.hpp"
#include "sys/process/call.hpp"
#include "sys/process/fd.hpp"
#include "sys/process/user.hpp"
#include "sys/programs/checked_program.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace sharefs::sys {

struct Isolation; // sys/programs/isolation.hpp

/// Where the program opens Command::output_file or Command::tree.
inline constexpr const char* k_handed_on = "/proc/self/fd/3";

struct Command {
  Argv argv; ///< argv[0] is searched in the system's directories
  /// Variables that are added or replaced in the inherited environment, or in the new environment of `as`
  /// (environment_of()).
  std::map<std::string, std::string> environment = {};
  std::string directory = {}; ///< working directory; empty: inherited
  std::string input = {};     ///< the content of standard input; empty: nothing to read
  int input_from = -1;        ///< a descriptor for standard input instead; the caller still owns it
  int output_file = -1;       ///< a descriptor that the program can open as k_handed_on; the caller still owns it
  /// A directory that the program can open as k_handed_on, whatever takes its name meanwhile. Only trusted links lead
  /// to it. For root's program no symbolic link in it leads anywhere (from Linux 5.14 on). Empty: none.
  std::string tree = {};
  std::optional<User> as = {};                ///< run as this user (become()), in a new session
  std::optional<CheckedProgram> program = {}; ///< the program that is executed in place of argv[0]
  std::chrono::milliseconds deadline{10'000}; ///< when it passes, the whole process group gets SIGKILL
  /// For programs that run long: Ctrl-C ends the program (`interrupted`), and the kernel ends it with this process.
  bool ends_with_us = false;
  std::size_t output_limit = 1U << 20U; ///< how many bytes of stdout and of stderr are kept, each
  /// Run in new namespaces; `directory` is a path in there.
  std::shared_ptr<const Isolation> isolation = {};

  friend bool operator==(const Command&, const Command&) = default;
};

struct Completed {
  int exit_code = -1;     ///< 0..255; 128 + n when killed by signal n; -1 when not known (timed out and not reaped)
  bool timed_out = false; ///< the deadline passed; the group was sent SIGKILL
  std::string out;        ///< stdout
  std::string err;        ///< stderr
  std::chrono::milliseconds took{0};

  [[nodiscard]] bool ok() const { return exit_code == 0 && !timed_out; }
  friend bool operator==(const Completed&, const Completed&) = default;
};

/// Runs the command to its end or to the deadline. A non-zero exit code is not an error of this function. Errors:
/// `not_found` (no such program), `permission`, `failed` (it could not be started). After SIGKILL the function waits at
/// most 200 ms for the end. A SIGINT of the terminal reaches only sharefs, because children have their own process
/// groups.
Result<Completed> run_process(const Command& command);

/// A program whose output is read while it runs. The destructor kills it with its process group.
class StreamedProcess {
 public:
  /// Starts the program; the deadline and output_limit of `command` are ignored. Errors: as run_process(), but
  /// error_text() reports the reason if the program itself cannot be executed.
  static Result<StreamedProcess> start(const Command& command);
  StreamedProcess(StreamedProcess&&) noexcept;
  StreamedProcess& operator=(StreamedProcess&&) = delete;
  StreamedProcess(const StreamedProcess&) = delete;
  StreamedProcess& operator=(const StreamedProcess&) = delete;
  ~StreamedProcess();

  [[nodiscard]] Fd& out(); ///< the reading end of its standard output
  /// Returns the last error in its standard error so far, as sharefs prints one, or else the last line, or the reason
  /// why it could not be executed.
  [[nodiscard]] std::string error_text();

 private:
  struct Streams;
  explicit StreamedProcess(std::unique_ptr<Streams> streams);
  std::unique_ptr<Streams> m_streams;
};

/// Replaces this process by a program (execvp). Returns only on failure: `not_found` or `permission` (the command line
/// exits with 127 or 126). `environment` is the complete new environment as NAME=value.
Error exec_process(const Argv& argv, const std::vector<std::string>& environment);

} // namespace sharefs::sys
