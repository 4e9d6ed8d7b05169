#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace fake_nccl {

/// ncclResult_t
constexpr int success = 0;
constexpr int invalidArgument = 4;
constexpr int remoteError = 6;

/// How one rank of a communicator meets the others, and how its data reaches them. Calls return an
/// ncclResult_t. Those that wait are apart from those that others wait for, so that one thread can
/// serve several ranks.
class Exchange {
 public:
  virtual ~Exchange() = default;

  /// Joins without waiting for the others.
  virtual int join() = 0;
  virtual int waitForAll() = 0;
  [[nodiscard]] virtual std::size_t mostBytes() const = 0;
  /// Copies this rank's data to where every rank finds it; visible after the next barrier.
  virtual int give(const char* source, std::size_t bytes) = 0;
  /// The data of a rank.
  [[nodiscard]] virtual char* part(int rank) const = 0;
  /// The two halves of a barrier.
  virtual int arrive() = 0;
  virtual int await() = 0;
  /// Lines for NCCL's log about the connections.
  [[nodiscard]] virtual std::string log() const = 0;
};

/// A unique ID, with the log's lines about the address where rank 0 waits. Empty: impossible here.
struct Meeting {
  std::string id;
  std::string log;
};
Meeting newMeeting();

/// nullptr: impossible here.
std::unique_ptr<Exchange> newExchange(const std::string& id, int ranks, int rank);

}  // namespace fake_nccl
