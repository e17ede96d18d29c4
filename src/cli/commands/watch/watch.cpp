// sharefs watch: looks after the mounts until it is stopped. A recovery is `sharefs recover`, in a process of its own.
#include "base/argv.hpp"
#include "base/json.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/conda/staged.hpp"
#include "cli/commands/watch/rounds.hpp"
#include "cli/exit_code.hpp"
#include "plan/host_lock.hpp"
#include "sys/process/service_manager.hpp"
#include "sys/process/wakeups.hpp"

#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <ostream>
#include <thread>

namespace sharefs::cli {

namespace {

using watch::LogForm;

/// A change of the table seldom comes alone.
constexpr std::chrono::milliseconds k_settle{250};
/// Looks and unmounts and mounts of one recovery have deadlines of their own; this is for what nobody thought of. It is
/// less than the unit's WatchdogSec.
constexpr std::chrono::minutes k_run_deadline{4};
/// Of a file of metrics; 1,000 mounts make half of it. What others have put in its place is not read any further.
constexpr std::size_t k_metrics_limit = 4U << 20U;

class Watcher {
 public:
  explicit Watcher(Context& context)
      : m_context(context), m_manager(context.environment("NOTIFY_SOCKET"), context.environment("WATCHDOG_USEC"),
                                      context.environment("WATCHDOG_PID")),
        m_form(sys::logs_to_journal(context.environment("JOURNAL_STREAM")) ? LogForm::journal
               : context.flags.json                                        ? LogForm::json
                                                                           : LogForm::plain),
        m_rounds([this](const watch::LogLine& line) { say(line); }) {
    m_figures.version = SHAREFS_VERSION;
    // Not by name: what is recovered with is what runs, as a new package comes with a restart.
    const auto program = context.system.entry({.path = "/proc/self/exe"}).link_target;
    m_program = program.empty() ? "/usr/bin/sharefs" : program;
  }

  Result<int> once() {
    if (const auto read = read_config(); !read)
      return fail(read.error());
    if (recover(round()))
      round();
    return m_rounds.all_well() ? k_exit_ok : k_exit_failed;
  }

  Result<int> run() {
    auto wakeups = sys::Wakeups::make({SIGTERM, SIGINT, SIGHUP});
    if (!wakeups)
      return fail(wakeups.error());
    if (const auto read = read_config(); !read)
      return fail(read.error());
    m_manager.say("READY=1");
    say({.event = "started",
         .message = fmt::format("sharefs {}: looking after the mounts every {}, recover: {}", SHAREFS_VERSION,
                                m_config.interval, m_config.recover)});
    while (!m_stopped) {
      const bool has_changed = recover(round());
      wait_for_next(*wakeups, has_changed);
    }
    m_manager.say("STOPPING=1");
    say({.event = "stopped", .message = "stopped"});
    return k_exit_ok;
  }

 private:
  void say(const watch::LogLine& line) {
    m_context.host.err << watch::format_log(line, m_form, m_context.system.now()) << std::flush;
  }

  Result<void> read_config() {
    Context fresh(m_context.host, m_context.system, m_context.console, m_context.flags, m_context.argv);
    const auto config = fresh.config();
    if (!config)
      return fail(config.error());
    m_whole_config = **config;
    m_config = m_whole_config.watch.value_or(config::Watch{});
    m_interval = std::chrono::milliseconds(parse_duration(m_config.interval).value_or(0));
    m_rounds.watch_these(mount_points(m_context.system, *config), watch::policy_of(m_config.recover));
    return {};
  }

