#include "sys/nfs/rpc_pipeline.hpp"

#include "sys/nfs/nfs3.hpp"

#include <array>
#include <cerrno>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

namespace sharefs::sys {
namespace {

constexpr std::size_t k_longest_record = k_nfs3_most_bytes + (1U << 12U); ///< a READ's
constexpr std::size_t k_received_at_once = 1U << 16U;
constexpr std::size_t k_sent_at_once = 1U << 18U;

} // namespace

RpcPipeline::RpcPipeline(Fd connected, std::string credential, std::chrono::milliseconds patience,
                         std::function<void()> progress)
    : m_fd(std::move(connected)), m_wake(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), m_credential(std::move(credential)),
      m_patience(patience), m_progress(std::move(progress)), m_records(k_longest_record), m_thread([this] { work(); }) {
}

RpcPipeline::~RpcPipeline() {
  {
    const std::lock_guard lock(m_mutex);
    m_stop = true;
  }
  wake();
  m_thread.join();
}

void RpcPipeline::wake() const {
  const std::uint64_t one = 1;
  if (::write(m_wake.get(), &one, sizeof one) < 0) { // it is awake already
  }
}

std::vector<Answer<std::string>> RpcPipeline::call_all(const std::vector<Call>& calls) {
  std::vector<Answer<std::string>> answers(calls.size(), failure(Fault::not_asked));
  std::size_t left = 0; // guarded by m_mutex, as what m_waiting points to
  std::unique_lock lock(m_mutex);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    m_changed.wait(lock, [this] { return m_failure || m_waiting.size() < k_window; });
    if (m_failure) {
      answers[i] = tl::make_unexpected(*m_failure);
      continue;
    }
    if (m_waiting.empty())
      m_until = deadline_in(m_patience);
    m_waiting[++m_xid] = {&answers[i], &left};
    ++left;
    m_unsent.push_back(call_record(m_xid, calls[i].procedure, m_credential, calls[i].arguments));
    if (m_unsent.size() == 1)
      wake();
  }
  m_changed.wait(lock, [&left] { return left == 0; });
  return answers;
}

void RpcPipeline::end(Failure failure) {
  const std::lock_guard lock(m_mutex);
  m_works = false;
  m_failure = failure;
  for (auto& [xid, waiting] : m_waiting) {
    *waiting.answer = tl::make_unexpected(failure);
    --*waiting.left;
  }
  m_waiting.clear();
  m_unsent.clear();
  m_fd.reset(); // no late reply is taken for one of a new connection
  m_changed.notify_all();
}

void RpcPipeline::work() {
  if (!m_wake)
    return end({Fault::not_asked, EMFILE});
  for (;;) {
    Deadline until{};
    {
      const std::lock_guard lock(m_mutex);
      if (m_stop)
        break;
      if (m_sent == m_sending.size()) {
        m_sending.clear();
        m_sent = 0;
      }
      while (m_sending.size() < k_sent_at_once && !m_unsent.empty()) {
        m_sending += m_unsent.front();
        m_unsent.pop_front();
      }
      until = m_waiting.empty() ? Deadline::max() : m_until;
    }
    if (until != Deadline::max() && Clock::now() >= until)
      return end({Fault::timeout, 0});
    const auto events = static_cast<short>(POLLIN | (m_sent < m_sending.size() ? POLLOUT : 0));
    std::array<pollfd, 2> fds{pollfd{m_fd.get(), events, 0}, pollfd{m_wake.get(), POLLIN, 0}};
    ::poll(fds.data(), fds.size(), until == Deadline::max() ? -1 : poll_time(until));
    std::uint64_t count = 0;
    if (fds[1].revents != 0 && ::read(m_wake.get(), &count, sizeof count) < 0) { // somebody else has read it
    }
    if ((fds[0].revents & POLLOUT) != 0 && !send())
      return end({Fault::closed, 0});
    if ((fds[0].revents & (POLLIN | POLLERR | POLLHUP)) != 0 && !receive())
      return;
  }
  end({Fault::closed, 0});
}

bool RpcPipeline::send() {
  const ssize_t count = ::send(m_fd.get(), m_sending.data() + m_sent, m_sending.size() - m_sent, MSG_NOSIGNAL);
  if (count > 0)
    m_sent += static_cast<std::size_t>(count);
  return count >= 0 || errno == EAGAIN || errno == EINTR;
}

/// False: the connection has ended.
bool RpcPipeline::receive() {
  std::array<char, k_received_at_once> bytes;
  const ssize_t count = ::recv(m_fd.get(), bytes.data(), bytes.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR))
    return true;
  if (count <= 0) {
    end({Fault::closed, 0});
    return false;
  }
  bool readable = m_records.add({bytes.data(), static_cast<std::size_t>(count)}).has_value();
  while (readable)
    if (const auto record = m_records.next())
      readable = take(*record);
    else
      return true;
  end({Fault::unreadable, 0});
  return false;
}

bool RpcPipeline::take(std::string_view record) {
  const std::uint32_t xid = XdrReader(record).word();
  auto result = read_reply(record, xid).map([](std::string_view bytes) { return std::string(bytes); });
  if (!result && result.error().fault == Fault::unreadable)
    return false;
  if (m_progress)
    m_progress(); // before whoever waits goes on
  const std::lock_guard lock(m_mutex);
  const auto found = m_waiting.find(xid);
  if (found == m_waiting.end())
    return false;
  *found->second.answer = std::move(result);
  --*found->second.left;
  m_waiting.erase(found);
  m_until = deadline_in(m_patience);
  m_changed.notify_all();
  return true;
}

} // namespace sharefs::sys
