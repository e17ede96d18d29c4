#include "cachefix/facts.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace sharefs::cachefix {
namespace {

constexpr std::chrono::milliseconds k_look_deadline{1500}; // for one look at a share
constexpr std::chrono::milliseconds k_parser_deadline{2000};
constexpr std::size_t k_most_text = 4U << 20U;

} // namespace

Prober::Prober(sys::System& system, LocalChoice choice)
    : m_system(system), m_choice(std::move(choice)), m_glance(system.glance()) {}

Facts Prober::begin(std::vector<std::string> environment, std::string directory) {
  Facts facts;
  facts.environment = std::move(environment);
  facts.directory = std::move(directory);
  const bool has_home = std::any_of(facts.environment.begin(), facts.environment.end(),
                                    [](const std::string& entry) { return entry.starts_with("HOME=/"); });
  if (!has_home)
    facts.home = identity().home;
  return facts;
}

const sys::Identity& Prober::identity() {
  if (!m_identity)
    m_identity = m_system.identity();
  return *m_identity;
}

bool Prober::glance_suffices(const Questions& questions) {
  const auto told = [this](const std::string& path) { return m_glance.at(path).has_value(); };
  return !questions.mounts && !questions.local && questions.listings.empty() && questions.leftovers.empty() &&
         std::all_of(questions.places.begin(), questions.places.end(), told) &&
         std::all_of(questions.texts.begin(), questions.texts.end(), told);
}

Result<void> Prober::read_mounts(Facts& facts) {
  auto mounts = m_system.mounts();
  if (!mounts)
    return fail(mounts.error());
  m_mounts = std::move(*mounts);
  m_resolver.emplace(sys::make_resolver(m_system, m_mounts, k_look_deadline));
  facts.any_shared = m_resolver->any_shared();
  return {};
}

sys::Place Prober::place(const std::string& path) {
  return m_resolver ? m_resolver->resolve(path) : m_glance.at(path).value_or(sys::Place{});
}

Result<void> Prober::answer(const Questions& questions, Facts& facts) {
  if (!m_resolver && !glance_suffices(questions))
    if (auto read = read_mounts(facts); !read)
      return read;
  for (const std::string& path : questions.places)
    facts.places.emplace(path, place(path));
  for (const std::string& path : questions.texts)
    facts.texts.emplace(path, read(path));
  for (const std::string& path : questions.listings)
    facts.listings.emplace(path, list(path));
  for (const std::string& text : questions.trees) {
    sys::Command command;
    command.argv = {"shfmt", "--tojson", "-ln", "bash"};
    command.input = text.empty() ? "\n" : text;
    command.deadline = k_parser_deadline;
    command.output_limit = 32U << 20U;
    const auto done = m_system.run(command);
    facts.trees.emplace(text, done && done->ok() ? std::optional<std::string>(done->out) : std::nullopt);
  }
  for (const std::string& path : questions.leftovers)
    facts.leftovers.emplace(path, find_leftovers(path));
  if (questions.local && !facts.local)
    facts.local = find_local_root(m_system, *m_resolver, m_choice, identity());
  return {};
}

std::optional<sys::PathFact> Prober::inspect(sys::PathQuery query) {
  sys::InspectRequest request;
  request.deadline = k_look_deadline;
  query.follow = true;
  request.queries.push_back(std::move(query));
  auto facts = m_system.inspect(request);
  return facts && !facts->empty() ? std::optional<sys::PathFact>(std::move(facts->front())) : std::nullopt;
}

std::optional<std::string> Prober::read(const std::string& path) {
  const sys::Place at = place(path);
  if (!at.shared) {
    const auto text = m_system.files().read_if_exists(at.resolved, k_most_text);
    return text ? *text : std::nullopt;
  }
  sys::PathQuery query;
  query.path = at.resolved;
  query.read_bytes = k_most_text;
  const auto seen = inspect(std::move(query));
  const bool whole = seen && seen->kind == sys::PathKind::file && seen->error_number == 0 && seen->size <= k_most_text;
  return whole ? std::optional<std::string>(seen->content) : std::nullopt;
}

std::optional<std::vector<std::string>> Prober::list(const std::string& path) {
  const sys::Place at = place(path);
  if (!at.doubt.empty())
    return std::nullopt;
  if (at.kind == sys::PathKind::missing)
    return std::vector<std::string>{};
  sys::PathQuery query;
  query.path = at.resolved;
  query.list = true;
  const auto seen = inspect(std::move(query));
  if (!seen || seen->kind == sys::PathKind::unknown ||
      (seen->kind == sys::PathKind::directory && seen->error_number != 0))
    return std::nullopt;
  return seen->entries;
}

/// `datasets` builds in CACHE/BUILDER/CONFIG/VERSION/HASH.incomplete: level by level, one child for each.
std::vector<std::string> Prober::find_leftovers(const std::string& path) {
  constexpr int k_levels = 4;
  constexpr std::size_t k_most_directories = 500;
  std::vector<std::string> found;
  std::vector<std::string> level{place(path).resolved};
  for (int depth = 0; depth < k_levels && !level.empty(); ++depth) {
    sys::InspectRequest request;
    request.deadline = k_look_deadline;
    for (const std::string& directory : level) {
      sys::PathQuery query;
      query.path = directory;
      query.list = true;
      request.queries.push_back(std::move(query));
    }
    level.clear();
    const auto facts = m_system.inspect(request);
    if (!facts)
      return found;
    for (const sys::PathFact& fact : *facts)
      for (const std::string& name : fact.entries) {
        if (name.ends_with(".incomplete"))
          found.push_back(join_path(fact.path, name));
        else if (level.size() < k_most_directories && !name.starts_with("models--") && name.find('.') != 0 &&
                 !name.ends_with(".lock") && !name.ends_with(".arrow") && !name.ends_with(".json"))
          level.push_back(join_path(fact.path, name));
      }
  }
  return found;
}

} // namespace sharefs::cachefix
