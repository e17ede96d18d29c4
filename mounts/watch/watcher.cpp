#include "mounts/watch/watcher.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/process/child.hpp"
#include "sys/process/wakeups.hpp"
#include "sys/programs/process.hpp"

#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <optional>
#include <poll.h>
#include <thread>

namespace sharefs::mounts::watch {

namespace {

/// Changes of the mount table come in groups. The table is read after this pause, when all of them are done.
constexpr std::chrono::milliseconds k_settle{250};
/// The deadline of a whole recovery; each check, unmount and mount of it has its own. It is less than WatchdogSec of
/// the unit.
constexpr std::chrono::minutes k_run_deadline{4};
/// The time until environments are staged again that could not be staged.
constexpr std::chrono::minutes k_stage_pause{10};
/// The largest file of metrics that is read before it is replaced, in bytes; 1,000 mounts need half of it.
constexpr std::size_t k_metrics_limit = 4U << 20U;

/// Reads the JSON document of a sharefs that failed: the error of the command, or the first error of its steps or
/// diagnoses.
RunEnd read_run_end(const sys::Completed& done, std::size_t most_bytes) {
  const auto document = read_json(done.out, {.bytes = most_bytes}).value_or(nlohmann::json());
  if (!document.is_object())
    return {false, done.timed_out ? "it did not end in time" : fmt::format("exit code {}", done.exit_code)};
  const auto& error = member(document, "error");
  RunEnd end{text_in(error, "code") == to_string(ErrorCode::busy), text_in(error, "message")};
  for (const auto& result : member(document, "results"))
    if (end.message.empty())
      end.message = text_in(member(result, "error"), "message");
  for (const auto& diagnosis : member(document, "diagnoses"))
    if (end.message.empty() && text_in(diagnosis, "severity") == to_string(Severity::error))
      end.message = text_in(diagnosis, "code") + " " + text_in(diagnosis, "message");
  return end;
}

class Watcher {
 public:
  Watcher(sys::System& system, WatchInputs&& inputs)
      : m_system(system), m_read_settings(std::move(inputs.read_settings)), m_log(std::move(inputs.log)),
        m_manager(std::move(inputs.manager)), m_flags(std::move(inputs.flags)),
        m_keep_text(std::move(inputs.keep_text)), m_rounds(system, std::move(inputs.open_journal), m_log) {
    m_daemon.version = SHAREFS_VERSION;
    // Recoveries use the program that runs now; a new version takes over when the service is restarted.
    const auto program = system.entry({.path = "/proc/self/exe"}).link_target;
    m_program = program.empty() ? "/usr/bin/sharefs" : program;
  }

  Result<bool> run_once() {
    TRY(read_settings());
    if (recover(run_round()))
      run_round();
    while (m_staging && m_staging_output.drain()) {
      pollfd ready{m_staging_output.fd(), POLLIN, 0};
      ::poll(&ready, 1, -1);
    }
    if (m_staging)
      stage_environments();
    return m_rounds.all_well();
  }

  Result<bool> run() {
    TRY_ASSIGN(auto wakeups, sys::Wakeups::make({SIGTERM, SIGINT, SIGHUP}));
    TRY(read_settings());
    m_manager.send("READY=1");
    m_log({.event = "started",
           .message = fmt::format("sharefs {}: looking after the mounts every {}, recover: {}", SHAREFS_VERSION,
                                  m_settings.interval, m_settings.recover)});
    while (!m_stopped) {
      const bool has_changed = recover(run_round());
      wait_for_next(wakeups, has_changed);
    }
    m_manager.send("STOPPING=1");
    m_log({.event = "stopped", .message = "stopped"});
    return true;
  }

 private:
  Result<void> read_settings() {
    TRY_ASSIGN(auto settings, m_read_settings());
    use(std::move(settings));
    return {};
  }

  void use(Settings settings) {
    m_settings = std::move(settings);
    m_interval = std::chrono::milliseconds(parse_duration(m_settings.interval).value_or(0));
    m_rounds.set_mounts(m_settings.points, parse_policy(m_settings.recover));
  }

  void reload() {
    const auto begin = std::chrono::duration_cast<std::chrono::microseconds>(sys::Clock::now().time_since_epoch());
    m_manager.send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", begin.count()));
    read_settings_again(true);
    m_manager.send("READY=1");
  }

