#include "exports/client_names.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"

using namespace sharefs;
using namespace sharefs::exports;

TEST_CASE("the names and addresses of nfsd's clients are read; none is no client") {
  const test::TemporaryDirectory root;
  test::ScriptedSystem system(root.path());
  CHECK(read_client_names(system).empty());
  root.write("/proc/fs/nfsd/clients/3/info", "clientid: 0x2f1c6a3b65f0a1d2\n"
                                             "address: \"10.77.0.2:812\"\n"
                                             "status: confirmed\n"
                                             "name: \"Linux NFSv4.2 node1\"\n"
                                             "minor version: 2\n");
  root.write("/proc/fs/nfsd/clients/4/info", "address: \"[fd00::2]:812\"\nname: \"Linux NFSv4.2 node2\"\n");
  root.write("/proc/fs/nfsd/clients/5/info", "address: \"10.77.0.9:812\"\n");
  CHECK(read_client_names(system) ==
        std::vector<ClientName>{{"Linux NFSv4.2 node1", "10.77.0.2"}, {"Linux NFSv4.2 node2", "fd00::2"}});
}

TEST_CASE("two hosts with one name are seen by their addresses") {
  const std::vector<ClientName> own{{"Linux NFSv4.2 node1", "10.0.0.2"},
                                    {"Linux NFSv4.2 node2", "10.0.0.3"},
                                    {"Linux NFSv4.2 node1", "10.0.0.2"},
                                    {"Linux NFSv4.1 node2", "10.0.0.2"}};
  CHECK(diagnose_client_names(own).empty());
  auto cloned = own;
  cloned.push_back({"Linux NFSv4.2 node1", "fd00::3"});
  const auto found = diagnose_client_names(cloned);
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "SF247");
  CHECK(found[0].subject == "Linux NFSv4.2 node1");
  CHECK(found[0].message.find("10.0.0.2, fd00::3") != std::string::npos);
}
