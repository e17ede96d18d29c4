#include "cli/app.hpp"

#include "base/exception.hpp"
#include "base/path.hpp"
#include "cli/on_nodes.hpp"
#include "cli/parser.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"
#include "sys/real_system.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <span>
#include <string_view>
#include <system_error>
#include <unistd.h>

namespace sharefs::cli {

namespace {

/// Returns the directory from which the kernel resolves relative paths. $PWD is not used: to check it one would have to
/// stat it.
std::string working_directory() {
  std::array<char, 4096> buffer{};
  return ::getcwd(buffer.data(), buffer.size()) == nullptr || buffer[0] != '/' ? k_no_directory : buffer.data();
}

bool wants_json(const Argv& argv) {
  const auto dashes = std::ranges::find(argv, "--");
  return std::find(argv.begin(), dashes, "--json") != dashes;
}

/// True if the command is `run`, which has the exit codes of env(1): its own failures, also usage errors, differ from
/// those of its child. Allocates nothing.
template <class Word> bool is_run(std::span<Word> argv) {
  bool is_value = true; // the name of the program is skipped as the value of an option is
  for (const std::string_view word : argv) {
    if (!is_value && !word.starts_with('-'))
      return word == "run";
    is_value = !is_value && std::ranges::any_of(global_options(), [&](const OptionSpec& option) {
      return option.names == word && !option.value.empty();
    });
  }
  return false;
}

/// Reports a usage error. There is no command yet; with --json the error is printed as one JSON document, too.
int report_usage_error(const Error& error, const Argv& argv, Host& host, ui::Console& console) {
  if (wants_json(argv)) {
    ui::Envelope envelope;
    envelope.ok = false;
    envelope.error = error;
    host.out << envelope.text();
  } else {
    console.error(error);
  }
  return is_run(std::span(argv)) ? k_exit_run_failed : exit_code_of(error);
}

/// Checks `--root`. It must be an existing directory; otherwise an installation would be made from nothing.
Result<void> check_root(GlobalFlags& flags, Host& host) {
  if (flags.root == "/")
    return {};
  flags.root = normalize_path(flags.root, host.working_directory);
  const auto entry = host.make_system("/")->entry({.path = flags.root, .follow = true});
  if (entry.kind == sys::EntryKind::directory)
    return {};
  if (entry.kind == sys::EntryKind::unknown)
    return fail(ErrorCode::usage, "--root: " + entry.error().message);
  return fail(ErrorCode::usage, "--root: there is no directory " + flags.root);
}

int run_command(Parsed& parsed, const Argv& argv, Host& host, ui::Console& console) {
  sys::set_verbose(parsed.flags.verbose);
  if (auto checked = check_root(parsed.flags, host); !checked)
    return report_usage_error(checked.error(), argv, host, console);
  const auto system = host.make_system(parsed.flags.root);
  Context context(host, *system, console, parsed.flags, argv);
  context.envelope.command = std::string(parsed.command->name);

  const auto& spec = *parsed.command;
  std::optional<Result<int>> elsewhere;
  if (!parsed.flags.on.empty())
    elsewhere = run_on_nodes(context, spec, parsed.arguments);
  else if (spec.elsewhere != nullptr)
    elsewhere = spec.elsewhere(context, parsed.arguments);
  const auto outcome = elsewhere ? *elsewhere : spec.run(context, parsed.arguments);
  const bool becomes_it = spec.takes_command && !spec.changes; // the command that it runs
  const int code = outcome ? *outcome : becomes_it ? k_exit_run_failed : exit_code_of(outcome.error());
  if (!outcome) {
    auto& error = context.envelope.error.emplace(outcome.error());
    error.hint = add_config(context, std::move(error.hint));
    if (!context.flags.json)
      console.error(error);
  }
  context.envelope.ok = code == k_exit_ok;
  if (context.flags.json && !context.answered)
    host.out << context.envelope.text();
  return code;
}

/// Set when memory has run out, because there may be too little of it even for the exception that says so.
std::atomic<bool> g_memory_ran_out = false;

/// The handler of std::terminate(): memory or processes have run out where no exception is caught: before main(), in a
/// thread or in a destructor. It allocates no memory.
[[noreturn]] void exit_out_of_resources(int code) noexcept {
  constexpr std::string_view k_out_of_memory = "error: out of memory\n";
  const auto thrown = std::current_exception();
  std::string_view message = !thrown && g_memory_ran_out ? k_out_of_memory : "";
  try {
    if (thrown)
      std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    message = k_out_of_memory;
  } catch (const std::system_error&) {
    message = "error: no further process or thread can be started\n";
  } catch (...) { // NOLINT(bugprone-empty-catch): a bug of sharefs: abort() shows its place
  }
  if (message.empty())
    std::abort();
  sys::write_all(2, message);
  ::_exit(code);
}

/// It runs before anything that allocates memory: glibc gives main()'s arguments to constructors.
[[gnu::constructor(101)]] void set_terminate_handler(int argc, char** argv) {
  if (is_run(std::span(argv, static_cast<std::size_t>(argc))))
    std::set_terminate([] { exit_out_of_resources(k_exit_run_failed); });
  else
    std::set_terminate([] { exit_out_of_resources(k_exit_failed); });
  std::set_new_handler([] {
    g_memory_ran_out = true;
    throw std::bad_alloc();
  });
}

/// Set by SIGPIPE, when nobody reads our standard output any more; not if SIGPIPE was ignored from the start.
volatile std::sig_atomic_t g_pipe_closed = 0;

} // namespace

int run(const Argv& argv, Host& host) {
  ui::Console console(host.in, host.out, host.err, host.console);
  int code = k_exit_failed;
  try {
    auto parsed = parse_command_line(argv, text_width(host.console.width));
    if (!parsed)
      return report_usage_error(parsed.error(), argv, host, console);
    console.set_flags(parsed->flags.json, parsed->flags.quiet, parsed->flags.verbose);
    if (parsed->print)
      host.out << *parsed->print;
    code = parsed->print ? k_exit_ok : run_command(*parsed, argv, host, console);
  } catch (...) {
    console.error({ErrorCode::failed, reason_of(std::current_exception()), "", ""});
    code = is_run(std::span(argv)) ? k_exit_run_failed : k_exit_failed;
  }
  host.out << std::flush;
  if (!host.out && g_pipe_closed != 0)
    return code == k_exit_ok ? k_exit_pipe_closed : code;
  if (!host.out && code == k_exit_ok) {
    console.error({ErrorCode::failed, "standard output could not be written", "", ""});
    return k_exit_failed;
  }
  return code;
}

int main(int argc, char** argv) {
  if (!sys::occupy_standard_descriptors())
    return k_exit_failed;
  // A reader that closes the pipe must not end a plan halfway. A handler is set instead of SIG_IGN, because exec(2)
  // resets handlers, and `run` must pass on the disposition that it found.
  if (std::signal(SIGPIPE, [](int) { g_pipe_closed = 1; }) == SIG_IGN)
    std::signal(SIGPIPE, SIG_IGN);
  sys::report_file_limit_as_error();
  std::ios::sync_with_stdio(false);
  auto inherited = sys::WorkerInheritance::take();
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry)
    environment.emplace_back(*entry);
  Host host{[](const std::string& root) { return std::make_shared<sys::RealSystem>(root); },
            std::cin,
            std::cout,
            std::cerr,
            ui::detect_console(),
            std::move(environment),
            working_directory(),
            std::move(inherited)};
  const Argv words(argv, argv + argc);
  if (const auto code = run_framed(words, host))
    return *code;
  return run(words, host);
}

} // namespace sharefs::cli
