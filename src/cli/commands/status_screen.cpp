#include "cli/commands/status_screen.hpp"

#include "base/text.hpp"
#include "cli/exit_code.hpp"
#include "sys/process/wakeups.hpp"
#include "ui/live_screen.hpp"
#include "watch/log_line.hpp"

#include <array>
#include <csignal>
#include <fmt/format.h>
#include <ostream>
#include <unistd.h>

namespace sharefs::cli {

namespace {

constexpr std::chrono::seconds k_redraw{2};

/// A key that ends it, or the end of the input.
bool quits() {
  std::array<char, 64> keys{};
  const auto count = ::read(STDIN_FILENO, keys.data(), keys.size());
  return count <= 0 || std::string_view(keys.data(), static_cast<std::size_t>(count)).find_first_of("qQ\x04") !=
                           std::string_view::npos;
}

Result<int> draw_until_quit(Context& context, sys::Wakeups& wakeups,
                            const std::function<Result<ScreenContent>()>& content) {
  ui::LiveScreen screen(context.console.out());
  for (;;) {
    const auto now = content();
    if (!now)
      return fail(now.error());
    screen.draw(now->table + "\nq: quit\n");
    auto woken = wakeups.wait(sys::deadline_in(k_redraw));
    if (woken.signals.contains(SIGTSTP)) {
      screen.leave();
      ::raise(SIGSTOP);
      screen.enter();
      woken.signals.erase(SIGTSTP);
    }
    woken.signals.erase(SIGWINCH);
    if (!woken.signals.empty() || (woken.input && quits()))
      return k_exit_ok;
  }
}

Result<int> print_changes(Context& context, sys::Wakeups& wakeups,
                          const std::function<Result<ScreenContent>()>& content) {
  std::map<std::string, std::string> known; // state by target
  for (;;) {
    const auto now = content();
    if (!now)
      return fail(now.error());
    std::map<std::string, std::string> seen;
    const auto print = [&](const std::string& target, const std::string& text) {
      context.console.out() << watch::format_log({.event = "state", .mount = target, .message = text},
                                                 watch::LogForm::plain, context.system.now());
    };
    for (const auto& state : now->states) {
      const auto& target = state.point.target;
      const std::string text = mounts::to_string(state.health);
      const auto before = known.find(target);
      if (before == known.end() || before->second != text)
        print(target, before == known.end() ? text : text + ", was " + before->second);
      seen[target] = text;
    }
    for (const auto& [target, text] : known)
      if (!seen.contains(target))
        print(target, "gone, was " + text);
    known = std::move(seen);
    context.console.out() << std::flush;
    if (!context.console.out() || !wakeups.wait(sys::deadline_in(k_redraw)).signals.empty())
      return k_exit_ok;
  }
}

} // namespace

Result<int> run_status_screen(Context& context, const std::function<Result<ScreenContent>()>& content) {
  if (context.flags.json)
    return fail(ErrorCode::usage, "`--watch` has no JSON document",
                "`sharefs watch --json` writes one line for each change");
  const auto& options = context.console.options();
  const bool draws = options.in_terminal && options.out_terminal;
  std::vector<int> signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  if (draws)
    signals.insert(signals.end(), {SIGWINCH, SIGTSTP});
  auto wakeups = sys::Wakeups::make(signals, draws ? STDIN_FILENO : -1);
  if (!wakeups)
    return fail(wakeups.error());
  return draws ? draw_until_quit(context, *wakeups, content) : print_changes(context, *wakeups, content);
}

} // namespace sharefs::cli
