#pragma once
// Child processes: by argument vector, with a deadline, never through a shell.
#include "base/argv.hpp"
#include "base/result.hpp"
#include "sys/process/call.hpp"
#include "sys/process/user.hpp"
#include "sys/programs/checked_program.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace sharefs::sys {

struct Isolation; // sys/programs/isolation.hpp

inline constexpr const char* k_output_file = "/proc/self/fd/3";

struct Command {
  Argv argv; ///< argv[0] is found in the system's directories
  /// Added to (or replacing in) the inherited environment, or in that of `as` (environment_of), which has nothing of
  /// ours.
  std::map<std::string, std::string> environment = {};
  std::string directory = {}; ///< working directory; empty: inherited
  std::string input = {};     ///< given on stdin; empty: /dev/null
  int input_from = -1;        ///< a descriptor for stdin instead; not kept
  int output_file = -1; ///< one that the program gets as k_output_file, by whose path it opens that very file; not kept
  std::optional<User> as = {};                ///< as this user (become()), in a session of its own
  std::optional<CheckedProgram> program = {}; ///< what argv[0] stands for
  std::chrono::milliseconds deadline{10'000}; ///< then SIGKILL to the whole process group
  bool ends_with_us = false;                  ///< Ctrl-C ends it, too (`interrupted`): it may take long
  std::size_t output_limit = 1U << 20U;       ///< bytes kept of stdout and of stderr each
  /// In namespaces of its own; `directory` is one in there.
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

/// Run to its end or to the deadline. A non-zero exit is not an error of this function. Errors: `not_found` (no such
/// program), `permission`, `failed` (could not be started). After SIGKILL waits at most 200 ms for the end.
/// SIGINT reaches only sharefs: children are in process groups of their own.
Result<Completed> run_process(const Command& command);

/// A program that is read from while it runs. It is killed, with its process group, when this is destroyed.
class StreamedProcess {
 public:
  /// Of `command` its deadline and output_limit do not count. Errors: as run_process(), but what keeps the program from
  /// being started is said by error_text().
  static Result<StreamedProcess> start(const Command& command);
  StreamedProcess(StreamedProcess&&) noexcept;
  StreamedProcess& operator=(StreamedProcess&&) = delete;
  StreamedProcess(const StreamedProcess&) = delete;
  StreamedProcess& operator=(const StreamedProcess&) = delete;
  ~StreamedProcess();

  [[nodiscard]] int out() const; ///< its standard output, for reading
  /// The last line that it has written to its standard error until now.
  [[nodiscard]] std::string error_text();

 private:
  struct Streams;
  explicit StreamedProcess(std::unique_ptr<Streams> streams);
  std::unique_ptr<Streams> m_streams;
};

/// Replace this process (execvp). Returns only on failure: `not_found` or `permission` (cli: 127 or 126).
/// `environment` is the complete new environment as NAME=value.
Error exec_process(const Argv& argv, const std::vector<std::string>& environment);

} // namespace sharefs::sys
