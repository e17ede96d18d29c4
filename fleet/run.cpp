#include "fleet/run.hpp"

#include "base/json.hpp"
#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/identity/identity.hpp"
#include "sys/process/child.hpp"
#include "sys/process/interrupt.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <future>
#include <set>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace sharefs::fleet {

namespace {

using plan::PrivateDirectory;
constexpr const char* k_results = "results.jsonl";
constexpr const char* k_go = "go";                         ///< the nodes may begin as long as it exists
constexpr std::chrono::milliseconds k_shortest_pause{100}; ///< shortest pause between two checks for new answers
constexpr std::chrono::milliseconds k_progress_interval{1000};
/// The longest silence of a node that reports its progress each second, which it does while it waits for others, too. A
/// longer silence means that its sharefs is stopped and would never end.
constexpr std::chrono::seconds k_most_silent{60};
/// With a longer deadline than this a node is given up, too, if it has reported nothing at all: it would hold up all
/// others for hours. A shorter deadline ends it soon enough.
constexpr std::chrono::minutes k_short_work{10};
constexpr std::chrono::seconds k_first_word{120}; ///< longest time until a node begins: a login may be slow

std::string lines_of(const std::vector<Outcome>& outcomes) {
  std::string lines;
  for (const auto& outcome : outcomes)
    lines += to_json(outcome).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
  return lines;
}

/// Reads the exit code that the script has written; nullopt while it is at work.
std::optional<int> exit_code_in(const std::string& text) {
  return text.ends_with('\n') ? parse_number<int>(std::string_view(text).substr(0, text.size() - 1)) : std::nullopt;
}

class Runner {
 public:
  Runner(sys::System& system, const std::string& path, const Request& request, PrivateDirectory directory,
         const Listener& listener)
      : m_system(system), m_path(path), m_request(request), m_directory(std::move(directory)), m_listener(listener),
        m_batches(request.at_once ? std::vector<Batch>{{request.nodes}}
                                  : batches_for_changes(request.nodes, request.settings.canary, request.servers_last)) {
  }

  Result<Run> run() {
    TRY(write_files());
    std::size_t failures = 0;
    const auto all = m_request.nodes.size();
    m_most_failures = m_request.at_once ? all : m_request.settings.most_failures.of(all);
    for (std::size_t number = 0; number < m_batches.size(); ++number) {
      const auto& batch = m_batches[number];
      m_allowed = batch.must_succeed ? 0 : m_most_failures - std::min(m_most_failures, failures);
      if (batch.needs_all && !m_run.stopped && !m_run.interrupted)
        hold_back_servers();
      if (!m_run.stopped && !m_run.interrupted)
        if (const auto ran = run_batch(batch, number); !ran)
          stop(ran.error());
      for (const auto& node : batch.nodes) {
        const auto seen = m_answers.find(node.name);
        // A node for which the engine has brought no answer counts as a failure, too.
        m_failures += seen == m_answers.end() && !m_run.stopped && !m_run.interrupted ? 1 : 0;
        m_run.outcomes.push_back(seen != m_answers.end() ? std::move(seen->second) : unanswered(node));
      }
      m_run.stopped = m_run.stopped || m_failures > m_allowed;
      failures += m_failures;
    }
    return std::move(m_run);
  }

 private:
  /// Ends the run if a node on which the change is not done may still use the exports.
  void hold_back_servers() {
    std::vector<std::string> open;
    for (const auto& node : m_request.failed_check)
      if (!node.in(k_servers))
        open.push_back(node.name);
    for (const auto& outcome : m_run.outcomes)
      if (!is_good(outcome.state))
        open.push_back(outcome.node);
    if (!open.empty())
      stop(Error{ErrorCode::busy, fmt::format("the servers stay as they are: {} may still use them", fold(open)),
                 "mend them, then `sharefs nodes resume`; `--on 'all!NODE'` leaves out a machine that is gone for good",
                 ""});
  }

