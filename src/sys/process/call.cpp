#include "sys/process/call.hpp"

#include "base/text.hpp"
#include "sys/process/child.hpp"

namespace sharefs {

template <sys::WireOf<Error> E> auto wire_fields(E& e) {
  return std::tie(e.code, e.message, e.hint, e.context);
}

namespace sys {

Result<std::string> in_child(const std::optional<User>& as, std::chrono::milliseconds deadline,
                             const std::function<Result<std::string>()>& work) {
  const Deadline end = deadline_in(deadline);
  auto child = WorkingChild::start(as, [&work](int fd) {
    Result<std::string> result = fail(ErrorCode::failed, "unknown exception");
    try {
      result = work();
    } catch (const std::exception& exception) {
      result = fail(ErrorCode::failed, exception.what());
    }
    WireWriter writer;
    writer.put(result.has_value());
    if (result)
      writer.put(*result);
    else
      writer.put(result.error());
    write_all(fd, writer.framed());
  });
  if (!child)
    return fail(child.error());
  const bool complete = child->drain_until(end);
  if (!complete)
    child->process().kill();
  const Result<void> ended = child->finish();
  WireReader frame(child->result());
  WireReader reader(frame.text());
  if (frame.ok()) {
    if (reader.get<bool>())
      return reader.get<std::string>();
    return fail(reader.get<Error>());
  }
  if (!complete)
    return fail(ErrorCode::timeout, "no answer within " + format_duration(deadline / std::chrono::microseconds(1)));
  if (!ended)
    return fail(ended.error());
  return fail(ErrorCode::failed, "the child process gave no result");
}

} // namespace sys
} // namespace sharefs
