// sharefs on a scripted machine: scripted_sharefs ROOT SYSTEM.json [--tty] [NAME=value ...] -- ARGUMENTS
// Everything but the files below ROOT is answered by SYSTEM.json (sys/scripted_system.hpp); --tty answers prompts from
// standard input. The calls that the program made are written to ROOT/../calls.
#include "cli/app.hpp"
#include "sys/scripted_system.hpp"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

namespace {

/// ScriptedSystem is made and owned here, so that its calls can be read at the end; the program gets this view of it.
class View final : public sharefs::sys::System {
 public:
  explicit View(sharefs::sys::System& inner) : System(inner.files()), m_inner(inner) {}
  sharefs::Result<sharefs::sys::Completed> run(const sharefs::sys::Command& c) override { return m_inner.run(c); }
  sharefs::Error exec(const sharefs::Argv& a, const std::vector<std::string>& e) override { return m_inner.exec(a, e); }
  sharefs::Result<sharefs::sys::MountTable> mounts() override { return m_inner.mounts(); }
  sharefs::Result<void> mount(const sharefs::sys::MountCall& c) override { return m_inner.mount(c); }
  sharefs::Result<void> unmount(const sharefs::sys::UnmountCall& c) override { return m_inner.unmount(c); }
  sharefs::sys::NfsProbe probe_nfs(const sharefs::sys::NfsProbeRequest& r) override { return m_inner.probe_nfs(r); }
  std::vector<sharefs::sys::PathProbe> probe_paths(const std::vector<sharefs::sys::PathProbeRequest>& r) override {
    return m_inner.probe_paths(r);
  }
  sharefs::Result<std::vector<sharefs::sys::PathFact>> inspect(const sharefs::sys::InspectRequest& r) override {
    return m_inner.inspect(r);
  }
  sharefs::sys::Identity identity() override { return m_inner.identity(); }
  sharefs::Result<sharefs::sys::User> user(std::string_view n) override { return m_inner.user(n); }
  std::chrono::system_clock::time_point now() override { return m_inner.now(); }

 private:
  sharefs::sys::System& m_inner;
};

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (words.size() < 3 || dashes == words.end()) {
    std::cerr << "usage: scripted_sharefs ROOT SYSTEM.json [--tty] [NAME=value ...] -- ARGUMENTS\n";
    return 2;
  }
  const std::string& root = words[0];
  auto scripted = sharefs::sys::ScriptedSystem::from_json(read_file(words[1]), root);
  if (!scripted) {
    std::cerr << words[1] << ": " << scripted.error().message << '\n';
    return 2;
  }
  auto& machine = **scripted;
  sharefs::cli::Host host{[&machine](const std::string&) { return std::make_unique<View>(machine); },
                          std::cin,
                          std::cout,
                          std::cerr,
                          {},
                          {},
                          "/"};
  host.console.width = 100;
  for (auto word = words.begin() + 2; word != dashes; ++word)
    if (*word == "--tty")
      host.console.in_terminal = true;
    else
      host.environment.push_back(*word);
  sharefs::Argv command{"sharefs"};
  command.insert(command.end(), dashes + 1, words.end());
  const int code = sharefs::cli::run(command, host);
  std::ofstream calls(root + "/../calls");
  for (const auto& call : machine.calls())
    calls << call << '\n';
  return code;
}