  /// Reads sharefs.yaml again. Returns whether other settings are in force now. A wrong file leaves those before in
  /// force. Unless it was `asked` for, only what is new is reported.
  bool read_settings_again(bool asked) {
    auto read = m_read_settings();
    const auto error = read ? "" : read.error().message;
    const bool is_new_error = error != std::exchange(m_settings_error, error);
    m_daemon.config_valid = read.has_value();
    const bool changed = read && (asked || read->text != m_settings.text);
    if (changed) {
      use(std::move(*read));
      m_log({.event = "config",
             .message = fmt::format("read sharefs.yaml again: every {}, recover: {}", m_settings.interval,
                                    m_settings.recover)});
    } else if (!read && (asked || is_new_error)) {
      m_log({.event = "config", .severity = Severity::error, .message = "the configuration stays as it was: " + error});
    }
    return changed;
  }

  std::vector<std::string> run_round() {
    const auto begin = sys::Clock::now();
    m_last_round = begin;
    auto names = m_rounds.check_mounts(begin);
    if (!names)
      m_log({.event = "state", .severity = Severity::error, .message = names.error().message});
    ++m_daemon.rounds;
    m_daemon.round_took = sys::Clock::now() - begin;
    mount_staged_images();
    stage_environments();
    write_metrics();
    m_manager.send("WATCHDOG=1\nSTATUS=" + m_rounds.summary());
    return names ? std::move(*names) : std::vector<std::string>();
  }

  /// Mounts staged images. It tries again only when another image has lost its mount, because an error would repeat in
  /// each round.
  void mount_staged_images() {
    if (m_settings.recover == "never")
      return;
    const auto missing = m_settings.missing_images();
    const bool tried = std::ranges::includes(m_tried_images, missing);
    m_tried_images = missing;
    if (tried)
      return;
    const auto end = run_sharefs({"conda", "stage", "--mount"}, m_flags);
    if (end.busy)
      m_tried_images.clear();
    m_log({.event = "staged",
           .severity = end.message.empty() || end.busy ? Severity::info : Severity::error,
           .message = end.busy              ? "left for later: " + end.message
                      : end.message.empty() ? count_of(missing.size(), "staged image") + " mounted"
                                            : "a staged image is not mounted: " + end.message});
  }

  /// Stages environments by a process of its own, which may take minutes: rounds and recoveries go on meanwhile.
  void stage_environments() {
    if (!m_settings.unstaged || !m_rounds.all_well() || (m_staging && m_staging_output.drain()))
      return;
    const auto names = m_settings.unstaged();
    const auto now = sys::Clock::now();
    if (m_staging) {
      const auto error = m_staging->error_text();
      m_staging.reset();
      m_next_staging = names.empty() ? now : now + k_stage_pause;
      m_log({.event = "staged",
             .severity = names.empty() ? Severity::info : Severity::error,
             .message = names.empty() ? "all environments are staged" : join(names, ", ") + ": not staged: " + error});
    }
    if (names.empty() || now < m_next_staging)
      return;
    auto command = sharefs_command({"conda", "stage", "--all", "--yes", "--quiet"}, m_flags);
    command.ends_with_us = true;
    auto started = sys::StreamedProcess::start(command);
    if (started) {
      m_staging.emplace(std::move(*started));
      m_staging_output = sys::PipeReader(std::move(m_staging->out()), 0);
    } else {
      m_next_staging = now + k_stage_pause;
    }
    m_log({.event = "staged",
           .severity = started ? Severity::info : Severity::error,
           .message = started ? "staging " + join(names, ", ") : started.error().message});
  }

  void write_metrics() {
    const auto& path = m_settings.textfile;
    if (path.empty())
      return;
    m_daemon.now = m_system.now();
    const auto& files = m_system.files();
    const auto metrics = format_metrics(m_daemon, m_rounds.facts());
    const auto most = std::max(k_metrics_limit, 2 * metrics.size());
    const auto before = files.entry({.path = path, .follow = true}).size > most
                            ? fail(ErrorCode::failed, path + ": is larger than anything that is written there")
                            : files.read_if_exists(path, most);
    const auto written = before ? files.write_if(path, *before, metrics) : Result<void>(fail(before.error()));
    const auto error = written ? "" : written.error().message;
    if (error != m_metrics_error)
      m_log({.event = "metrics",
             .severity = written ? Severity::info : Severity::error,
             .message = written ? "metrics are written again" : "no metrics: " + error});
    m_metrics_error = error;
  }

