#include "documents.hpp"

#include "support/catch.hpp"
#include "support/tree_file.hpp"

#include <nlohmann/json.hpp>

using namespace sharefs;
using namespace sharefs::config;

TEST_CASE("docs/sharefs.schema.json is made from the table of the keys", "[schema]") {
  INFO("SHAREFS_GOLDEN_UPDATE=1 writes it");
  CHECK(test::tree_file("docs/sharefs.schema.json", schema().dump(2) + "\n") == schema().dump(2) + "\n");
}

TEST_CASE("schema: types, choices, defaults and required keys come from the table", "[schema]") {
  const auto json = schema();
  CHECK(json["required"] == nlohmann::json::array({"version"}));
  CHECK(json["additionalProperties"] == false);
  CHECK(json["properties"]["version"]["const"] == 1);
  const auto& mount = json["properties"]["mounts"]["additionalProperties"];
  CHECK(mount["required"] == nlohmann::json::array({"from", "at"}));
  CHECK(mount["type"] == "object");
  CHECK(mount["properties"]["profile"]["enum"] == nlohmann::json::array({"safe", "recipe", "immutable"}));
  CHECK(mount["properties"]["profile"]["default"] == "safe");
  CHECK(mount["properties"]["options"]["default"] == nlohmann::json::array());
  CHECK(mount["properties"]["at"]["pattern"] == "^/");
  const auto& item = json["properties"]["servers"]["additionalProperties"]["properties"]["exports"]["items"];
  CHECK(item["properties"]["clients"]["minItems"] == 1);
  const auto& client = item["properties"]["clients"]["items"]["oneOf"];
  CHECK(client[0]["type"] == "string");
  CHECK(client[1]["required"] == nlohmann::json::array({"hosts", "options"}));
  const auto& access = item["properties"]["access"]["oneOf"];
  CHECK(access[0]["enum"] == nlohmann::json::array({"keep", "open"}));
  CHECK(access[1]["properties"]["mode"]["default"] == "2770");
  CHECK(access[1]["properties"]["sticky"]["type"] == "boolean");
  CHECK(access[1]["properties"]["sticky"]["default"] == false);
  CHECK(json["properties"]["caches"]["properties"]["local"]["oneOf"].size() == 2);
}
