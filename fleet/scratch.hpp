#pragma once
// Temporary files of one command on this machine, while it works on nodes.
#include "base/path.hpp"
#include "base/random.hpp"
#include "base/try.hpp"
#include "fleet/run.hpp"
#include "plan/private_directory.hpp"

#include <string>
#include <utility>

namespace sharefs::fleet {

/// A directory that only this user can read; it is removed with its content.
class Scratch {
 public:
  /// Makes it in the directory `above`, and removes what killed commands have left there: a command ends within a day.
  static Result<Scratch> make(const sys::Files& files, const std::string& above) {
    constexpr std::chrono::hours k_longest{25};
    const std::string prefix = "scratch-";
    TRY_ASSIGN(auto parent, plan::PrivateDirectory::make(files, above));
    TRY_ASSIGN(const auto names, parent.names());
    for (const auto& old : names)
      if (old.starts_with(prefix) && old < prefix + new_run_id(k_longest))
        (void)parent.remove(old);
    const auto name = prefix + new_run_id() + "-" + random_letters(4);
    TRY_ASSIGN(auto made, parent.make_below(name));
    return Scratch(std::move(parent), std::move(made), join_path(above, name));
  }
  Scratch(Scratch&& other) noexcept
      : m_parent(std::move(other.m_parent)), m_own(std::move(other.m_own)),
        m_path(std::exchange(other.m_path, std::string())) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    if (!m_path.empty())
      (void)m_parent.remove(base_name(m_path));
  }
  /// Writes a file and returns its path.
  Result<std::string> write(const std::string& name, const std::string& content) const {
    return m_own.create(name, content).map([&] { return join_path(m_path, name); });
  }
  [[nodiscard]] Result<std::string> read(const std::string& name) const { return m_own.read(name); }
  [[nodiscard]] const std::string& path() const { return m_path; }

 private:
  Scratch(plan::PrivateDirectory parent, plan::PrivateDirectory own, std::string path)
      : m_parent(std::move(parent)), m_own(std::move(own)), m_path(std::move(path)) {}
  plan::PrivateDirectory m_parent, m_own;
  std::string m_path;
};

} // namespace sharefs::fleet
