#pragma once

#include <spdlog/logger.h>

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
  /// With these PCI functions, where they exist: no others are read.
  Inventory inventory(const std::vector<PciAddress>& functions = {});
  const config::Configuration& configuration();
  apply::Tools tools();

  /// Says something to the user on stderr, unless --quiet.
  void note(const std::string& line);
  void warn(const std::string& line);
  void verbose(const std::string& line);

  /// Throws unless the effective user is root and the root is the running system's: `what` cannot
  /// be done otherwise.
  void requireChangesPossible(const std::string& what) const;

 private:
  GlobalOptions options_;
  std::ostream& out_;
  spdlog::logger log_;
  report::Style style_;
  std::unique_ptr<host::SystemKernel> kernel_;
  std::unique_ptr<Hypervisor> hypervisor_;
  std::unique_ptr<state::Database> database_;
  std::optional<config::Configuration> configuration_;
};

}  // namespace vfpass::cli
