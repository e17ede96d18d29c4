// Which commands need sharefs.yaml, what they do without, and what `config check` and `init` say; on real files under a
// temporary root.
#include "cli/app.hpp"
#include "cli/context.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"

#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace sharefs;

namespace {

constexpr const char* k_config = "/etc/sharefs/sharefs.yaml";

class Terminal {
 public:
  Terminal() { m_files.write("etc/hostname", "node1\n"); }

  void write(const std::string& path, const std::string& content, mode_t mode = 0644) const {
    m_files.write(path.substr(1), content);
    REQUIRE(::chmod(at(path).c_str(), mode) == 0);
  }
  [[nodiscard]] std::string at(const std::string& path) const { return m_files.path() + path; }

  int run(Argv arguments, std::vector<std::string> environment = {}) {
    std::istringstream in;
    std::ostringstream out_stream, err_stream;
    cli::Host host{[&](const std::string&) {
                     auto system = std::make_unique<test::ScriptedSystem>(m_files.path());
                     system->machine.identity.uid = uid;
                     return system;
                   },
                   in,
                   out_stream,
                   err_stream,
                   {},
                   std::move(environment),
                   "/work"};
    arguments.insert(arguments.begin(), "sharefs");
    const int code = cli::run(arguments, host);
    out = out_stream.str();
    err = err_stream.str();
    return code;
  }
  std::string out, err;
  uid_t uid = 0;

 private:
  test::TemporaryDirectory m_files;
};

} // namespace

TEST_CASE("config check: all errors of each file, as text and as JSON", "[config]") {
  Terminal host;
  host.write("/work/a.yaml", "version: 1\nmounts:\n  m: {from: \"h.x:/\", att: /x}\nnode: {}\n");
  host.write("/work/b.yaml", "version: 1\n");
  CHECK(host.run({"config", "check", "a.yaml", "b.yaml", "c.yaml"}) == 2);
  CHECK(host.out == "b.yaml: ok\n");
  CHECK_THAT(host.err, Catch::Contains("error: a.yaml:3:22: unknown key `att`\n") &&
                           Catch::Contains("hint: did you mean `at`?\n") &&
                           Catch::Contains("error: a.yaml:4:1: unknown key `node`\n") &&
                           Catch::Contains("hint: did you mean `nodes`?\n") &&
                           Catch::Contains("error: there is no c.yaml\n"));
  CHECK(host.run({"config", "check", "--", "-x"}) == 2);
  CHECK_THAT(host.err, Catch::Contains("hint: run `sharefs init --output ./-x` to write one\n"));
  CHECK(host.run({"config", "check", "a.yaml", "b.yaml", "--json"}) == 2);
  const auto json = nlohmann::json::parse(host.out);
  CHECK(json["files"][0]["errors"].size() == 2);
  CHECK(json["files"][0]["error"] == json["files"][0]["errors"][0]);
  CHECK(json["files"][1]["errors"].empty());
  CHECK(json["files"][1]["ok"] == true);
}

TEST_CASE("config check: lists of nodes that no command on them accepts", "[config]") {
  Terminal host;
  host.write("/work/hosts", "gpu1 slots=8\ngpu1 slots=8\n");
  struct Row {
    std::string nodes, said;
  };
  for (const auto& row : std::vector<Row>{
           {"{list: [gpu1, \"gpu[1-2]\"]}", "error: n.yaml:2:22: the node gpu1 comes twice"},
           {"{list: [\"gpu[4-1]\"]}", "which goes backwards"},
           {"{list: [alice@gpu1]}", "n.yaml:2:16: `alice@gpu1` has `@`"},
           {"{list: [\"fd00::1\"]}", "has `:`"},
           {"{list: [gpu1], groups: [{name: a, nodes: [gpu2]}]}", "gpu2 in the group a is not a node"},
           {"{hostfile: /work/hosts}", "/work/hosts:2:1: gpu1 stands on line 1 already"},
       }) {
    CAPTURE(row.nodes);
    host.write("/work/n.yaml", "version: 1\nnodes: " + row.nodes + "\n");
    CHECK(host.run({"config", "check", "n.yaml"}) == 2);
    CHECK_THAT(host.err, Catch::Contains(row.said));
  }
  // What only another machine knows is no error: `nodes push` tries the file on each node.
  for (const std::string nodes : {"slurm: gpus", "clustershell: \"@gpus\"", "hostfile: /work/none"}) {
    CAPTURE(nodes);
    host.write("/work/n.yaml", "version: 1\nnodes: {" + nodes + ", groups: [{name: a, nodes: [gpu2]}]}\n");
    CHECK(host.run({"config", "check", "n.yaml"}) == 0);
  }
}

TEST_CASE("a configuration that cannot be trusted: refused where it is needed, left out with a warning elsewhere",
          "[config]") {
  Terminal host;
  struct Row {
    std::string path;
    mode_t mode;
    std::string reason;
  };
  for (const auto& [path, mode, reason] : std::vector<Row>{
           {k_config, 0666, "can be changed by others"},
           {"/etc/sharefs", 0777,
            "others could replace"}, // whoever may write there could put another file in its place
           {"/etc", 0777, "others could replace"},
       }) {
    INFO(path);
    host.write(k_config, "version: 1\n");
    REQUIRE(::chmod(host.at(path).c_str(), mode) == 0);
    CHECK(host.run({"mount", "--all"}) == 2);
    INFO(host.err);
    CHECK_THAT(host.err, Catch::StartsWith("error: ") && Catch::Contains(reason) && Catch::Contains("`chmod go-w"));
    CHECK(host.run({"config", "show"}) == 2);
    CHECK(host.run({"config", "check"}) == 2);
    CHECK(host.run({"status"}) == 0);
    CHECK_THAT(host.err, Catch::StartsWith("warning: going on without the configuration: ") && Catch::Contains(reason));
    CHECK(host.err.find('\n') == host.err.find("\n", 0));
    REQUIRE(::chmod(host.at(path).c_str(), path == k_config ? 0644 : 0755) == 0);
    CHECK(host.run({"config", "check"}) == 0);
  }
}