  void reload() {
    const auto begin = std::chrono::duration_cast<std::chrono::microseconds>(sys::Clock::now().time_since_epoch());
    m_manager.say(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", begin.count()));
    const auto read = read_config();
    m_figures.config_valid = read.has_value();
    if (read)
      say({.event = "config",
           .message =
               fmt::format("read sharefs.yaml again: every {}, recover: {}", m_config.interval, m_config.recover)});
    else
      say({.event = "config",
           .severity = Severity::error,
           .message = "the configuration stays as it was: " + read.error().message});
    m_manager.say("READY=1");
  }

  std::vector<std::string> round() {
    const auto begin = sys::Clock::now();
    m_last_round = begin;
    auto names = m_rounds.look(m_context, begin);
    if (!names)
      say({.event = "state", .severity = Severity::error, .message = names.error().message});
    ++m_figures.rounds;
    m_figures.round_took = sys::Clock::now() - begin;
    mount_staged_images();
    write_metrics();
    m_manager.say("WATCHDOG=1\nSTATUS=" + m_rounds.summary());
    return names ? std::move(*names) : std::vector<std::string>();
  }

  /// Once for each time that one is found without its mount: what fails now would fail in the next round, too.
  void mount_staged_images() {
    if (m_config.recover == "never")
      return;
    std::set<std::string> missing;
    for (const auto& image : staged_images(m_context, &m_whole_config))
      if (!image.is_mounted)
        missing.insert(image.copy);
    const bool tried = std::ranges::includes(m_tried_images, missing);
    m_tried_images = missing;
    if (tried)
      return;
    const auto end = run_to_end(own_command({"conda", "stage", "--mount"}));
    if (end.busy)
      m_tried_images.clear();
    say({.event = "staged",
         .severity = end.message.empty() || end.busy ? Severity::info : Severity::error,
         .message = end.busy              ? "left for later: " + end.message
                    : end.message.empty() ? count_of(missing.size(), "staged image") + " mounted"
                                          : "a staged image is not mounted: " + end.message});
  }

  void write_metrics() {
    if (m_config.textfile.empty())
      return;
    m_figures.now = m_context.system.now();
    m_rounds.put_figures(m_figures);
    const auto& files = m_context.system.files();
    const auto metrics = watch::format_metrics(m_figures);
    const auto most = std::max(k_metrics_limit, 2 * metrics.size());
    const auto too_large = files.entry({.path = m_config.textfile, .follow = true}).size > most;
    const auto before =
        too_large ? fail(ErrorCode::failed, m_config.textfile + ": is larger than anything that is written there")
                  : files.read_if_exists(m_config.textfile, most);
    const auto written =
        before ? files.write_if(m_config.textfile, *before, metrics) : Result<void>(fail(before.error()));
    const auto complaint = written ? "" : written.error().message;
    if (complaint != m_complaint)
      say({.event = "metrics",
           .severity = written ? Severity::info : Severity::error,
           .message = written ? "metrics are written again" : "no metrics: " + complaint});
    m_complaint = complaint;
  }

  [[nodiscard]] sys::Command recovery_command(const std::vector<std::string>& names) const {
    std::vector<std::string> words{"recover"};
    words.insert(words.end(), names.begin(), names.end());
    if (m_config.recover == "all")
      words.emplace_back("--moved");
    return own_command(words);
  }

  [[nodiscard]] sys::Command own_command(const std::vector<std::string>& words) const {
    sys::Command command;
    command.argv = {m_program};
    command.argv.insert(command.argv.end(), words.begin(), words.end());
    // An administrator's sharefs is not waited for.
    for (const char* word : {"--yes", "--json", "--wait", "0"})
      command.argv.emplace_back(word);
    if (!m_context.flags.config.empty()) {
      command.argv.emplace_back("--config");
      command.argv.push_back(normalize_path(m_context.flags.config, m_context.host.working_directory));
    }
    command.deadline = k_run_deadline;
    return command;
  }

  /// Runs the recovery of these mounts to its end. False: there was none, or another sharefs has the host.
  bool recover(const std::vector<std::string>& names) {
    if (names.empty())
      return false;
    const auto end = run_to_end(recovery_command(names));
    m_rounds.take_run(names, end, sys::Clock::now());
    return !end.busy;
  }

  RunEnd run_to_end(const sys::Command& command) {
    const auto done = m_context.system.run(command);
    if (!done)
      return {false, done.error().message};
    if (done->ok())
      return {};
    const auto document = read_json(done->out, {.bytes = command.output_limit}).value_or(nlohmann::json());
    if (!document.is_object())
      return {false, done->timed_out ? "it did not end in time" : fmt::format("exit code {}", done->exit_code)};
    const auto text = [](const nlohmann::json& object, const char* path) {
      const nlohmann::json::json_pointer pointer(path);
      return object.contains(pointer) && object[pointer].is_string() ? object[pointer].get<std::string>() : "";
    };
    RunEnd end{text(document, "/error/code") == to_string(ErrorCode::busy), text(document, "/error/message")};
    for (const auto& result : document.value("results", nlohmann::json::array()))
      if (end.message.empty())
        end.message = text(result, "/error/message");
    for (const auto& diagnosis : document.value("diagnoses", nlohmann::json::array()))
      if (end.message.empty() && text(diagnosis, "/severity") == to_string(Severity::error))
        end.message = text(diagnosis, "/code") + " " + text(diagnosis, "/message");
    return end;
  }

  /// Until the interval is over, or something of the mounts has changed, as it has after a recovery.
  void wait_for_next(sys::Wakeups& wakeups, bool has_changed) {
    const auto begin = sys::Clock::now();
    // Signals are seen here only: also where a round took longer than the interval.
    const auto next = has_changed ? begin + k_settle : std::max(m_last_round + m_interval, begin + k_settle);
    for (auto now = begin; !m_stopped && now < next; now = sys::Clock::now()) {
      const auto ping = m_manager.watchdog();
      const auto woken = wakeups.wait(ping ? std::min(next, now + *ping) : next);
      m_manager.say("WATCHDOG=1");
      m_stopped = woken.signals.contains(SIGTERM) || woken.signals.contains(SIGINT);
      if (woken.signals.contains(SIGHUP))
        reload();
      if (woken.signals.contains(SIGHUP) || (woken.mounts && !m_stopped && differs()))
        return;
    }
  }

  bool differs() {
    std::this_thread::sleep_for(k_settle);
    const auto table = m_context.system.mounts();
    return table && m_rounds.table_differs(*table);
  }

  Context& m_context;
  sys::ServiceManager m_manager;
  LogForm m_form;
  WatchRounds m_rounds;
  config::Config m_whole_config;
  config::Watch m_config; ///< of it
  std::chrono::milliseconds m_interval{0};
  std::string m_program;
  watch::Figures m_figures;
  std::set<std::string> m_tried_images; ///< without their mounts in the last round
  std::string m_complaint;              ///< why metrics could not be written
  sys::Deadline m_last_round;
  bool m_stopped = false;
};

Result<int> run_watch(Context& context, const Arguments& arguments) {
  const auto config = context.config();
  if (!config)
    return fail(config.error());
  if ((*config)->watch.value_or(config::Watch{}).recover != "never")
    if (auto root = require_root_for_mounts(context); !root)
      return fail(root.error());
  // Two would undo each other's pauses.
  const auto state = state_directory(context);
  const auto alone = state ? plan::HostLock::acquire(context.system.files(), *state,
                                                     {shell_join(context.argv), context.system.identity().user},
                                                     std::chrono::milliseconds(0), {}, "watch.lock")
                           : fail(state.error());
  if (!alone) {
    auto error = alone.error();
    if (error.code == ErrorCode::busy)
      error.hint = "one for each machine is enough: end that one first";
    return fail(std::move(error));
  }
  Watcher watcher(context);
  return arguments.flag("once") ? watcher.once() : watcher.run();
}

} // namespace

extern const CommandSpec k_watch_command{
    .name = "watch",
    .summary = "Look after the mounts of sharefs.yaml until it is stopped",
    .description =
        "The daemon of the unit sharefs-watch.service; it stays in the foreground. It looks at every mount at each "
        "`watch.interval`, and at once when the mount table changes, and runs `sharefs recover` where `watch.recover` "
        "allows it: never while another sharefs is at work, with pauses that grow, and not often over all. Each "
        "decision is a line on stderr, with --json (and in systemd's journal) as an object. SIGHUP reads sharefs.yaml "
        "again, SIGTERM ends it. With `watch.textfile` it writes metrics for Prometheus.",
    .example = "systemctl enable --now sharefs-watch\n"
               "sharefs watch --once   # one look, and what follows from it: for cron",
    .effect = Effect::reads,
    .options = {{.names = "--once",
                 .help = "look once, recover what is to be recovered, and end; 1 if not all is well"}},
    .run = run_watch,
};

} // namespace sharefs::cli
