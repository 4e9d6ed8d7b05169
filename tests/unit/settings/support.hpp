#pragma once

#include <string>
#include <vector>

#include "vfpass/settings/propose_settings.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::settings {

inline constexpr std::uint64_t gib = 1ULL << 30U;

/// An eight-GPU host: two nodes of 64 CPUs and 1 TiB, 52 address bits, on each node four switches
/// with a GPU and a PF. GPUs are 0000:10:00.0, 0000:20:00.0, ..., 0000:80:00.0 with BARs of
/// `barBytes` and 32 MiB, PFs function 0 of bus 11, 21, ...
struct TestHost {
  explicit TestHost(std::uint64_t barBytes = 128 * gib);

  Topology topology;
  HostCapacity capacity;
};

/// `gpu0`, `rail0` for rail 0 (node 0) to 7 (node 1), of these rails.
std::vector<GuestDevice> railDevices(const std::vector<unsigned>& rails);

/// A domain as libvirt formats it: q35, UEFI, with an empty pcie-root controller. `extra` goes
/// before `<os>`, `inCpu` into `<cpu>`.
std::string domainXml(unsigned vcpus, std::uint64_t bytes, const std::string& extra = "",
                      const std::string& inCpu = "");

/// The proposal for this domain on this host, with QEMU and libvirt of Debian 12.
Proposal proposalFor(const TestHost& host, const std::string& xml, std::vector<GuestDevice> devices,
                     const std::set<std::string>& made = {});

/// The setting of this name; nullptr if there is none.
const DomainSetting* settingOf(const Proposal& proposal, const std::string& name);

/// The elements of that setting, one after the other; empty if none are proposed.
std::string elementsOf(const Proposal& proposal, const std::string& name);

/// Edits of all proposed settings.
std::vector<DomainEdit> editsOf(const Proposal& proposal);

}  // namespace vfpass::settings
