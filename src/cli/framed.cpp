// --frame: answering another machine.
#include "cli/app.hpp"

#include "fleet/frames.hpp"
#include "sys/process/captured_output.hpp"
#include "sys/process/child.hpp"

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <fmt/format.h>
#include <iostream>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace sharefs::cli {

namespace {

/// Writes each line with one write(2): the output of others on the same pipe comes between lines and not inside them.
void write_lines(const std::string& lines) {
  for (std::size_t at = 0; at < lines.size();) {
    const auto end = lines.find('\n', at) + 1;
    if (!sys::write_all(1, std::string_view(lines).substr(at, end - at)))
      return; // nobody reads any more; the command that was begun goes on
    at = end;
  }
}

/// Writes a line of progress to stderr now and then, as long as it exists. The asking machine gives up a node that says
/// nothing for a minute (fleet/run.cpp), and most work reports nothing, or pauses while it waits for another command.
class SignOfLife {
 public:
  SignOfLife() {
    // Only the main thread may get signals, because Ctrl-C must interrupt its waiting.
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      m_thread = std::jthread([this](const std::stop_token& end) { report_until(end); });
    } catch (const std::system_error&) { // NOLINT(bugprone-empty-catch): no more threads, the work goes on without it
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

 private:
  void report_until(const std::stop_token& end) {
    constexpr std::chrono::seconds k_interval{15};
    std::unique_lock lock(m_mutex);
    for (auto seconds = k_interval; !m_end.wait_for(lock, end, k_interval, [&] { return end.stop_requested(); });
         seconds += k_interval)
      // An error means that nobody reads any more. The command that was begun goes on.
      sys::write_all(STDERR_FILENO, fmt::format("{{\"progress\":\"at work\",\"seconds\":{}}}\n", seconds.count()));
  }

  std::mutex m_mutex;
  std::condition_variable_any m_end;
  std::jthread m_thread; ///< the last member, because the thread uses the others
};

/// Starts timeout(1) from here and not in front of sharefs, so that a sudoers file can allow sharefs alone.
int run_with_deadline(std::chrono::seconds deadline, const fleet::FrameRequest& request, const Argv& argv, Host& host) {
  const auto system = host.make_system("/");
  const auto own = system->entry({.path = "/proc/self/exe"}).link_target;
  Argv words{"timeout", "-k", "2", std::to_string(deadline.count()), own, "--frame"};
  words.push_back(fmt::format("{}:{}", request.protocol, request.node));
  words.insert(words.end(), argv.begin() + 3, argv.end());
  host.err << "error: " << system->exec(words, host.environment).message << "\n";
  return k_exit_failed;
}

} // namespace

std::optional<int> run_framed(const Argv& argv, Host& host) {
  if (argv.size() < 3 || argv[1] != "--frame")
    return std::nullopt;
  const auto request = fleet::parse_frame_request(argv[2]);
  if (!request) {
    host.err << "error: `--frame` is for other machines' sharefs, and wants PROTOCOL:NODE[:SECONDS]\n";
    return k_exit_usage;
  }
  if (request->deadline.count() > 0)
    return run_with_deadline(request->deadline, *request, argv, host);
  write_lines(fleet::hello_frame(request->node, SHAREFS_VERSION));
  if (request->protocol != fleet::k_protocol)
    return k_exit_usage;
  Argv words{argv.front()};
  words.insert(words.end(), argv.begin() + 3, argv.end());
  if (std::ranges::find(words, "--json") == words.end())
    words.emplace_back("--json");
  constexpr std::size_t k_most = 32U << 20U;
  std::optional<int> code;
  std::optional<SignOfLife> alive(std::in_place);
  const auto document = sys::capture_output(k_most, [&] {
    code = run(words, host);
    host.out << std::flush;
  });
  alive.reset();
  if (!code) {
    host.err << "error: " << document.error().message << "\n";
    return k_exit_failed;
  }
  write_lines(fleet::answer_frames(request->node, *code, document.value_or("")));
  return *code;
}

} // namespace sharefs::cli