  Result<void> write_files() {
    const auto script = node_script(m_system.files().real_path(m_path), m_request.asking);
    TRY(m_directory.create("node.sh", script));
    for (const auto& node : m_request.nodes)
      if (!node.words.empty())
        TRY(m_directory.create(node.name + ".words", node.words + "\n"));
    for (const auto& [node, input] : m_request.inputs)
      TRY(m_directory.create(node + ".in", input));
    TRY(m_directory.create(k_go, ""));
    return write_outcomes(m_directory, m_request.before);
  }

  /// Lets no more nodes begin. On a full disk a file can be renamed, but not made.
  void stop(const std::optional<Error>& problem = std::nullopt) {
    if (!m_run.problem)
      m_run.problem = problem;
    if (!std::exchange(m_run.stopped, true))
      (void)m_directory.rename(k_go, "stopped");
  }

  Result<void> run_batch(const Batch& batch, std::size_t number) {
    m_failures = 0;
    if (batch.nodes.empty())
      return {};
    std::string names;
    for (const auto& node : batch.nodes)
      names += node.name + "\n";
    const auto list = fmt::format("nodes.{}", number);
    TRY(m_directory.create(list, names));
    const Fanout fanout{join_path(m_path, list), join_path(m_path, "node.sh"), task_text(m_request.asking),
                        m_request.settings.at_a_time, batch.nodes.size()};
    const auto& asking = m_request.asking;
    const auto rounds = batch.nodes.size() / std::max(m_request.settings.at_a_time, 1U) + 1;
    constexpr std::size_t k_stream_limit = 256U << 20U;
    sys::Command command;
    command.argv = argv_of(*m_request.settings.engine, fanout);
    command.deadline = rounds * (asking.connect + asking.command + std::chrono::seconds(10));
    command.ends_with_us = true; // if sharefs is killed, the engine must not begin further nodes
    command.environment["PATH"] = m_request.settings.path;
    if (m_request.settings.engine->joins_streams)
      command.output_limit = k_stream_limit;
    auto engine = std::async(std::launch::async, [&] { return m_system.run(command); });
    constexpr int k_part = 10; // at most a tenth of the time is spent on checking many files
    std::chrono::steady_clock::duration pause = k_shortest_pause;
    while (engine.wait_for(pause) != std::future_status::ready) {
      const auto begin = std::chrono::steady_clock::now();
      if (!m_request.settings.engine->joins_streams)
        read_answers(batch);
      pause = std::max<std::chrono::steady_clock::duration>(k_shortest_pause,
                                                            k_part * (std::chrono::steady_clock::now() - begin));
    }
    const auto ended = engine.get();
    m_run.interrupted = sys::interrupted();
    if (m_request.settings.engine->joins_streams && ended) {
      read_stream(batch, *ended);
      return {};
    }
    read_answers(batch);
    if (!ended)
      return m_run.interrupted ? Result<void>() : fail(ended.error());
    const bool is_complete =
        std::ranges::all_of(batch.nodes, [&](const Node& node) { return m_answers.contains(node.name); });
    if (ended->ok() || is_complete || m_run.stopped)
      return {};
    return fail(
        ErrorCode::failed,
        fmt::format("{} ended with {}: {}", m_request.settings.engine->name, ended->exit_code, trim(ended->err)),
        fmt::format("`df -h {0}; df -i {0}` show whether there is room for the answers", parent_path(m_path)));
  }

