#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "channel/channel.hpp"
#include "nccl/nccl_ranks.hpp"
#include "vfpass/base/deadline.hpp"

namespace vfpass::probe {

/// What the ranks of this process do. Equal in all processes, except for `gpus` and `first`.
struct NcclPlan {
  std::vector<GpuChoice> gpus = {0};  ///< one rank each
  unsigned ranks = 0;                 ///< of all processes; 0: those of this process
  unsigned first = 0;                 ///< number of this process's first rank
  std::vector<Collective> collectives = {Collective::allReduce, Collective::allGather};
  std::vector<std::uint64_t> sizes;  ///< bytes, ascending
  CollectiveLimits limits = {};
};

/// Sizes by name: `quick`, `published` (those of the figure in the OKE document), `sizes` (those of
/// its command: 8 bytes to 8 GiB in powers of two). Throws Error for another name.
std::vector<std::uint64_t> ncclSizes(const std::string& preset);

/// Throws Error for numbers that contradict each other.
void validate(const NcclPlan& plan);

/// How the processes of a communicator share the unique ID. The one with rank 0 makes it.
using ShareNcclId = std::function<NcclUniqueId(const std::function<NcclUniqueId()>& make)>;

/// Through a file: the process with rank 0 writes it, the others wait until it exists.
ShareNcclId shareByFile(const std::string& file, bool makes, const Deadline& deadline);
/// Through the host: this process sends `ready`, with the ID if it made it, and receives `begin`
/// with the ID.
ShareNcclId shareByChannel(Channel& channel, bool makes);
ShareNcclId shareWithNobody();

/// Progress, which outlives a process that hangs: read by another thread.
class NcclProgress {
 public:
  void set(const std::string& stage);
  [[nodiscard]] std::string stage() const;
  void setGpus(const nlohmann::json& gpus);
  [[nodiscard]] nlohmann::json gpus() const;

 private:
  mutable std::mutex mutex_;
  std::string stage_ = "starting";
  std::string gpus_ = "[]";
};

/// Runs the plan; returns the report without NCCL's log. Throws Error. It cannot be interrupted:
/// NCCL waits for missing ranks without a deadline.
nlohmann::json runNccl(const NcclPlan& plan, const ShareNcclId& share,
                       const std::function<void()>& connected, const Deadline& deadline,
                       NcclProgress& progress);

}  // namespace vfpass::probe
