#pragma once

#include <string>
#include <vector>

#include "vfpass/guest_tree.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/seal_key.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/topology/mirror.hpp"

namespace vfpass::topology {

/// A test host by name: `h100-8` and `two-sockets` are captured trees, `nested`, `nps4`,
/// `no-switches` and `one-port` are synthetic.
Topology testHost(const std::string& name);

/// Seals the metadata of MirroredDomain::xml().
SealKey testKey();

/// One cell of a guest, with the host node of its memory; -1: no `<memnode>`.
struct TestCell {
  unsigned id = 0;
  int hostNode = -1;
};

/// A q35 domain as libvirt formats it, with one disk behind its own root port.
std::string testDomain(const std::vector<TestCell>& cells);

/// One cell for each of the host's nodes with these functions, in order.
std::vector<TestCell> cellsFor(const Topology& host, const std::vector<std::size_t>& functions);

/// The GPU and the PF of the first `count` rails.
std::vector<std::size_t> railsOf(const Topology& host, std::size_t count);

/// A domain with the leases that attach would make; entries are named dev0, dev1, ... in order.
class MirroredDomain {
 public:
  MirroredDomain(const Topology& host, std::string xml) : host_(host), bare_(std::move(xml)) {}

  /// Attaches these functions under these names and detaches all others. Throws std::runtime_error
  /// with the first fault.
  Mirror attach(const std::vector<std::pair<std::string, std::size_t>>& devices,
                unsigned sparePorts = 0);
  [[nodiscard]] std::string xml() const;
  [[nodiscard]] Topology guest() const;
  [[nodiscard]] const std::vector<Lease>& leases() const { return leases_; }
  [[nodiscard]] const Lease& lease(const std::string& name) const;
  /// Descriptions of the pairs whose distance differs from the host's; empty if the tree is
  /// mirrored.
  [[nodiscard]] std::vector<std::string> differences() const;

 private:
  const Topology& host_;
  std::string bare_;
  std::vector<Lease> leases_;
  std::vector<std::size_t> functions_;
};

/// Names the functions dev0, dev1, ...
std::vector<std::pair<std::string, std::size_t>> named(const std::vector<std::size_t>& functions);

/// A test host, and how many of its rails a guest has.
struct HostAndRails {
  std::string host;
  std::size_t rails = 0;
};

/// Those whose guests are checked against libvirt's schema, and started in the lab.
std::vector<HostAndRails> mirroredHosts();

/// The XML of such a guest after the attach.
std::string mirroredDomain(const HostAndRails& wanted);

}  // namespace vfpass::topology