  /// Reads the answers that are complete by now.
  void read_answers(const Batch& batch) {
    const auto names = m_directory.names();
    if (!names)
      return stop(names.error());
    const std::set<std::string_view> there(names->begin(), names->end());
    std::vector<Outcome> fresh;
    const bool reads_progress = m_listener.progressed && sys::Clock::now() >= m_next_progress;
    if (reads_progress)
      m_next_progress = sys::deadline_in(k_progress_interval);
    for (const auto& node : batch.nodes) {
      if (m_answers.contains(node.name))
        continue;
      if (reads_progress && there.contains(node.name + ".err")) {
        const auto line = last_line_of(node.name + ".err");
        if (!line.empty())
          m_listener.progressed(node.name, line);
        give_up_silent(node.name, line);
      }
      if (!there.contains(node.name + ".end"))
        continue;
      const auto end = m_directory.read(node.name + ".end");
      const auto code = end ? exit_code_in(*end) : std::nullopt;
      if (!code)
        continue;
      const auto out = m_directory.read(node.name + ".out").value_or("");
      Ended ended{code, m_directory.read(node.name + ".err").value_or(""), written_at(node.name + ".end")};
      ended.cut = out.size() >= k_output_limit || ended.errors.size() >= k_output_limit;
      if (m_request.read) {
        fresh.push_back(m_request.read(node, out, ended));
        continue;
      }
      FrameReader reader;
      reader.add(out);
      fresh.push_back(outcome_of(node, reader.answer(node.name), ended));
      if (m_last_lines[node.name].is_given_up && !is_good(fresh.back().state)) {
        fresh.back().state = State::timed_out;
        fresh.back().why = "it has reported nothing for more than a minute: it may be stopped, or wait for a server";
      }
    }
    record(std::move(fresh));
  }

  /// Ends a silent node: one that no longer reports its progress, or has not even begun. Only what its script started
  /// is ended (see node_script()); the script goes on and writes the exit code.
  void give_up_silent(const std::string& node, const std::string& line) {
    const auto frame = last_line_of(node + ".out");
    const bool has_begun = m_request.read || !frame.empty();
    const LastLine now{frame + line,
                       sys::deadline_in(has_begun ? k_most_silent : m_request.asking.connect + k_first_word)};
    auto& last = m_last_lines.try_emplace(node, now).first->second;
    if (last.line != now.line && !last.is_given_up)
      last = now;
    if (last.is_given_up || sys::Clock::now() < last.until)
      return;
    const bool has_to_report = !m_request.read && m_request.asking.command > k_short_work;
    if (line.starts_with("{\"progress\"") || !has_begun || has_to_report) {
      const auto script = std::string(trim(m_directory.read(node + ".pid").value_or("")));
      const auto children = m_system.files().read(fmt::format("/proc/{0}/task/{0}/children", script)); // proc(5)
      for (const auto& word : split_words(children.value_or("")))
        if (const auto pid = parse_number<pid_t>(word); pid && ::kill(*pid, SIGTERM) == 0)
          last.is_given_up = true;
    }
  }

