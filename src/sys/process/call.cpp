#include "sys/process/call.hpp"

#include "base/exception.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/process/child.hpp"

namespace sharefs::sys {

Result<std::string> in_child(const std::optional<User>& as, std::chrono::milliseconds deadline,
                             const std::function<Result<std::string>()>& work, const std::function<bool()>& given_up) {
  const Deadline end = deadline_in(deadline);
  const auto encoded = [&work](int fd) {
    std::string bytes;
    std::optional<Error> error = Error();
    try {
      if (auto result = work()) {
        bytes = std::move(*result);
        error.reset();
      } else {
        error = std::move(result.error());
      }
    } catch (...) {
      error->message = reason_of(std::current_exception());
    }
    write_all(fd, WireWriter().put(error).put(bytes).framed());
  };
  TRY_ASSIGN(auto child, WorkingChild::start(as, encoded));
  const bool complete = child.drain_until(end, given_up);
  const bool late = Clock::now() >= end;
  if (!complete)
    child.process().kill();
  const Result<void> ended = child.finish();
  WireReader frame(child.result());
  WireReader reader(frame.text());
  if (frame.ok()) {
    if (auto error = reader.get<std::optional<Error>>())
      return fail(std::move(*error));
    return reader.get<std::string>();
  }
  if (!complete && !late)
    return fail(ErrorCode::interrupted, "given up before the answer came");
  if (!complete)
    return fail(ErrorCode::timeout, "no answer within " + format_duration(deadline / std::chrono::microseconds(1)));
  TRY(ended);
  return fail(ErrorCode::failed, "the child process gave no result");
}

} // namespace sharefs::sys
