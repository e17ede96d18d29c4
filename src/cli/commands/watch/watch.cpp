// sharefs watch: looks after the mounts until it is stopped.
#include "base/path.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/staged.hpp"
#include "cli/commands/mount/support.hpp"
#include "cli/commands/up/part.hpp"
#include "mounts/watch/watcher.hpp"

#include <ostream>

namespace sharefs::cli {

namespace {

Result<mounts::watch::Settings> read_settings(Context& context) {
  auto fresh = std::make_shared<Context>(context.host, context.system, context.console, context.flags, context.argv);
  TRY_ASSIGN(const auto config, fresh->config());
  const auto missing_images = [fresh, config] {
    std::set<std::string> missing;
    const auto table = fresh->system.mounts();
    for (const auto& image : staged_images(*fresh, config))
      if (table && conda::is_missing(image, *table))
        missing.insert(image.mount.target);
    return missing;
  };
  const auto watch = config->watch.value_or(config::Watch{});
  mounts::watch::Settings settings{fresh->config_text(),
                                   mounts_for_host(context.system, *config),
                                   watch.interval,
                                   watch.recover,
                                   watch.textfile,
                                   missing_images,
                                   nullptr};
  if (watch.stage)
    settings.unstaged = [fresh] { return unstaged_environments(*fresh); };
  return settings;
}

Result<Argv> keep_text(Context& context, const std::string& text) {
  TRY_ASSIGN(const auto state, state_directory(context));
  const auto path = join_path(state, "watch.yaml");
  const auto& files = context.system.files();
  TRY_ASSIGN(const auto before, files.read_if_exists(path));
  if (before != text)
    TRY(files.write_if(path, before, text, 0600));
  return Argv{"--config", path};
}

mounts::watch::WatchInputs surroundings_of(Context& context) {
  using mounts::watch::LogForm;
  const auto form = sys::logs_to_journal(context.environment("JOURNAL_STREAM")) ? LogForm::journal
                    : context.flags.json                                        ? LogForm::json
                                                                                : LogForm::plain;
  return {.read_settings = [&context] { return read_settings(context); },
          .open_journal = [&context] { return journal_of(context); },
          .log =
              [&context, form](const mounts::watch::LogLine& line) {
                context.host.err << format_log(line, form, context.system.now()) << std::flush;
              },
          .manager = {context.environment("NOTIFY_SOCKET"), context.environment("WATCHDOG_USEC"),
                      context.environment("WATCHDOG_PID")},
          .flags = with_config(context, {}),
          .keep_text = [&context](const std::string& text) { return keep_text(context, text); }};
}

Result<int> run_watch(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto config, context.config());
  if (config->watch.value_or(config::Watch{}).recover != "never")
    TRY(require_root_for_mounts(context));
  // Two daemons would not know of each other's pauses.
  TRY_ASSIGN(const auto state, state_directory(context));
  const auto alone = take_lock(context, state, std::chrono::milliseconds(0), "watch.lock");
  if (!alone) {
    auto error = alone.error();
    if (error.code == ErrorCode::busy)
      error.hint = "one for each machine is enough: end that one first";
    return fail(std::move(error));
  }
  TRY_ASSIGN(const bool well, mounts::watch::watch(context.system, surroundings_of(context), arguments.flag("once")));
  return well ? k_exit_ok : k_exit_failed;
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
    .options = {{.names = "--once", .help = "check once, recover what needs it, and exit with 1 if not all is well"}},
    .run = run_watch,
};

} // namespace sharefs::cli
