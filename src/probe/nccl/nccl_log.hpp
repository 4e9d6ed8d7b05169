#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::probe {

/// What NCCL wrote into its log (NCCL_DEBUG=INFO) about the way that it chose. Texts are those of
/// NCCL 2.13 to 2.31: src/transport/net_ib (`NET/IB : Using`), src/plugin/net.cc, src/bootstrap.cc,
/// src/transport/{net,p2p,shm}.cc (`Channel ... via`). What is not recognized is ignored.
struct NcclChoice {
  struct Device {
    unsigned number = 0;     ///< as connections name it
    std::string name = {};   ///< RDMA device, `mlx5_0+mlx5_1` of merged ports, or an interface
    std::string layer = {};  ///< `IB`, `RoCE`; empty for sockets
  };
  struct Connection {
    unsigned from = 0;           ///< rank
    unsigned to = 0;             ///< rank
    std::string direction = {};  ///< `send` or `receive`; empty if both are the same process's
    std::string transport = {};  ///< `P2P/CUMEM`, `SHM/direct/direct`, `NET/IB`, `NET/Socket`
    int device = -1;             ///< of NET
    bool gpuDirect = false;      ///< the NIC accesses GPU memory
    unsigned channels = 0;
    int proxy = -1;  ///< rank beside whose GPU the NIC is, if it serves another one (PXN)

    bool operator==(const Connection&) const = default;
  };

  std::string network = {};    ///< `IB`, `Socket` or a plugin's name; empty: not reported
  std::string bootstrap = {};  ///< interface and address over which the ranks meet
  std::vector<Device> devices = {};
  std::vector<Connection> connections = {};
  std::vector<std::string> warnings = {};  ///< the first ones
  std::uint64_t leftOut = 0;               ///< devices, connections and warnings above the limits
};

/// Pure. The log may have any content: every list and text is limited. A last line without its end
/// is ignored.
NcclChoice readNcclLog(std::string_view log);

nlohmann::json toJson(const NcclChoice& choice);

/// The log of NCCL in this process: a file in memory, which no other process sees.
class NcclLog {
 public:
  /// Sets NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE, which NCCL reads at its first call.
  /// Without a file, NCCL would write into the probe's document. Throws Error.
  NcclLog();

  /// What was written until now, at most 4 MiB.
  [[nodiscard]] std::string text() const;

 private:
  FileDescriptor file_;
};

}  // namespace vfpass::probe
