#pragma once
// Runs work in a forked child with a deadline and returns its result. This is the only way to touch a path that may lie
// on a dead mount, to ask a name service, or to act as another user.
#include "base/result.hpp"
#include "sys/process/user.hpp"
#include "sys/process/wire.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace sharefs::sys {

/// Runs `work` in a forked child, as `as` if given (setgroups, setgid, setuid), and returns its bytes. The child is
/// killed at the deadline (error `timeout`), or when `given_up` returns true (`interrupted`). Error `permission`: the
/// child cannot become `as`. The child is a WorkingChild, which has none of our descriptors. `work` must not use locks
/// of the parent, or spdlog.
Result<std::string> in_child(const std::optional<User>& as, std::chrono::milliseconds deadline,
                             const std::function<Result<std::string>()>& work,
                             const std::function<bool()>& given_up = nullptr);

/// Like in_child(), for any value with a wire format: `call(as, deadline, [] -> Result<T> { ... })`.
template <class Work>
auto call(const std::optional<User>& as, std::chrono::milliseconds deadline, const Work& work,
          const std::function<bool()>& given_up = nullptr) {
  using Answer = std::invoke_result_t<Work>;
  using Value = typename Answer::value_type;
  const auto encoded = [&work]() -> Result<std::string> {
    const Answer answer = work();
    if (!answer)
      return fail(answer.error());
    if constexpr (std::is_void_v<Value>)
      return std::string();
    else
      return WireWriter().put(*answer).bytes();
  };
  const auto bytes = in_child(as, deadline, encoded, given_up);
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
