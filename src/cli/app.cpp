#include "cli/app.hpp"

#include "cli/exit_code.hpp"
#include "cli/parser.hpp"
#include "sys/log.hpp"
#include "sys/real_system.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <iostream>
#include <unistd.h>

namespace sharefs::cli {

namespace {

/// What the kernel resolves relative paths from. Not $PWD: to know whether it is right one would have to stat it.
std::string working_directory() {
  std::array<char, 4096> buffer{};
  return ::getcwd(buffer.data(), buffer.size()) == nullptr ? "/" : buffer.data();
}

bool wants_json(const Argv& argv) {
  for (const auto& word : argv) {
    if (word == "--")
      return false;
    if (word == "--json")
      return true;
  }
  return false;
}

/// `run` has the exit codes of env(1): its own failures, usage included, are told from its child's.
bool is_run(const Argv& argv) {
  const auto word = std::find_if(argv.begin() + 1, argv.end(), [](const auto& w) { return !w.starts_with('-'); });
  return word != argv.end() && *word == "run";
}

/// Usage errors come before there is a command; they too are one JSON document when JSON was asked for.
int usage_error(const Error& error, const Argv& argv, Host& host, ui::Console& console) {
  if (wants_json(argv)) {
    ui::Envelope envelope;
    envelope.ok = false;
    envelope.error = error;
    host.out << envelope.text();
  } else {
    console.error(error);
  }
  return is_run(argv) ? k_exit_run_failed : exit_code_of(error);
}

} // namespace

int run(const Argv& argv, Host& host) {
  auto parsed = parse_command_line(argv);
  auto console_options = host.console;
  if (parsed) {
    console_options.json = parsed->flags.json;
    console_options.quiet = parsed->flags.quiet;
  }
  ui::Console console(host.in, host.out, host.err, console_options);
  if (!parsed)
    return usage_error(parsed.error(), argv, host, console);
  if (parsed->print) {
    host.out << *parsed->print << std::flush;
    return k_exit_ok;
  }
  sys::set_verbose(parsed->flags.verbose);
  const auto system = host.make_system(parsed->flags.root);
  Context context(host, *system, console, parsed->flags, argv);
  context.envelope.command = std::string(parsed->command->name);

  const auto outcome = parsed->command->run(context, parsed->arguments);
  int code = 0;
  if (outcome) {
    code = *outcome;
  } else {
    code = parsed->command->takes_command ? k_exit_run_failed : exit_code_of(outcome.error());
    context.envelope.error = outcome.error();
    if (!context.flags.json)
      console.error(outcome.error());
  }
  context.envelope.ok = code == k_exit_ok;
  if (context.flags.json)
    host.out << context.envelope.text();
  host.out << std::flush;
  if (!host.out && code == k_exit_ok) {
    console.error({ErrorCode::failed, "standard output could not be written", "", ""});
    return k_exit_failed;
  }
  return code;
}

int main(int argc, char** argv) {
  // A closed reader is a write error, not a silent death in the middle of a plan. A handler and not SIG_IGN: exec(2)
  // resets handlers, and `run` must hand on the disposition that it was given.
  if (std::signal(SIGPIPE, [](int) {}) == SIG_IGN)
    std::signal(SIGPIPE, SIG_IGN);
  std::ios::sync_with_stdio(false);
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry)
    environment.emplace_back(*entry);
  Host host{[](const std::string& root) { return std::make_shared<sys::RealSystem>(root); },
            std::cin,
            std::cout,
            std::cerr,
            ui::detect_console(),
            environment,
            working_directory()};
  return run(Argv(argv, argv + argc), host);
}

} // namespace sharefs::cli