  /// Runs the recovery of these mounts to its end, by the settings that have chosen them. False: there is nothing to
  /// recover, or another sharefs has the host lock. If sharefs.yaml has changed, the next round chooses anew.
  bool recover(const std::vector<std::string>& names) {
    if (names.empty())
      return false;
    if (read_settings_again(false))
      return true;
    std::vector<std::string> words{"recover"};
    append(words, names);
    if (m_settings.recover == "all")
      words.emplace_back("--moved");
    const auto flags = m_daemon.config_valid ? m_flags : m_keep_text(m_settings.text);
    const auto end = flags ? run_sharefs(words, *flags) : RunEnd{true, flags.error().message};
    m_rounds.add_run(names, end, sys::Clock::now());
    return !end.busy;
  }

  [[nodiscard]] sys::Command sharefs_command(const std::vector<std::string>& words,
                                             const std::vector<std::string>& flags) const {
    sys::Command command;
    command.argv = {m_program};
    append(command.argv, words);
    append(command.argv, {"--wait", "0"}); // never wait for an administrator's sharefs
    append(command.argv, flags);
    command.deadline = k_run_deadline;
    return command;
  }

  RunEnd run_sharefs(std::vector<std::string> words, const std::vector<std::string>& flags) {
    append(words, {"--yes", "--json"});
    const auto command = sharefs_command(words, flags);
    const auto done = m_system.run(command);
    if (!done)
      return {false, done.error().message};
    return done->ok() ? RunEnd{} : read_run_end(*done, command.output_limit);
  }

  /// Waits until the interval is over or a mount has changed. After a recovery (`has_changed`) it waits only briefly.
  void wait_for_next(sys::Wakeups& wakeups, bool has_changed) {
    const auto begin = sys::Clock::now();
    // Signals are read only here, so it waits at least k_settle, even if the round took longer than the interval.
    const auto next = has_changed ? begin + k_settle : std::max(m_last_round + m_interval, begin + k_settle);
    for (auto now = begin; !m_stopped && now < next; now = sys::Clock::now()) {
      const auto ping = m_manager.watchdog();
      const auto woken = wakeups.wait(ping ? std::min(next, now + *ping) : next);
      m_manager.send("WATCHDOG=1");
      m_stopped = woken.signals.contains(SIGTERM) || woken.signals.contains(SIGINT);
      if (woken.signals.contains(SIGHUP))
        reload();
      if (woken.signals.contains(SIGHUP) || (woken.mounts && !m_stopped && table_has_changed()))
        return;
    }
  }

  bool table_has_changed() {
    std::this_thread::sleep_for(k_settle);
    const auto table = m_system.mounts();
    return table && m_rounds.table_differs(*table);
  }

  sys::System& m_system;
  std::function<Result<Settings>()> m_read_settings;
  Rounds::Log m_log;
  sys::ServiceManager m_manager;
  std::vector<std::string> m_flags;
  std::function<Result<std::vector<std::string>>(const std::string&)> m_keep_text;
  Rounds m_rounds;
  Settings m_settings;
  std::chrono::milliseconds m_interval{0};
  std::string m_program;
  DaemonFacts m_daemon;
  std::set<std::string> m_tried_images; ///< images that were not mounted in the last round
  std::optional<sys::StreamedProcess> m_staging;
  sys::PipeReader m_staging_output; ///< nothing of it is kept; its end is that of the process
  sys::Deadline m_next_staging;     ///< the earliest time
  std::string m_metrics_error;      ///< why metrics could not be written
  std::string m_settings_error;     ///< why sharefs.yaml could not be read again
  sys::Deadline m_last_round;
  bool m_stopped = false;
};

} // namespace

Result<bool> watch(sys::System& system, WatchInputs inputs, bool once) {
  Watcher watcher(system, std::move(inputs));
  return once ? watcher.run_once() : watcher.run();
}

} // namespace sharefs::mounts::watch
