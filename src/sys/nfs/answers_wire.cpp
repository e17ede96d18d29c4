// What a child reports, as bytes; and the check of each field, as the child may be in a stranger's hands.
#include "sys/nfs/ask_server.hpp"
#include "sys/nfs/net.hpp"
#include "sys/process/wire.hpp"

#include <algorithm>

namespace sharefs::sys {
namespace {

constexpr auto k_last_fault = static_cast<std::uint8_t>(Fault::not_asked);
constexpr std::int64_t k_longest = 86'400'000'000; ///< microseconds
constexpr std::size_t k_max_address = 128;         ///< an IPv6 address with the name of its interface

void put(WireWriter& writer, const Failure& failure) {
  writer.put(failure.fault).put(failure.error_number);
}

/// A WireReader that also refuses what cannot be.
class Checker {
 public:
  explicit Checker(std::string_view bytes) : m_reader(bytes) {}

  template <class T> T number(T at_least, T at_most) {
    const T value = m_reader.get<T>();
    if (value < at_least || value > at_most)
      m_ok = false;
    return m_ok ? value : T{};
  }
  std::uint32_t count(std::size_t at_most) { return number<std::uint32_t>(0, static_cast<std::uint32_t>(at_most)); }
  bool flag() { return number<std::uint8_t>(0, 1) == 1; }
  std::string name(std::size_t at_most) {
    const std::string_view text = m_reader.text();
    if (text.size() > at_most || std::any_of(text.begin(), text.end(), is_control))
      m_ok = false;
    return std::string(m_ok ? text : std::string_view());
  }
  Failure failure() {
    const auto fault = static_cast<Fault>(number<std::uint8_t>(0, k_last_fault));
    return {fault, number<int>(-4095, 4095)};
  }
  [[nodiscard]] bool ok() const { return m_ok && m_reader.ok(); }
  [[nodiscard]] bool at_end() const { return m_reader.at_end(); }

 private:
  WireReader m_reader;
  bool m_ok = true;
};

std::optional<ServerAnswers> decode(std::string_view bytes) {
  Checker checker(bytes);
  ServerAnswers answers;
  for (StageAnswer& stage : answers.stages) {
    stage.asked = checker.flag();
    stage.failure = checker.failure();
    stage.round_trip = std::chrono::microseconds(checker.number<std::int64_t>(0, k_longest));
  }
  for (auto left = checker.count(k_max_addresses); left > 0 && checker.ok(); --left)
    answers.addresses.push_back(checker.name(k_max_address));
  answers.used = checker.count(answers.addresses.empty() ? 0 : answers.addresses.size() - 1);
  answers.services = checker.count(k_max_entries);
  answers.nfs_port = checker.number<std::uint16_t>(0, 65535);
  answers.mountd_port = checker.number<std::uint16_t>(0, 65535);
  std::size_t room = k_max_entries;
  for (auto left = checker.count(room); left > 0 && checker.ok(); --left) {
    ExportListing& one = answers.exports.emplace_back(checker.name(k_max_name));
    for (auto clients = checker.count(room); clients > 0 && checker.ok(); --clients, --room)
      one.clients.push_back(checker.name(k_max_name));
  }
  for (auto left = checker.count(k_max_entries); left > 0 && checker.ok(); --left) {
    AccessAnswer& one = answers.access.emplace_back();
    one.failure = checker.failure();
    one.reply = {checker.number<std::uint32_t>(0, UINT32_MAX), checker.flag()};
  }
  if (!checker.ok() || !checker.at_end())
    return std::nullopt;
  return answers;
}

} // namespace

std::string encode(const ServerAnswers& answers) {
  WireWriter writer;
  const auto count = [&writer](const auto& list) { writer.put(static_cast<std::uint32_t>(list.size())); };
  for (const StageAnswer& stage : answers.stages) {
    writer.put(std::uint8_t{stage.asked});
    put(writer, stage.failure);
    writer.put(std::int64_t{stage.round_trip.count()});
  }
  count(answers.addresses);
  for (const std::string& address : answers.addresses)
    writer.put(std::string_view(address));
  writer.put(answers.used).put(answers.services).put(answers.nfs_port).put(answers.mountd_port);
  count(answers.exports);
  for (const ExportListing& one : answers.exports) {
    writer.put(std::string_view(one.directory));
    count(one.clients);
    for (const std::string& client : one.clients)
      writer.put(std::string_view(client));
  }
  count(answers.access);
  for (const AccessAnswer& one : answers.access) {
    put(writer, one.failure);
    writer.put(one.reply.status).put(std::uint8_t{one.reply.only_kerberos});
  }
  return writer.framed();
}

std::optional<ServerAnswers> decode_last(std::string_view bytes) {
  std::string_view last;
  for (WireReader frames(bytes); !frames.at_end();) {
    const std::string_view frame = frames.text();
    if (!frames.ok())
      break; // the child ended in the middle of it
    last = frame;
  }
  return decode(last);
}

} // namespace sharefs::sys
