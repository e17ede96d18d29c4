#pragma once
// A directory of its own for one test case, gone at its end.
#include "support/content_of.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace sharefs::test {

/// Memory, where a thousand fsyncs take no time, if there is some: containers may have 64 MiB.
inline std::filesystem::path temporary_place() {
  constexpr std::uintmax_t k_enough = 512U << 20U;
  const std::filesystem::path memory = "/dev/shm";
  std::error_code missing;
  const auto room = std::filesystem::space(memory, missing).available;
  const bool is_usable = !missing && room >= k_enough && ::access(memory.c_str(), W_OK) == 0;
  return is_usable ? memory : std::filesystem::temp_directory_path();
}

class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::filesystem::path& above = temporary_place()) {
    std::string name = (above / "sharefs-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::runtime_error("cannot make " + name);
    m_path = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(m_path, ignored);
  }

  [[nodiscard]] const std::string& path() const { return m_path; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return m_path + "/" + name; }

  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(*this / name).parent_path());
    std::ofstream(*this / name, std::ios::binary) << content;
  }
  [[nodiscard]] std::string read(const std::string& name) const { return content_of(*this / name); }

 private:
  std::string m_path;
};

} // namespace sharefs::test
