#pragma once

#include <string>
#include <vector>

#include "guest_files.hpp"
#include "vfpass/setup/setup_record.hpp"

namespace vfpass::setup {

/// Whether the port gets settings besides its name.
bool wantsNetwork(const WantedPort& port);

/// The record of a port, or its first one.
RecordedPort recordOf(const SetupRecord& record, const WantedPort& port, const NetdevState& now);

/// Decides the names of the ports' interfaces, and when they get them.
///
/// netplan's files for networkd and NetworkManager match the name of `set-name`, so an interface
/// that netplan configures, or no longer configures, is renamed at once. udev renames all others
/// when they appear, usually at the guest's next start (systemd.link): their files match the
/// hardware address, and the running interface stays undisturbed.
class InterfaceNames {
 public:
  InterfaceNames(NetworkTool tool, const SetupView& view, const SetupRecord& record)
      : tool_(tool), view_(view), record_(record) {}

  /// With the name from the mapping; without one an interface returns to the name that it had
  /// before vfpass named it.
  [[nodiscard]] PlacedPort placed(const WantedPort& port, const SetupNetdev& netdev) const;

  [[nodiscard]] bool isRenamedNow(const PlacedPort& port) const;
  [[nodiscard]] bool isRenamedLater(const PlacedPort& port) const;

  /// Whether vfpass writes a .link file for it.
  [[nodiscard]] bool needsLinkFile(const PlacedPort& port) const;

  /// Throws Error when a name from the mapping is not possible in this guest. Returns notes on
  /// names that are not applied.
  [[nodiscard]] std::vector<std::string> check(const std::vector<PlacedPort>& ports) const;

  /// Records the name that the port gets. A name stays in the record until the interface has lost
  /// it.
  void keep(const PlacedPort& port, RecordedPort& recorded) const;

 private:
  [[nodiscard]] bool isGiven(const WantedPort& port) const;
  [[nodiscard]] bool exists(const std::string& name) const;
  [[nodiscard]] bool isTaken(const PlacedPort& port, const std::vector<PlacedPort>& ports) const;

  NetworkTool tool_;
  const SetupView& view_;
  const SetupRecord& record_;
};

}  // namespace vfpass::setup
