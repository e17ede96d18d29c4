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

/// Runs `work` in a forked child, as `as` if given (setgroups, setgid, setuid), and returns the Result that it has
/// written as bytes, still as bytes. The child is killed at the deadline (error `timeout`), or when `given_up` returns
/// true (`interrupted`). Error `permission`: the child cannot become `as`. The child is a WorkingChild, which has none
/// of our descriptors. `work` must not use locks of the parent, or spdlog.
Result<std::string> in_child(const std::optional<User>& as, std::chrono::milliseconds deadline,
                             const std::function<std::string()>& work, const std::function<bool()>& given_up);

/// Like in_child(), for work that returns a Result of any value with a wire format:
/// `call(as, deadline, [] -> Result<T> { ... })`.
template <class Work>
auto call(const std::optional<User>& as, std::chrono::milliseconds deadline, const Work& work,
          const std::function<bool()>& given_up = nullptr) {
  using Answer = std::invoke_result_t<Work>;
  const auto bytes = in_child(as, deadline, [&work] { return WireWriter().put(work()).bytes(); }, given_up);
  if (!bytes)
    return Answer(fail(bytes.error()));
  WireReader reader(*bytes);
  auto answer = reader.get<Answer>();
  if (!reader.ok() || !reader.at_end())
    return Answer(fail(ErrorCode::failed, "the child process gave no valid result"));
  return answer;
}

} // namespace sharefs::sys
