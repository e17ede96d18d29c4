#pragma once
// Two users with conda on a node that has mounted the share; what the tests of links start from.
#include "conda/link.hpp"
#include "fake_homes.hpp"

namespace sharefs::test {

inline constexpr const char* k_store = "/data/share/conda";
inline const std::string k_envs = "/home/alice/miniconda3/envs"; // of alice

struct LinkMachine : FakeHomes {
  LinkMachine() {
    mount("/", "ext4");
    mount("/data/share", "nfs4");
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
  request.users = {"alice", "bob"};
  request.conda = "miniconda3";
  request.shares = {{"share", "/data/share"}};
  return request;
}

inline conda::LinkRequest only_alice(conda::LinkRequest request) {
  request.users = {"alice"};
  return request;
}

inline conda::LinkRequest unlink_request(std::vector<std::string> environments = {"llm", "eval"}) {
  auto request = link_request(std::move(environments));
  request.verb = conda::LinkRequest::Verb::unlink;
  return request;
}

struct StepWords {
  std::string operator()(const plan::MakeDirectory& a) const { return who(a.actor) + "mkdir " + a.path; }
  std::string operator()(const plan::MakeLink& a) const { return who(a.actor) + "link " + a.path + " -> " + a.target; }
  std::string operator()(const plan::RemoveLink& a) const {
    return who(a.actor) + "unlink " + a.path + " -> " + a.target;
  }
  std::string operator()(const plan::SwapLink& a) const {
    return who(a.actor) + "swap " + a.path + " " + a.before + " -> " + a.after;
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
