#pragma once
#include "sys/process/become.hpp"
#include "sys/process/child.hpp"
#include "sys/process/user.hpp"

#include <cstring>
#include <functional>
#include <string>

namespace sharefs::test {

/// Who may do nothing that is not allowed to all.
inline sys::User nobody() {
  return {"nobody", 65534, 65534, {65534}, "/nonexistent"};
}

/// What `work` says in a child that has become `user` and still has our descriptors.
inline std::string as_user(const sys::User& user, const std::function<std::string()>& work) {
  sys::Pipe pipe;
  if (!pipe.open())
    return std::strerror(errno);
  auto child = sys::Child::fork([&] {
    const int error = sys::become(user);
    sys::write_all(pipe.write.get(), error == 0 ? work() : std::strerror(error));
    ::_exit(0);
  });
  pipe.write.reset();
  std::string said;
  sys::read_all(pipe.read.get(), said);
  if (child)
    child->reap_until(sys::deadline_in(std::chrono::seconds(10)));
  return said;
}

} // namespace sharefs::test
