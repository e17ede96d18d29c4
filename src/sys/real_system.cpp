#include "sys/real_system.hpp"

#include "base/argv.hpp"
#include "base/text.hpp"
#include "base/visible.hpp"
#include "sys/identity/identity.hpp"
#include "sys/mounting/mounting.hpp"
#include "sys/process/waiting_children.hpp"

#include <memory>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace sharefs::sys {
namespace {

Error refusal(const Files& files, const std::string& what) {
  return {ErrorCode::unsupported,
          what + " is not done under `--root " + files.root() + "`",
          "leave out `--root` to work on this machine",
          {}};
}

/// The text of a log line. Names of files and answers of servers could move the terminal's cursor.
class VisibleText : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/, spdlog::memory_buf_t& into) override {
    const auto text = visible({message.payload.data(), message.payload.size()});
    into.append(text.data(), text.data() + text.size());
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<VisibleText>();
  }
};

} // namespace

void set_verbose(bool verbose) {
  if (!verbose) { // the default logger is turned off: it writes to stdout, which is for data
    spdlog::set_level(spdlog::level::off);
    return;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("sharefs"));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<VisibleText>('*').set_pattern("%H:%M:%S.%e %l %*");
  spdlog::set_formatter(std::move(formatter));
  spdlog::set_level(spdlog::level::debug);
}

Result<Completed> RealSystem::run(const Command& command) {
  if (!files().is_live())
    return fail(refusal(files(), "running `" + shell_join(command.argv) + "`"));
  spdlog::debug("run {}", shell_join(command.argv));
  auto result = run_process(command);
  if (!result)
    spdlog::debug("run {}: {}", shell_join(command.argv), result.error().message);
  else
    spdlog::debug("ran {}: exit code {}{} after {}", shell_join(command.argv), result->exit_code,
                  result->timed_out ? " (timed out)" : "",
                  format_duration(result->took / std::chrono::microseconds(1)));
  return result;
}

Error RealSystem::exec(const Argv& argv, const std::vector<std::string>& environment) {
  if (!files().is_live())
    return refusal(files(), "running `" + shell_join(argv) + "`");
  spdlog::debug("exec {}", shell_join(argv));
  files().waiting_children().end();
  return exec_process(argv, environment);
}

Result<MountTable> RealSystem::mounts() {
  return files().mounts();
}

Result<void> RealSystem::mount(const MountCall& call) {
  if (!files().is_live())
    return fail(refusal(files(), "mounting " + call.target));
  spdlog::debug("mount {} at {} type {} options {}", call.source, call.target, call.fs_type, call.options);
  auto result = make_mount(call);
  spdlog::debug("mount {}: {}", call.target, result ? "done" : result.error().message);
  return result;
}

Result<void> RealSystem::unmount(const UnmountCall& call) {
  if (!files().is_live())
    return fail(refusal(files(), "unmounting " + call.target));
  spdlog::debug("unmount {}{}{}", call.target, call.force ? " force" : "", call.lazy ? " lazy" : "");
  auto result = end_mount(call);
  spdlog::debug("unmount {}: {}", call.target, result ? "done" : result.error().message);
  return result;
}

NfsProbe RealSystem::probe_nfs(const NfsProbeRequest& request) {
  NfsProbe result = probe_nfs_server(request);
  const StageResult* failing = result.failing();
  spdlog::debug("probe {}: {} after {} ms", request.host,
                failing == nullptr ? "usable" : std::string(to_string(failing->stage)) + ": " + failing->detail,
                result.took.count());
  return result;
}

std::vector<Entry> RealSystem::entries(const EntryRequest& request) {
  const auto table = mounts();
  std::vector<Entry> results = read_entries(files(), table ? *table : MountTable(), request);
  for (const Entry& entry : results)
    if (entry.kind == EntryKind::unknown)
      spdlog::debug("{}: {}", entry.path, entry.error().message);
  return results;
}

Identity RealSystem::identity() {
  // One command asks dozens of times, so the answer is kept for a second. It is not kept for ever, because `watch` must
  // see changes.
  constexpr std::chrono::seconds k_cache_time{1};
  thread_local Identity cached;
  thread_local Clock::time_point cached_at;
  if (cached.pid != ::getpid() || cached.uid != ::geteuid() || Clock::now() - cached_at >= k_cache_time) {
    cached = local_identity();
    cached_at = Clock::now();
  }
  return cached;
}

Result<int> RealSystem::run_worker(const WorkerRequest& request) {
  if (!files().is_live())
    return fail(refusal(files(), "working as `" + request.user.name + "`"));
  spdlog::debug("worker of {}: sharefs {}", request.user.name, shell_join(request.words));
  auto result = sys::run_worker(request);
  spdlog::debug("worker of {}: {}", request.user.name,
                result ? "exit code " + std::to_string(*result) : result.error().message);
  return result;
}

Result<User> RealSystem::user(std::string_view name) {
  return local_user(std::string(name));
}

std::chrono::system_clock::time_point RealSystem::now() {
  return std::chrono::system_clock::now();
}

} // namespace sharefs::sys
