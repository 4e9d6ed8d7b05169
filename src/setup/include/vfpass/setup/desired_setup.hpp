#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/identifiers.hpp"
#include "vfpass/mapping.hpp"

namespace vfpass::setup {

/// One VF of the running guest, and its guest settings from the mapping.
struct WantedPort {
  std::string entry;  ///< name in the mapping
  bool infiniband = false;
  std::string address;   ///< MAC; for InfiniBand the port GUID, which ends the hardware address
  std::string function;  ///< PCI address in the guest; empty: unknown
  bool teamed = false;   ///< its partner and the interface above them have the same MAC
  GuestNetwork network;
};

/// The state that a set-up is to reach. An empty one plans the undo.
struct DesiredSetup {
  Uuid domain;
  std::vector<WantedPort> ports;
  NcclSettings nccl;
  std::string ncclTopology;     ///< content of the file; empty: no file
  bool peerMemory = false;      ///< load nvidia_peermem, if the guest has a GPU
  bool nvlinkDisabled = false;  ///< `nvlink: disabled`, if the guest has a GPU
  std::vector<std::string> notes;
};

}  // namespace vfpass::setup