TEST_CASE("a configuration that is not there, and one that is wrong", "[config]") {
  Terminal host;
  CHECK(host.run({"status"}) == 0);
  CHECK_THAT(host.err, !Catch::Contains("warning"));
  CHECK(host.run({"mount", "--all"}) == 2);
  CHECK_THAT(host.err, Catch::StartsWith("error: there is no /etc/sharefs/sharefs.yaml\n"));
  // On a share that is not mounted just now, `status` is what is wanted; a name that was typed must be right.
  CHECK(host.run({"status"}, {"SHAREFS_CONFIG=/data/share/sharefs.yaml"}) == 0);
  CHECK_THAT(host.err, Catch::StartsWith("warning: going on without the configuration: there is no /data/share/"));
  CHECK(host.run({"status", "--config", "/data/share/sharefs.yaml"}) == 2);
  host.write(k_config, "version: 2\nx: 1\n");
  CHECK(host.run({"status"}) == 2);
  CHECK_THAT(host.err, Catch::Contains("  1 more: `sharefs config check /etc/sharefs/sharefs.yaml` shows all\n"));
}

TEST_CASE("a command that is typed as it is printed reads the same configuration", "[config]") {
  Terminal host;
  host.write("/work/a b.yaml", "version: 1\nmounts:\n  m: {from: \"h.x:/srv\", at: /m}\n");
  const std::string option = "--config '/work/a b.yaml' ";
  CHECK(host.run({"--config", "a b.yaml", "status"}) == 1);
  CHECK_THAT(host.err, Catch::Contains("hint: run `sharefs " + option + "mount m`\n"));
  const std::vector<std::string> environment{"SHAREFS_CONFIG=/work/a b.yaml"};
  CHECK(host.run({"status", "--json"}, environment) == 1);
  CHECK(nlohmann::json::parse(host.out).at("diagnoses").at(0).at("fix") == "sharefs " + option + "mount m");
  host.uid = 1000;
  CHECK(host.run({"umount", "m"}, environment) == 1);
  CHECK_THAT(host.err, Catch::Contains("hint: run `sudo sharefs " + option + "umount m`\n")); // sudo drops the variable
  CHECK(host.run({"umount", "m", "--config", "a b.yaml"}) == 1);
  CHECK_THAT(host.err, Catch::Contains("hint: run `sudo sharefs umount m --config 'a b.yaml'`\n"));
}

TEST_CASE("a link that somebody else made does not lead to the configuration", "[config]") {
  if (::geteuid() != 0)
    return; // only root can make another user's link
  Terminal host;
  host.write("/srv/sharefs.yaml", "version: 1\n");
  host.write("/etc/sharefs/other", "");
  REQUIRE(::symlink("/srv/sharefs.yaml", host.at(k_config).c_str()) == 0);
  CHECK(host.run({"config", "check"}) == 0);
  REQUIRE(::lchown(host.at(k_config).c_str(), 1000, 1000) == 0);
  CHECK(host.run({"config", "check"}) == 2);
}

TEST_CASE("init --output - prints the file, which is a valid one, and writes nothing", "[init]") {
  Terminal host;
  CHECK(host.run({"init", "--output", "-"}) == 0);
  CHECK_THAT(host.out, Catch::StartsWith("# sharefs.yaml: ") && Catch::Contains("\nversion: 1\n"));
  CHECK_THAT(host.err, Catch::Contains("the file has 0 exports"));
  CHECK(::access(host.at("/work/-").c_str(), F_OK) != 0);
  host.write("/work/x.yaml", host.out);
  CHECK(host.run({"config", "check", "x.yaml"}) == 0);
  CHECK(host.run({"init", "--output", "-", "--json"}) == 0);
  CHECK_THAT(nlohmann::json::parse(host.out)["text"].get<std::string>(), Catch::StartsWith("# sharefs.yaml: "));
}

TEST_CASE("init never overwrites, and follows no link", "[init]") {
  Terminal host;
  host.write("/work/there.yaml", "mine");
  REQUIRE(::symlink("/work/elsewhere", host.at("/work/link.yaml").c_str()) == 0); // dangling
  for (const std::string name : {"there.yaml", "link.yaml"}) {
    CHECK(host.run({"init", "--output", name, "--yes"}) == 1);
    CHECK_THAT(host.err, Catch::StartsWith("error: /work/" + name + " is there already and is never overwritten\n"));
  }
  CHECK(::access(host.at("/work/elsewhere").c_str(), F_OK) != 0);
  CHECK(host.run({"init", "--output", "new/x.yaml", "--yes"}) == 0);
  CHECK(::access(host.at("/work/new/x.yaml").c_str(), F_OK) == 0);
  CHECK(host.run({"init", "--output", "none/new/x.yaml", "--yes"}) == 1);
  CHECK_THAT(host.err, Catch::StartsWith("error: there is no directory /work/none/new\n"));
}