  /// Returns the last complete line of a file; of a line longer than 2 KiB only the end.
  [[nodiscard]] std::string last_line_of(const std::string& name) const {
    const auto file = m_directory.open_file(name, O_RDONLY);
    const auto size = file ? ::lseek(file->get(), 0, SEEK_END) : 0;
    std::array<char, 2048> bytes{};
    const auto from = std::max<off_t>(0, size - static_cast<off_t>(bytes.size()));
    const auto count = size > 0 ? ::pread(file->get(), bytes.data(), bytes.size(), from) : 0;
    std::string_view text(bytes.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
    text = text.substr(0, text.rfind('\n') + 1);
    const auto lines = split_lines(text);
    return lines.empty() ? "" : lines.back();
  }

  /// Returns when an answer was complete: the time of the file that is written last.
  [[nodiscard]] std::int64_t written_at(const std::string& name) const {
    const auto file = m_directory.open_file(name, O_RDONLY);
    struct stat status{};
    if (!file || ::fstat(file->get(), &status) != 0)
      return 0;
    constexpr std::int64_t k_thousand = 1000, k_million = 1'000'000;
    return status.st_mtim.tv_sec * k_thousand + status.st_mtim.tv_nsec / k_million;
  }

  /// A task of one node can print frames in the name of another one. Read from both ends, the two answers differ.
  void read_stream(const Batch& batch, const sys::Completed& ended) {
    auto lines = split_lines(ended.out);
    FrameReader reader, backwards;
    reader.add(ended.out);
    std::ranges::reverse(lines);
    for (const auto& line : lines)
      backwards.add(line);
    std::vector<Outcome> fresh;
    for (const auto& node : batch.nodes) {
      auto answer = reader.answer(node.name);
      const auto first = backwards.answer(node.name);
      if (answer.exit_code != first.exit_code || answer.document != first.document) {
        fresh.push_back({.node = node.name,
                         .state = State::failed,
                         .why = "two answers came in its name, and one of them is another node's",
                         .hint = "reach it by ssh: leave `--engine srun` out"});
        continue;
      }
      auto outcome = outcome_of(node, std::move(answer), {std::nullopt, ""});
      if (outcome.state == State::not_tried) { // a single dead slurmd ends the step on all nodes
        outcome.state = State::unreachable;
        outcome.why = "no answer in the step of srun";
        outcome.hint = to_utf8(std::string(trim(ended.err)).substr(0, 200));
      }
      fresh.push_back(std::move(outcome));
    }
    record(std::move(fresh));
  }

  /// Writes the outcomes to the disk first, then reports them.
  void record(std::vector<Outcome> fresh) {
    auto lines = m_request.keeps_record ? lines_of(fresh) : std::string();
    if (!lines.empty()) {
      lines.pop_back(); // append() adds the last line end
      if (const auto kept = m_directory.append(k_results, lines); !kept)
        stop(kept.error());
    }
    for (auto& outcome : fresh) {
      m_listener.answered(outcome);
      m_failures += is_good(outcome.state) ? 0 : 1;
      m_answers.emplace(outcome.node, std::move(outcome));
    }
    if (m_failures > m_allowed)
      stop();
  }

  /// Returns the outcome of a node without an answer: it was not tried, or it had begun and not ended.
  Outcome unanswered(const Node& node) {
    const auto out = m_directory.read(node.name + ".out");
    FrameReader reader;
    reader.add(out.value_or(""));
    auto outcome =
        outcome_of(node, reader.answer(node.name), {.exit_code = std::nullopt, .errors = "", .begun = out.has_value()});
    if (outcome.state == State::not_tried && m_run.problem)
      outcome.why = to_utf8(m_run.problem->message);
    return outcome;
  }

  sys::System& m_system;
  std::string m_path;
  const Request& m_request;
  PrivateDirectory m_directory;
  const Listener& m_listener;
  std::vector<Batch> m_batches;
  sys::Deadline m_next_progress{};
  std::map<std::string, Outcome> m_answers;
  struct LastLine {        ///< of a node that is still at work
    std::string line;      ///< of its answer and of its messages
    sys::Deadline until{}; ///< by when another line must come
    bool is_given_up = false;
  };
  std::map<std::string, LastLine> m_last_lines;
  std::size_t m_most_failures = 0; ///< in all batches
  std::size_t m_allowed = 0;       ///< failures in this batch that do not end the run
  std::size_t m_failures = 0;      ///< in this batch
  Run m_run;
};

} // namespace

std::size_t MostFailures::of(std::size_t nodes) const {
  constexpr std::size_t k_whole = 100;
  return is_percent ? nodes * count / k_whole : count;
}

std::optional<MostFailures> parse_most_failures(std::string_view text) {
  constexpr std::size_t k_whole = 100;
  const bool is_percent = text.ends_with('%');
  const auto count = parse_number<std::size_t>(text.substr(0, text.size() - (is_percent ? 1 : 0)));
  if (!count || (is_percent && *count > k_whole))
    return std::nullopt;
  return MostFailures{*count, is_percent};
}

std::vector<Batch> batches_for_changes(const std::vector<Node>& nodes, std::size_t canary, bool servers_last) {
  std::vector<Batch> batches{{{}, true, servers_last}, {{}, true}, {}, {}};
  std::vector<Node> others;
  for (const auto& node : nodes)
    node.in(k_servers) ? batches[0].nodes.push_back(node) : others.push_back(node);
  constexpr std::size_t k_tenth = 10;
  const auto first = std::min(canary, others.size());
  const auto second = std::min(first + others.size() / k_tenth, others.size());
  for (std::size_t i = 0; i < others.size(); ++i)
    batches[i < first ? 1 : i < second ? 2 : 3].nodes.push_back(others[i]);
  if (servers_last)
    std::ranges::rotate(batches, batches.begin() + 1);
  std::erase_if(batches, [](const Batch& batch) { return batch.nodes.empty(); });
  return batches;
}

std::string new_run_id(std::chrono::seconds ago) {
  using namespace std::chrono;
  const auto at = system_clock::now() - ago;
  const auto second = floor<seconds>(at);
  std::array<char, 4> within{}; // the microsecond in base 36, so that names of runs in the same second sort by time
  const auto* end =
      std::to_chars(within.begin(), within.end(), duration_cast<microseconds>(at - second).count(), 36).ptr;
  return fmt::format("{:%Y%m%d-%H%M%S}-{:0>4}", fmt::gmtime(system_clock::to_time_t(second)),
                     std::string_view(within.begin(), end));
}

std::string new_run_id(const std::string& newest) {
  auto id = new_run_id();
  if (id > newest)
    return id;
  constexpr int k_digits = 4, k_base = 36;
  const auto begin = newest.size() - std::min<std::size_t>(newest.size(), k_digits);
  unsigned within = 0;
  std::from_chars(newest.data() + begin, newest.data() + newest.size(), within, k_base);
  std::array<char, 8> next{};
  const auto* end = std::to_chars(next.begin(), next.end(), within + 1, k_base).ptr;
  return fmt::format("{}{:0>4}", newest.substr(0, begin), std::string_view(next.begin(), end));
}

bool is_here(const sys::Identity& identity, const Node& node) {
  return sys::is_this_host(identity, node.name) || (!node.address.empty() && sys::is_this_host(identity, node.address));
}

Result<Run> run_on_nodes(sys::System& system, const std::string& directory, const Request& request,
                         const Listener& listener) {
  TRY_ASSIGN(auto made, PrivateDirectory::make(system.files(), directory));
  auto whole = request;
  const auto identity = system.identity();
  for (const auto& node : request.nodes)
    if (!request.asking.always_by_ssh && is_here(identity, node))
      whole.asking.here.push_back(node.name);
  whole.asking.command = request.settings.command;
  whole.asking.program = system.entry({.path = "/proc/self/exe"}).link_target;
  if (const auto text = request.ssh_config.empty() ? ssh_config_of(request.nodes) : request.ssh_config; !text.empty()) {
    TRY(made.create("ssh_config", text));
    whole.asking.ssh_config = join_path(directory, "ssh_config");
  }
  return Runner(system, directory, whole, std::move(made), listener).run();
}

Result<void> write_outcomes(const PrivateDirectory& directory, const std::vector<Outcome>& outcomes) {
  return directory.create(k_results, lines_of(outcomes));
}

Result<std::map<std::string, Outcome>> read_outcomes(sys::System& system, const std::string& directory) {
  const auto opened = PrivateDirectory::open(system.files(), directory);
  if (!opened || !*opened)
    return fail(!opened ? opened.error() : Error{ErrorCode::not_found, directory + ": no such run", "", ""});
  TRY_ASSIGN(const auto text, (*opened)->read(k_results));
  std::map<std::string, Outcome> outcomes;
  for (const auto& line : split_lines(text)) {
    const auto json = read_json<nlohmann::ordered_json>(line, {.bytes = 32U << 20U, .members = k_most_members});
    if (!json || !json->is_object()) // the line was cut off when this machine went down
      continue;
    Outcome outcome{.node = text_in(*json, "name"),
                    .state = state_from(text_in(*json, "state")),
                    .why = text_in(*json, "why"),
                    .hint = text_in(*json, "hint"),
                    .document = member(*json, "document")};
    outcomes.insert_or_assign(outcome.node, std::move(outcome));
  }
  return outcomes;
}

} // namespace sharefs::fleet
