#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace vfpass::verify {

/// A collective operation of one size.
struct NcclRun {
  std::string operation;    ///< `all-reduce`, `all-gather`
  std::uint64_t bytes = 0;  ///< of the whole result
  std::uint64_t iterations = 0;
  double busGigabytes = 0;  ///< per second
  std::uint64_t checkedValues = 0;
  std::uint64_t wrongValues = 0;
  std::string firstWrong = {};  ///< empty: none
};

/// An operation and size that did not run.
struct NcclOmission {
  std::string operation;
  std::uint64_t bytes = 0;
  std::string reason;
};

/// A network device as NCCL numbers it.
struct NcclDevice {
  std::uint64_t number = 0;
  std::string name;  ///< RDMA device or interface
};

/// Channels between two ranks over one transport.
struct NcclConnection {
  std::uint64_t from = 0;  ///< rank
  std::uint64_t to = 0;
  std::string transport;                ///< `NET/IB`, `P2P/CUMEM`, `SHM/direct/direct`
  std::optional<std::uint64_t> device;  ///< number of a network device
  bool gpuDirect = false;
};

/// What `vfpass-probe nccl` reported in one guest. Every text is untrusted.
struct NcclReport {
  std::string version;
  std::vector<NcclRun> runs = {};
  std::vector<NcclOmission> omissions = {};
  std::string network = {};    ///< `IB`, `Socket`, a plugin
  std::string bootstrap = {};  ///< interface and address over which the ranks meet
  std::vector<NcclDevice> devices = {};
  std::vector<NcclConnection> connections = {};
  std::vector<std::string> warnings = {};
  std::string error = {};  ///< empty: it ran to its end
  std::string remedy = {};
  std::string stage = {};  ///< of a failure: what it was doing
};

/// Members that are missing or of another type read as empty, and lists are bounded.
NcclReport readNcclReport(const nlohmann::json& document);

}  // namespace vfpass::verify
