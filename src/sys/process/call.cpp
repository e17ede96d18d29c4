#include "sys/process/call.hpp"

#include "base/exception.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/process/child.hpp"

#include <unistd.h>

namespace sharefs::sys {

Result<std::string> in_child(const std::optional<User>& as, std::chrono::milliseconds deadline,
                             const std::function<std::string()>& work, const std::function<bool()>& given_up) {
  const Deadline end = deadline_in(deadline);
  // Otherwise a child that hangs would act after sharefs has ended, without its lock and its journal.
  const auto send = [&work, parent = ::getpid()](int fd) {
    if (!end_with(parent))
      return;
    std::string bytes;
    try {
      bytes = work();
    } catch (...) {
      bytes = WireWriter().put(Result<void>(fail(ErrorCode::failed, reason_of(std::current_exception())))).bytes();
    }
    write_all(fd, WireWriter().put(bytes).bytes());
  };
  TRY_ASSIGN(auto child, WorkingChild::start(as, send));
  const bool complete = child.drain_until(end, given_up);
  const bool late = Clock::now() >= end;
  if (!complete)
    child.process().kill();
  const Result<void> ended = child.finish();
  WireReader frame(child.result());
  const auto bytes = frame.text();
  if (frame.ok())
    return std::string(bytes);
  if (!complete && !late)
    return fail(ErrorCode::interrupted, "given up before the answer came");
  if (!complete)
    return fail(ErrorCode::timeout, "no answer within " + format_duration(deadline / std::chrono::microseconds(1)));
  TRY(ended);
  return fail(ErrorCode::failed, "the child process gave no result");
}

} // namespace sharefs::sys
