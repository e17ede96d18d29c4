#include "base/json_fields.hpp"
#include "base/text.hpp"
#include "base/visible.hpp"
#include "support/catch.hpp"
#include "ui/envelope.hpp"

using namespace sharefs;
using namespace sharefs::ui;
using Json = nlohmann::ordered_json;

namespace {

std::string keys_of(const Json& json) {
  std::string out;
  for (const auto& [name, value] : json.items())
    out += name + " ";
  return out;
}

} // namespace

TEST_CASE("envelope: the whole of an empty one", "[envelope]") {
  Envelope envelope;
  envelope.command = "status";
  CHECK(envelope.text() == R"({
  "schema": 1,
  "command": "status",
  "ok": true,
  "plan": null,
  "results": [],
  "diagnoses": [],
  "error": null
}
)");
}

TEST_CASE("envelope: a name cannot give a terminal an order, and is read as it is", "[envelope]") {
  Envelope envelope;
  const std::string name = "d\x1b[31m\u009b2J\x7f\u202ey\u200d größe \U000E0041\n";
  envelope.command = name;
  const auto text = envelope.text();
  CHECK(text.find("d\\u001b[31m\\u009b2J\\u007f\\u202ey\\u200d größe \\udb40\\udc41\\n\"") != std::string::npos);
  CHECK(Json::parse(text)["command"] == name);
  CHECK_FALSE(find_invisible(join(split_lines(text), "")));
}

TEST_CASE("envelope: the command's own fields stand behind ok, in their order", "[envelope]") {
  Envelope envelope;
  envelope.fields["zebra"] = 1;
  envelope.fields["ant"] = {1, 2};
  envelope.fields["ok"] = "not overwritten";
  const auto json = Json::parse(envelope.text());
  CHECK(keys_of(json) == "schema command ok zebra ant plan results diagnoses error ");
  CHECK(json["ok"] == true);
}

TEST_CASE("envelope: plan, report, diagnoses and error", "[envelope]") {
  Envelope envelope;
  envelope.ok = false;
  envelope.plan.emplace().add("g", "why", plan::make_directory("/d"));
  envelope.report.emplace();
  envelope.report->results = {{0, plan::Outcome::failed, Error{ErrorCode::busy, "m", "h", ""}, {}}};
  envelope.report->journal_id = "ID";
  envelope.report->interrupted = true;
  envelope.diagnoses = {{Severity::warning, "SF201", "share", "slow", "wait", "sharefs status"}};
  envelope.error = Error{ErrorCode::timeout, "late", "again", "ctx"};
  const auto json = Json::parse(envelope.text());
  CHECK(keys_of(json) == "schema command ok plan results journal_id can_be_undone interrupted diagnoses error ");
  CHECK(json["plan"] == plan::to_json(*envelope.plan));
  CHECK(json["results"] == json_of(*envelope.report)["results"]);
  CHECK(json["results"].size() == 1);
  CHECK(json["journal_id"] == "ID");
  CHECK(json["interrupted"] == true);
  CHECK(json["can_be_undone"] == false); // nothing was done
  envelope.report->results[0] = {0, plan::Outcome::done, std::nullopt, {}};
  CHECK(Json::parse(envelope.text())["can_be_undone"] == true);
  envelope.plan->add("g", "", plan::RemoveTree{.path = "/e"});
  envelope.report->results.push_back({1, plan::Outcome::done, std::nullopt, {}});
  CHECK(Json::parse(envelope.text())["can_be_undone"] == false);
  CHECK(
      json["diagnoses"][0].dump() ==
      R"({"severity":"warning","code":"SF201","subject":"share","message":"slow","hint":"wait","fix":"sharefs status"})");
  CHECK(json["error"].dump() == R"({"code":"timeout","message":"late","hint":"again","context":"ctx"})");
}

TEST_CASE("envelope: bytes that are not UTF-8 do not break the document", "[envelope]") {
  Envelope envelope;
  envelope.error = Error{ErrorCode::failed, "/data/\xff", "", ""};
  const auto json = Json::parse(envelope.text());
  CHECK(json["error"]["message"] == "/data/\xef\xbf\xbd");
}
