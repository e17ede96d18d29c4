#include "plan/fault_injection.hpp"

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace sharefs::plan {

FaultInjection FaultInjection::from_environment() {
  FaultInjection faults;
  const char* value = ::secure_getenv("SHAREFS_TEST_KILL_AT");
  if (value == nullptr)
    return faults;
  const std::string_view text = value;
  std::size_t step = k_never;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (error != std::errc{})
    return faults;
  (std::string_view(end) == "+" ? faults.m_after : faults.m_before) = step;
  return faults;
}

void FaultInjection::kill_self() {
  ::kill(::getpid(), SIGKILL);
}

} // namespace sharefs::plan
