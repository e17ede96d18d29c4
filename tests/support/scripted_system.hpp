#pragma once
// The one System of all tests: it answers from a Machine, and from real files under its root.
#include "support/machine.hpp"

#include <memory>
#include <mutex>

namespace sharefs::test {

/// A call that the machine does not know fails with `unsupported` and says what it was: a test never falls through to
/// the host. Files are real files under the root (a temporary directory), looked at as the test's own user whoever
/// asks; with the root "/" there are none but those of Machine::entries.
class ScriptedSystem final : public sys::System {
 public:
  explicit ScriptedSystem(std::string root = "/", Machine given = {})
      : System(sys::Files(std::move(root))), machine(std::move(given)) {}
  static Result<std::unique_ptr<ScriptedSystem>> from_json(const std::string& text, std::string root);

  Machine machine; ///< may be changed between two calls

  Result<sys::Completed> run(const sys::Command& command) override;
  /// Fails, unless Machine::on_exec does not return.
  Error exec(const Argv& argv, const std::vector<std::string>& environment) override;
  Result<sys::MountTable> mounts() override;
  Result<void> mount(const sys::MountCall& call) override;
  Result<void> unmount(const sys::UnmountCall& call) override;
  sys::NfsProbe probe_nfs(const sys::NfsProbeRequest& request) override;
  std::vector<sys::Entry> entries(const sys::EntryRequest& request) override;
  sys::Identity identity() override { return machine.identity; }
  /// Noted as a call; nothing is done.
  Result<int> run_worker(const sys::WorkerRequest& request) override;
  Result<sys::User> user(std::string_view name) override;
  std::chrono::system_clock::time_point now() override { return machine.now; }

  /// Every run, mount, unmount and exec so far, one readable line each, in order.
  [[nodiscard]] const std::vector<std::string>& calls() const { return m_calls; }
  /// Every path that entries() was asked for, in order: "/home/alice as alice".
  [[nodiscard]] const std::vector<std::string>& asked() const { return m_asked; }

 private:
  void note(const std::string& call);
  Result<sys::Completed> answer(std::vector<Answer>& answers, const nlohmann::json& call, const std::string& what,
                                bool& own_table);
  [[nodiscard]] std::optional<sys::Entry> known(const sys::EntryQuery& query) const;

  std::mutex m_mutex; ///< groups of a plan are applied in parallel
  std::vector<std::string> m_calls, m_asked;
};

} // namespace sharefs::test
