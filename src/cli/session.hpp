#pragma once

#include <spdlog/logger.h>

#include <chrono>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "options.hpp"
#include "vfpass/apply/tools.hpp"
#include "vfpass/config/configuration.hpp"
#include "vfpass/host/system_kernel.hpp"
#include "vfpass/hypervisor.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/report/style.hpp"
#include "vfpass/seal_key.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::cli {

/// What one command works with. Everything is opened at first use, so that a command fails only for
/// what it needs.
class Session {
 public:
  Session(GlobalOptions options, std::ostream& out, std::ostream& err);

  [[nodiscard]] const GlobalOptions& options() const { return options_; }
  [[nodiscard]] const report::Style& style() const { return style_; }
  std::ostream& out() { return out_; }

  /// The running system, or the captured tree of --sysroot. Throws for a folder that is no
  /// captured tree, before anything is read from it.
  [[nodiscard]] host::Root root() const;
  host::SystemKernel& kernel();
  Hypervisor& hypervisor();
  /// For commands that change something: creates folder and file.
  state::Database& database();
  /// For commands that only look: never writes; leases of a missing database are none.
  std::vector<Lease> readLeases();
  /// The same database for other questions; never writes.
  state::Database readDatabase();
  /// Operations that were begun and not ended; none of a captured tree. Never writes.
  std::vector<Plan> openWork();
  /// SoftRoCE links that vfpass made. Never writes.
  std::vector<SoftRoceRecord> softRoceRecords();
  /// With these PCI functions, where they exist: no others are read.
  Inventory inventory(const std::vector<PciAddress>& functions = {});
  /// Adds who holds the VFs of these PFs, and the inventory's functions, now.
  void addHolders(Inventory& inventory, const std::vector<PciAddress>& pfs);
  const config::Configuration& configuration();
  /// For commands that change something; creates the seal key if the host has none.
  apply::Tools tools();
  /// The key that this host seals metadata with; without a secret until the key exists.
  const SealKey& sealKey();
  /// For plans without steps on domains: libvirt is not asked.
  apply::Tools hostTools();

  /// For another command's PF lock: long enough for a slow driver, short enough to end.
  static constexpr std::chrono::milliseconds lockPatience{150000};

  /// Says something to the user on stderr, unless --quiet.
  void note(const std::string& line);
  void warn(const std::string& line);
  void verbose(const std::string& line);

  /// Throws unless the effective user is root and the root is the running system's: `what` cannot
  /// be done otherwise.
  void requireChangesPossible(const std::string& what) const;

  /// Throws (bad input) unless libvirt is the system daemon of this host: another libvirt cannot
  /// say who uses its devices.
  void requireLocalLibvirt(const std::string& what);

  /// Both of them.
  void requireDomainChangesPossible(const std::string& what);

 private:
  GlobalOptions options_;
  std::ostream& out_;
  spdlog::logger log_;
  report::Style style_;
  std::unique_ptr<host::SystemKernel> kernel_;
  std::unique_ptr<Hypervisor> hypervisor_;
  std::unique_ptr<state::Database> database_;
  std::optional<SealKey> sealKey_;
  std::optional<config::Configuration> configuration_;
};

}  // namespace vfpass::cli
