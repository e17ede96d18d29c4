#pragma once
// Work in a forked child with a deadline, and its result: the only way to touch a path that may lie on a dead mount, to
// ask a name service, or to act as another user.
#include "base/result.hpp"
#include "sys/identity/user.hpp"
#include "sys/process/wire.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace sharefs::sys {

/// Run `work` in a forked child, as `as` if given (setgroups, setgid, setuid), and hand back its bytes. The child is
/// killed at the deadline: error `timeout`; `permission` if it cannot become `as`. The child has no descriptor of ours
/// (its standard streams are /dev/null: one that hangs must not keep a pipe or a lock open) and works in `/`. `work`
/// must not use locks of the parent, or spdlog.
Result<std::string> in_child(const std::optional<User>& as, std::chrono::milliseconds deadline,
                             const std::function<Result<std::string>()>& work);

/// As in_child, for any value with a wire format: `call(as, deadline, [] -> Result<T> { ... })`.
template <class Work> auto call(const std::optional<User>& as, std::chrono::milliseconds deadline, const Work& work) {
  using Answer = std::invoke_result_t<Work>;
  using Value = typename Answer::value_type;
  const auto bytes = in_child(as, deadline, [&work]() -> Result<std::string> {
    const Answer answer = work();
    if (!answer)
      return fail(answer.error());
    if constexpr (std::is_void_v<Value>)
      return std::string();
    else
      return WireWriter().put(*answer).bytes();
  });
  if (!bytes)
    return Answer(fail(bytes.error()));
  if constexpr (std::is_void_v<Value>) {
    return Answer();
  } else {
    WireReader reader(*bytes);
    Answer answer(reader.get<Value>());
    if (!reader.ok() || !reader.at_end())
      return Answer(fail(ErrorCode::failed, "the child process gave no valid result"));
    return answer;
  }
}

} // namespace sharefs::sys
