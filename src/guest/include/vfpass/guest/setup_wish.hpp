#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/identifiers.hpp"
#include "vfpass/mapping.hpp"

namespace vfpass::guest {

/// One VF of the running guest, and what its mapping wants of it there.
struct WantedPort {
  std::string entry;  ///< the mapping's name for it
  bool infiniband = false;
  std::string address;   ///< MAC; of InfiniBand the port GUID, which a hardware address ends in
  std::string function;  ///< where the guest has it on PCI; empty: not known
  bool teamed = false;   ///< its partner and the interface above them have the same MAC
  GuestNetwork network;
};

/// What is to be set up. An empty one wants nothing: planning it is planning the undo.
struct SetupWish {
  Uuid domain;
  std::vector<WantedPort> ports;
  NcclSettings nccl;
  std::string ncclTopology;     ///< content of the file; empty: none
  bool peerMemory = false;      ///< nvidia_peermem, where there is a GPU for it
  bool nvlinkDisabled = false;  ///< `nvlink: disabled`, where there is a GPU for it
  std::vector<std::string> notes;
};

}  // namespace vfpass::guest
