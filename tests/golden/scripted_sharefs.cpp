// sharefs on a scripted machine: scripted_sharefs ROOT SYSTEM.json [--tty] [NAME=value ...] -- ARGUMENTS
// Everything but the files below ROOT is answered by SYSTEM.json (tests/support/machine.hpp); --tty answers prompts
// from standard input. The calls that the program made are written to ROOT/../calls.
#include "cli/app.hpp"
#include "support/scripted_system.hpp"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

namespace {

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
  auto scripted = sharefs::test::ScriptedSystem::from_json(read_file(words[1]), root);
  if (!scripted) {
    std::cerr << words[1] << ": " << scripted.error().message << '\n';
    return 2;
  }
  const std::shared_ptr<sharefs::test::ScriptedSystem> machine = std::move(*scripted);
  sharefs::cli::Host host{
      [&machine](const std::string&) { return machine; }, std::cin, std::cout, std::cerr, {}, {}, "/"};
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
  for (const auto& call : machine->calls())
    calls << call << '\n';
  return code;
}
