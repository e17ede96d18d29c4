#include "cli/commands/anonymize.hpp"

#include "support/catch.hpp"

using namespace sharefs::cli;

TEST_CASE("secrets are left out, and nothing else") {
  for (const auto& [text, clean] : {
           std::pair<std::string, std::string>{"rw,username=bob,password=s3cr,et=1,vers=3",
                                               "rw,username=bob,password=*****,et=1,vers=3"},
           {"password: hunter2\nuser: bob\n", "password: *****\nuser: bob\n"},
           {"api_key = \"a b\"\nnext", "api_key = *****\nnext"},
           {"API_TOKEN=$x;y", "API_TOKEN=*****;y"},
           {"pass=-abc", "pass=*****"},
           {"https://bob:pw@conda.example/t", "https://*****@conda.example/t"},
           {"https://conda.example:8080/t", "https://conda.example:8080/t"},
           {"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\n",
            "*****-----END RSA PRIVATE KEY-----\n"},
           {"sec=krb5p,rw,compass=1", "sec=krb5p,rw,compass=1"},
           {"# <dump> <pass>\n/dev/sda1 / ext4 defaults 0 1\n", "# <dump> <pass>\n/dev/sda1 / ext4 defaults 0 1\n"},
           {"password", "password"},
           {"password=", "password="},
           {"", ""},
       })
    CHECK(without_secrets(text) == clean);
  CHECK(without_secrets("token=\"" + std::string(100'000, 'x')) == "token=*****");
}

TEST_CASE("names are replaced everywhere by the same ones, and what names nobody stays") {
  OtherNames names;
  names.add("gauss12.physics.example");
  names.add_paths_of("from: gauss12:/srv/teamsecret, at: /data/team-zebra\n/proc/self/mountstats /usr/bin/conda");
  const auto other = names.apply("gauss12:/srv/teamsecret /data/team-zebra nfs4 rw,vers=4.2,addr=10.0.0.1");
  for (const auto* word : {"gauss", "physics", "teamsecret", "team-", "-zebra"})
    CHECK(other.find(word) == std::string::npos);
  CHECK(other.ends_with(" nfs4 rw,vers=4.2,addr=10.0.0.1"));
  CHECK(other.find(":/srv/") != std::string::npos);
  CHECK(names.apply("/proc/self/mountstats /usr/bin/conda") == "/proc/self/mountstats /usr/bin/conda");
  // As systemd and mountinfo write it.
  CHECK(names.apply("data-team\\x2dzebra.mount").ends_with("\\x2d" + names.apply("zebra") + ".mount"));
  CHECK(names.apply("team\\040zebra") == names.apply("team") + "\\040" + names.apply("zebra"));
  CHECK(names.apply("gauss[1-4]") != "gauss[1-4]"); // the stem of a numbered name
  CHECK(names.apply("gauss12") == names.apply("gauss12"));
  CHECK(names.apply("gauss12") != names.apply("gauss"));
}
