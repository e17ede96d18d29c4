#pragma once
// Homes in a temporary directory, and two users with conda on a node that has mounted the share.
#include "base/path.hpp"
#include "conda/link.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"

#include <cerrno>
#include <filesystem>
#include <set>

namespace sharefs::test {

inline constexpr const char* k_store = "/data/share/conda";
inline const std::string k_envs = "/home/alice/miniconda3/envs"; // of alice

/// Real files, looked at as whichever user asks.
class FakeHomes {
 public:
  FakeHomes() {
    machine().identity.uid = 0;
    machine().identity.user = "root";
    machine().on_entry = [this](const sys::EntryQuery& query, const std::optional<sys::User>& as) {
      return is_closed(query.path, as ? as->name : "");
    };
  }
  operator sys::System&() { return m_system; } // NOLINT(google-explicit-constructor): tests read better
  Machine& machine() { return m_system.machine; }
  sys::Identity& self() { return machine().identity; }
  [[nodiscard]] const std::vector<std::string>& asked() const { return m_system.asked(); }

  void directory(const std::string& path) { std::filesystem::create_directories(m_root.path() + path); }
  void environment(const std::string& path) { directory(path + "/conda-meta"); }
  /// In place of whatever is there.
  void link(const std::string& path, const std::string& target) {
    directory(parent_path(path));
    std::filesystem::remove_all(m_root.path() + path);
    std::filesystem::create_symlink(target, m_root.path() + path);
  }
  void file(const std::string& path, const std::string& content = "text") {
    std::filesystem::remove_all(m_root.path() + path);
    m_root.write(path.substr(1), content);
  }
  sys::User& user(const std::string& name, uid_t uid) {
    directory("/home/" + name);
    return machine().users.emplace_back(sys::User{name, uid, uid, {uid}, "/home/" + name});
  }
  sys::User& user(const std::string& name) { return *std::ranges::find(machine().users, name, &sys::User::name); }
  void mount(const std::string& target) { machine().add_mount("server:" + target, target, "nfs"); }
  void hang(const std::string& path) {
    sys::Entry entry;
    entry.error_number = ETIMEDOUT;
    entry.detail = "no answer within 3 s";
    machine().entries[path] = entry;
  }
  /// What lies there, to be changed.
  sys::Entry& entry(const std::string& path) {
    return machine().entries[path] = m_system.entry({.path = path, .list = true});
  }
  std::map<std::string, std::set<std::string>> deny; ///< user ("" is root) -> paths

 private:
  std::optional<sys::Entry> is_closed(const std::string& path, const std::string& who) const {
    const auto denied = deny.find(who);
    if (denied == deny.end() ||
        std::ranges::none_of(denied->second, [&](const auto& closed) { return is_under(path, closed); }))
      return std::nullopt;
    sys::Entry entry;
    entry.error_number = EACCES;
    return entry;
  }

  TemporaryDirectory m_root;
  ScriptedSystem m_system{m_root.path()};
};

struct LinkMachine : FakeHomes {
  LinkMachine() {
    mount("/data/share");
    environment("/data/share/conda/llm");
    environment("/data/share/conda/eval");
    for (const auto& [name, uid] : {std::pair{"alice", 1000U}, {"bob", 1001U}}) {
      user(name, uid);
      directory(conda(name) + "/conda-meta");
      directory(envs(name));
    }
  }
  static std::string conda(const std::string& name) { return "/home/" + name + "/miniconda3"; }
  static std::string envs(const std::string& name) { return conda(name) + "/envs"; }
};

inline conda::LinkRequest link_request(std::vector<std::string> environments = {"llm", "eval"}) {
  conda::LinkRequest request;
  request.store = k_store;
  request.environments = std::move(environments);
  request.homes = {{{"alice", "bob"}, "miniconda3"}};
  request.shares = {{"share", "/data/share"}, {"other", "/data/other"}};
  return request;
}

inline conda::LinkRequest only_alice(conda::LinkRequest request) {
  request.homes.front().users = {"alice"};
  return request;
}

inline conda::LinkRequest unlink_request(std::vector<std::string> environments = {"llm", "eval"}) {
  auto request = link_request(std::move(environments));
  request.verb = conda::LinkRequest::Verb::unlink;
  return request;
}

struct StepWords {
  std::string operator()(const plan::Directory& a) const {
    return who(a.actor) + (a.after ? "mkdir " : "rmdir ") + a.path;
  }
  std::string operator()(const plan::Link& a) const {
    if (a.before && a.after)
      return who(a.actor) + "swap " + a.path + " " + *a.before + " -> " + *a.after;
    return who(a.actor) + (a.after ? "link " : "unlink ") + a.path + " -> " + (a.after ? *a.after : a.before.value());
  }
  std::string operator()(const plan::File& a) const {
    if (!a.after)
      return who(a.actor) + "remove " + a.path;
    return who(a.actor) + "write " + a.path + (a.before ? "" : " anew") + ": " + *a.after;
  }
  std::string operator()(const plan::Rename& a) const { return who(a.actor) + "rename " + a.from + " " + a.to; }
  std::string operator()(const auto&) const { return "something else"; }
  static std::string who(const std::optional<plan::Actor>& actor) {
    return actor ? actor->user.name + "@" + actor->beneath + ": " : "?: ";
  }
};

/// "alice@/home/alice: link X -> Y" for each step, as short as a test can be read.
inline std::vector<std::string> steps_of(const plan::Plan& plan) {
  std::vector<std::string> words;
  for (const auto& step : plan.steps)
    words.push_back(std::visit(StepWords{}, step.action));
  return words;
}

inline std::vector<std::string> plan_of(FakeHomes& machine, const conda::LinkRequest& request) {
  const auto state = conda::probe(machine, request);
  return state ? steps_of(conda::plan(*state, request)) : std::vector<std::string>{state.error().message};
}

/// "CODE severity subject" of each diagnosis.
inline std::vector<std::string> verdicts_of(FakeHomes& machine, const conda::LinkRequest& request) {
  const auto state = conda::probe(machine, request);
  std::vector<std::string> words;
  if (state)
    for (const auto& diagnosis : conda::diagnose(*state, request))
      words.push_back(diagnosis.code + " " + to_string(diagnosis.severity) + " " + diagnosis.subject);
  return words;
}

} // namespace sharefs::test
