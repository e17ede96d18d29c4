#include "config/load.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::config;

TEST_CASE("check_trust: who may write what root obeys", "[trust]") {
  struct Row {
    uid_t owner;
    unsigned mode;
    uid_t euid;
    std::string reason, cure; ///< empty: trusted
  };
  const std::vector<Row> rows{
      {0, 0644, 0, "", ""},
      {0, 0600, 0, "", ""},
      {0, 04755, 0, "", ""},
      {0, 0664, 0, "can be changed by others (mode 0664)", "`chmod go-w /etc/sharefs/sharefs.yaml`"},
      {0, 0646, 0, "can be changed by others (mode 0646)", "`chmod go-w /etc/sharefs/sharefs.yaml`"},
      {1000, 0600, 0, "belongs to the user with id 1000", "`chown root:root /etc/sharefs/sharefs.yaml`"},
      {1000, 0666, 0, "belongs to the user with id 1000",
       "`chown root:root /etc/sharefs/sharefs.yaml && chmod go-w /etc/sharefs/sharefs.yaml`"},
      {1000, 0644, 1000, "", ""},
      {1000, 0664, 1000, "", ""}, // own groups are the user's business
      {0, 0664, 1000, "", ""},
      {0, 0646, 1000, "can be changed by others (mode 0646)", "`chmod o-w /etc/sharefs/sharefs.yaml`"},
      {1001, 0644, 1000, "belongs to the user with id 1001", "`chown 1000 /etc/sharefs/sharefs.yaml`"},
  };
  for (const auto& [owner, mode, euid, reason, cure] : rows) {
    INFO("owner " << owner << ", mode " << std::oct << mode << std::dec << ", euid " << euid);
    const auto trusted = check_trust("/etc/sharefs/sharefs.yaml", owner, mode, euid);
    REQUIRE(trusted.has_value() == reason.empty());
    if (trusted)
      continue;
    CHECK(trusted.error().code == ErrorCode::permission);
    CHECK_THAT(trusted.error().message, Catch::StartsWith("/etc/sharefs/sharefs.yaml: the configuration " + reason));
    CHECK_THAT(trusted.error().hint, Catch::EndsWith(cure));
  }
}

TEST_CASE("check_trust: the cure can be pasted whatever the file is called", "[trust]") {
  const auto trusted = check_trust("/tmp/a b;rm -rf x", 0, 0666, 0);
  REQUIRE_FALSE(trusted);
  CHECK_THAT(trusted.error().hint, Catch::EndsWith("`chmod go-w '/tmp/a b;rm -rf x'`"));
}
