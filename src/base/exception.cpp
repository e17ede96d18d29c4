#include "base/exception.hpp"

#include <new>
#include <system_error>

namespace sharefs {

std::string reason_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again)
      return "no further process or thread can be started";
    return error.what();
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an unknown exception";
  }
}

} // namespace sharefs
