#include "ui/envelope.hpp"

#include "base/json_fields.hpp"

namespace sharefs::ui {

namespace {
constexpr int k_schema_version = 1; ///< it rises with a change that is more than a new field
} // namespace

std::string Envelope::text() const {
  using Json = nlohmann::ordered_json;
  Json document = {{"schema", k_schema_version}, {"command", command}, {"ok", ok}};
  for (const auto& [name, value] : fields.items())
    if (!document.contains(name))
      document[name] = value;
  document["plan"] = plan ? plan::to_json(*plan) : Json(nullptr);
  document["results"] = Json::array();
  if (report) {
    const auto json = json_of(*report);
    document["results"] = json.at("results");
    document["journal_id"] = report->journal_id;
    if (!report->earlier_ids.empty())
      document["earlier_journal_ids"] = report->earlier_ids;
    document["can_be_undone"] = plan && plan::can_be_undone(*plan, *report);
    document["interrupted"] = report->interrupted;
  }
  document["diagnoses"] = json_of(diagnoses);
  document["error"] = json_of(error || !report ? error : report->error);
  return text_of_json(document, 2) + "\n";
}

} // namespace sharefs::ui
