#include "cli/commands/conda/link.hpp"

#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::cli;
using Verb = conda::LinkRequest::Verb;

namespace {

config::Config configuration() {
  config::Config config;
  config.file = "sharefs.yaml";
  config.conda = config::Conda{};
  config.conda->store = "/data/share/conda";
  for (const auto* name : {"llm", "eval"})
    config.conda->envs.push_back({name, {}, {}, {}, {}});
  config.conda->homes = {{{"alice", "bob"}, "miniconda3", {}}};
  return config;
}

sys::Identity identity(const std::string& user, uid_t uid) {
  sys::Identity self;
  self.user = user;
  self.uid = uid;
  return self;
}

Arguments arguments(std::vector<std::string> names, std::set<std::string, std::less<>> flags = {},
                    std::vector<std::string> users = {}) {
  Arguments given;
  given.positional = std::move(names);
  given.flags = std::move(flags);
  if (!users.empty())
    given.values["user"] = std::move(users);
  return given;
}

const auto k_root = identity("root", 0);

} // namespace

TEST_CASE("sharefs.yaml and arguments -> a request to link", "[conda]") {
  const auto all = conda_link_request(configuration(), arguments({}, {"all", "backup"}), k_root, Verb::link);
  REQUIRE(all);
  CHECK(all->environments == std::vector<std::string>{"llm", "eval"});
  CHECK(all->homes.front().users == std::vector<std::string>{"alice", "bob"});
  CHECK(all->store == "/data/share/conda");
  CHECK(all->homes.front().conda == "miniconda3");
  CHECK(all->all);
  CHECK(all->backup);

  const auto one = conda_link_request(configuration(), arguments({"old"}, {}, {"bob"}), k_root, Verb::unlink);
  REQUIRE(one);
  CHECK(one->environments == std::vector<std::string>{"old"}); // unlink takes any name
  CHECK(one->homes.front().users == std::vector<std::string>{"bob"});
  CHECK_FALSE(one->all);
  CHECK_FALSE(one->backup);
}

TEST_CASE("each user's own place of conda", "[conda]") {
  using Homes = conda::Homes;
  auto config = configuration();
  config.conda->homes.push_back({{"carol"}, "/opt/carol/mambaforge", {}});
  config.conda->homes.push_back({{"dora", "eve"}, "/opt/conda", {}});
  const auto homes = [&](const sys::Identity& self, std::vector<std::string> users) {
    const auto request = conda_link_request(config, arguments({}, {"all"}, std::move(users)), self, Verb::link);
    INFO((request ? "" : request.error().message));
    REQUIRE(request);
    return request->homes;
  };
  const Homes below{{"alice", "bob"}, "miniconda3"};
  const Homes of_carol{{"carol"}, "/opt/carol/mambaforge"};
  CHECK(homes(k_root, {}) == std::vector<Homes>{below, of_carol, {{"dora", "eve"}, "/opt/conda"}});
  CHECK(homes(k_root, {"bob", "carol"}) == std::vector<Homes>{{{"bob"}, "miniconda3"}, of_carol});
  CHECK(homes(identity("alice", 1000), {}) == std::vector<Homes>{below}); // bob's is said to be left to root
  CHECK(homes(identity("carol", 1002), {"carol"}) == std::vector<Homes>{of_carol});
  const auto one = conda_link_request(config, arguments({}, {"all"}, {"dora"}), k_root, Verb::link);
  REQUIRE_FALSE(one);
  CHECK(one.error().message == "/opt/conda is one installation for several users: `--user` has no meaning");
}

TEST_CASE("requests that are refused", "[conda]") {
  struct Row {
    std::string why;
    void (*change)(config::Config&);
    Arguments given;
    sys::Identity self;
    ErrorCode code;
    std::string words; ///< of message or hint
  };
  const auto as_is = [](config::Config&) {};
  const auto alice = identity("alice", 1000);
  const std::vector<Row> rows{
      {"no section", [](config::Config& c) { c.conda.reset(); }, arguments({}, {"all"}), k_root, ErrorCode::config,
       "conda:"},
      {"nothing named", as_is, arguments({}), k_root, ErrorCode::usage, "llm, eval"},
      {"both", as_is, arguments({"llm"}, {"all"}), k_root, ErrorCode::usage, "exclude"},
      {"unknown environment", as_is, arguments({"lllm"}), k_root, ErrorCode::usage, "did you mean `llm`?"},
      {"a path", as_is, arguments({"../llm"}), k_root, ErrorCode::usage, ""},
      {"no environments", [](config::Config& c) { c.conda->envs.clear(); }, arguments({}, {"all"}), k_root,
       ErrorCode::config, "conda.envs"},
      {"unknown user", as_is, arguments({}, {"all"}, {"alic"}), k_root, ErrorCode::usage, "did you mean `alice`?"},
      {"no users", [](config::Config& c) { c.conda->homes.front().users.clear(); }, arguments({}, {"all"}), k_root,
       ErrorCode::config, "`conda.homes` names no user"},
      {"another user's home", as_is, arguments({}, {"all"}, {"bob"}), alice, ErrorCode::permission, "run as root"},
      {"nobody's home", as_is, arguments({}, {"all"}), identity("eve", 1002), ErrorCode::permission, "`eve`"},
      {"a user of one for all", [](config::Config& c) { c.conda->homes.front().conda = "/opt/conda"; },
       arguments({}, {"all"}, {"bob"}), k_root, ErrorCode::usage, "--user"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.why);
    auto config = configuration();
    row.change(config);
    const auto request = conda_link_request(config, row.given, row.self, Verb::link);
    REQUIRE_FALSE(request);
    CHECK(request.error().code == row.code);
    const auto said = request.error().message + " " + request.error().hint;
    CAPTURE(said);
    CHECK(said.find(row.words) != std::string::npos);
  }
  CHECK(conda_link_request(configuration(), arguments({}, {"all"}), alice, Verb::link)); // her own home
}
