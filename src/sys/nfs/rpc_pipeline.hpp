#pragma once
// Many calls under way on one connection, as an NFS client needs whom each round trip costs time.
#include "sys/nfs/rpc.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace sharefs::sys {

/// Replies are known by their xid, and come in any order. One that nobody waits for, that cannot be read, or that does
/// not come for `patience` ends the connection: from then on every call has that failure, also those under way, of
/// which nobody knows whether the server has done them or will.
class RpcPipeline {
 public:
  struct Call {
    RpcProcedure procedure;
    std::string arguments;
  };
  static constexpr std::size_t k_window = 128; ///< calls under way; further ones wait

  /// Takes a connected non-blocking socket, and starts a thread (std::system_error). `progress` is called in it for
  /// each reply.
  RpcPipeline(Fd connected, std::string credential, std::chrono::milliseconds patience,
              std::function<void()> progress = nullptr);
  ~RpcPipeline();
  RpcPipeline(const RpcPipeline&) = delete;
  RpcPipeline& operator=(const RpcPipeline&) = delete;

  /// Makes all calls at once and waits for the replies, which are in the order of the calls. From any thread.
  std::vector<Answer<std::string>> call_all(const std::vector<Call>& calls);
  /// Not once it has failed.
  [[nodiscard]] bool works() const { return m_works; }

 private:
  struct Waiting {
    Answer<std::string>* answer; ///< of call_all()
    std::size_t* left;
  };

  void work();
  bool send();
  bool receive();
  bool take(std::string_view record);
  void end(Failure failure);
  void wake() const;

  Fd m_fd, m_wake;
  const std::string m_credential;
  const std::chrono::milliseconds m_patience;
  const std::function<void()> m_progress;

  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::map<std::uint32_t, Waiting> m_waiting; ///< by xid
  std::deque<std::string> m_unsent;
  std::uint32_t m_xid = 0;
  std::optional<Failure> m_failure;
  Deadline m_until{}; ///< there is a reply, if any is waited for
  bool m_stop = false;
  std::atomic<bool> m_works = true;

  // Of the thread only
  std::string m_sending;
  std::size_t m_sent = 0;
  RecordReader m_records;
  std::thread m_thread;
};

} // namespace sharefs::sys
