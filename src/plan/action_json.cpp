#include "base/text.hpp"
#include "plan/action_fields.hpp"
#include "plan/json_values.hpp"

#include <algorithm>
#include <concepts>
#include <limits>

namespace sharefs::plan {

namespace {

/// A struct whose fields visit_fields knows: it becomes a JSON object.
template <class T>
concept Composite =
    std::same_as<T, Access> || std::same_as<T, Actor> || std::same_as<T, sys::User> || std::same_as<T, FileChange> ||
    std::same_as<T, Edit> || std::same_as<T, sys::FileIdentity> || std::same_as<T, sys::CheckedProgram>;

class Writer {
 public:
  Json json = Json::object();

  template <class T> void operator()(const char* name, const T& value) { json[name] = write(value); }
  /// One that any thing has is left out.
  void operator()(const char* name, const sys::FileIdentity& value) {
    if (value != sys::FileIdentity{})
      json[name] = write(value);
  }
  void mode(const char* name, std::optional<std::uint32_t> value) {
    json[name] = value ? Json(format_mode(*value)) : Json(nullptr);
  }

 private:
  static Json write(const std::string& value) { return bytes_to_json(value); }
  static Json write(std::chrono::milliseconds value) { return value.count(); }
  template <std::integral T> static Json write(T value) { return value; }
  template <Composite T> static Json write(const T& value) {
    Writer inner;
    visit_fields(value, inner);
    return std::move(inner.json);
  }
  template <class T> static Json write(const std::optional<T>& value) { return value ? write(*value) : Json(nullptr); }
  template <class T> static Json write(const std::vector<T>& values) {
    auto list = Json::array();
    for (const auto& value : values)
      list.push_back(write(value));
    return list;
  }
};

/// Texts must be there; any other field that is missing keeps its default, so that old journals stay readable.
class Reader {
 public:
  explicit Reader(const Json& json) : m_json(json) {}

  [[nodiscard]] const std::string& wrong_field() const { return m_wrong; }

  template <class T> void operator()(const char* name, T& value) {
    const auto found = m_json.find(name);
    const bool missing = found == m_json.end();
    if (missing ? std::same_as<T, std::string> : !read(*found, value))
      note(name);
  }
  template <class T> void mode(const char* name, T& value) {
    const auto found = m_json.find(name);
    if (found == m_json.end() || found->is_null())
      return;
    const auto bits = found->is_string() ? parse_mode(found->get<std::string>()) : std::nullopt;
    if (bits)
      value = *bits;
    else
      note(name);
  }

 private:
  void note(const char* name) {
    if (m_wrong.empty())
      m_wrong = name;
  }
  static bool read(const Json& json, std::string& value) {
    auto bytes = bytes_from_json(json);
    if (bytes)
      value = std::move(*bytes);
    return bytes.has_value();
  }
  static bool read(const Json& json, bool& value) {
    if (json.is_boolean())
      value = json.get<bool>();
    return json.is_boolean();
  }
  static bool read(const Json& json, std::chrono::milliseconds& value) {
    if (json.is_number_integer())
      value = std::chrono::milliseconds(json.get<std::int64_t>());
    return json.is_number_integer();
  }
  template <std::integral T> static bool read(const Json& json, T& value) {
    // A positive number is unsigned for the parser, a literal of a test is not.
    if (!json.is_number_integer() || (!json.is_number_unsigned() && json.get<std::int64_t>() < 0) ||
        json.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
      return false;
    value = json.get<T>();
    return true;
  }
  template <Composite T> static bool read(const Json& json, T& value) {
    if (!json.is_object())
      return false;
    Reader inner(json);
    visit_fields(value, inner);
    return inner.m_wrong.empty();
  }
  template <class T> static bool read(const Json& json, std::optional<T>& value) {
    value.reset();
    return json.is_null() || read(json, value.emplace());
  }
  template <class T> static bool read(const Json& json, std::vector<T>& values) {
    values.clear();
    return json.is_array() &&
           std::ranges::all_of(json, [&values](const Json& entry) { return read(entry, values.emplace_back()); });
  }

  const Json& m_json;
  std::string m_wrong;
};

template <std::size_t I = 0> Result<Action> read_kind(std::size_t index, const Json& json) {
  if constexpr (I < std::variant_size_v<Action>) {
    if (index != I)
      return read_kind<I + 1>(index, json);
    std::variant_alternative_t<I, Action> action;
    Reader reader(json);
    visit_fields(action, reader);
    if (!reader.wrong_field().empty())
      return fail(ErrorCode::failed, "field `" + reader.wrong_field() + "` of a `" + std::string(k_kinds[I]) +
                                         "` action is missing or malformed");
    if constexpr (requires { action.before.has_value() && action.after.has_value(); })
      if (!action.before && !action.after)
        return fail(ErrorCode::failed, "a `" + std::string(k_kinds[I]) + "` action has neither `before` nor `after`");
    return Action(std::move(action));
  }
  return fail(ErrorCode::failed, "unknown kind of action");
}

/// How journals of earlier versions say what became of a file, a directory or a link: one kind for each thing that was
/// done, which has one side only.
struct OldKind {
  std::string_view kind, now;
  const char *field, *field_now; ///< the field that became `before` or `after`; nullptr: those were there already
};
constexpr std::array k_old_kinds{
    OldKind{"write_file", "file", nullptr, nullptr},         OldKind{"remove_file", "file", nullptr, nullptr},
    OldKind{"make_directory", "directory", "mode", "after"}, OldKind{"remove_directory", "directory", "mode", "before"},
    OldKind{"make_link", "link", "target", "after"},         OldKind{"remove_link", "link", "target", "before"},
    OldKind{"swap_link", "link", nullptr, nullptr}};

} // namespace

Json to_json(const Action& action) {
  Json json{{"kind", k_kinds[action.index()]}};
  std::visit(
      [&json](const auto& alternative) {
        Writer writer;
        visit_fields(alternative, writer);
        json.update(writer.json);
      },
      action);
  return json;
}

Result<Action> action_from_json(const Json& json) {
  if (!json.is_object() || !json.contains("kind") || !json["kind"].is_string())
    return fail(ErrorCode::failed, "an action has no `kind`");
  const auto kind = json["kind"].get<std::string>();
  if (const auto* old = std::ranges::find(k_old_kinds, kind, &OldKind::kind); old != k_old_kinds.end()) {
    auto now = json;
    now["kind"] = old->now;
    if (old->field != nullptr && json.contains(old->field))
      now[old->field_now] = json[old->field];
    return action_from_json(now);
  }
  const auto found = std::ranges::find(k_kinds, kind);
  if (found == k_kinds.end())
    return fail(ErrorCode::failed, "unknown kind of action `" + kind + "`");
  return read_kind(static_cast<std::size_t>(found - k_kinds.begin()), json);
}

} // namespace sharefs::plan
