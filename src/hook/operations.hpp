#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/error.hpp"
#include "vfpass/state/seal_key_file.hpp"

namespace vfpass::hook {

/// Of the entries in the systemd journal and in syslog.
inline constexpr const char* program = "vfpass-qemu-hook";

/// The domain XML that libvirt writes to standard input. It has no limit: libvirt indents foreign
/// metadata, so that 4 MiB become 64 (xmlNodeDump, by up to 60 spaces).
struct DomainInput {
  std::string xml;            ///< the first 16 MiB
  bool complete = true;       ///< `xml` is all of it
  bool mayBeManaged = false;  ///< domain::mayBeManaged() of all of it
};

/// Reads the descriptor to its end: libvirt reports a pipe that is closed earlier.
DomainInput readInput(int descriptor);

/// A call of libvirt: `qemu NAME OPERATION SUBOPERATION EXTRA`.
struct Request {
  std::string name;
  std::string operation;
  std::string suboperation;
  DomainInput input;
};

/// The error and its remedy in one line without control characters: libvirt puts the hook's stderr
/// into its own error message.
std::string errorLine(const Error& error);

/// Paths of state and locks, and the deadline of the call. The paths are fixed, because the hook
/// uses nothing from its environment.
struct Places {
  std::filesystem::path stateDirectory = "/var/lib/vfpass";
  std::filesystem::path runDirectory = "/run/vfpass";
  /// End of the whole call, waiting included: libvirt has no timeout for hooks and holds the
  /// domain's lock while one runs.
  std::chrono::steady_clock::time_point deadline;
  state::SealKeyPlaces sealKey = {};
};

/// The domain of a call, and the XML that libvirt passed.
struct CalledDomain : domain::ParsedDomain {
  std::string_view xml;
};

// Each returns the leases with whose devices it has done something.

/// Called before libvirt looks at the devices. Creates, configures and binds the domain's VFs;
/// throws if the domain must not start.
std::vector<Lease> prepare(const CalledDomain& parsed, const Places& places);

/// Called when the guest runs. Marks its leases as running.
std::vector<Lease> markRunning(const Uuid& domain, const std::string& xml, const Places& places);

/// Called after the guest stopped or its start was refused. Scrubs the devices of this domain's
/// starting or running leases and no others. After a refused start the XML may name a device leased
/// to another domain, so the leases decide and not the XML; it only tells whether the guest has got
/// what an interrupted attach had not yet plugged. Without any lease of the domain, those in its
/// sealed metadata are rebuilt first: the database was lost while the guest ran.
std::vector<Lease> release(const Uuid& domain, const std::string& xml, const Places& places);

/// Called when the daemon restarts while the guest runs. Rebuilds the guest's leases if they are
/// lost.
std::vector<Lease> reconnect(const CalledDomain& parsed, const Places& places);

// arrivals.cpp: libvirt calls these before anything is done for the domain, as filters of its XML.
// A failure ends the migration (qemuMigrationDstPrepareFresh), and an empty answer leaves the XML
// as it is. Nothing is written and no device is touched; `prepare` follows with the XML that they
// return.

/// The XML to use and the leases that it has now; none if nothing has to be replaced.
struct ArrivalAnswer {
  std::string xml;
  std::vector<Lease> leases;
};

/// Called before a domain is started from a saved image. Gives the XML of the image the domain's
/// leases of today. If the image does not fit them, the XML has the refusal, with which
/// `prepare` ends the start: libvirt 11.3 takes a failure of this call for a domain that has been
/// restored, and deletes the saved image (qemuDomainObjRestore returns what
/// qemuSaveImageGetMetadata did).
ArrivalAnswer restoreSaved(const CalledDomain& parsed, const Places& places);

/// Called on the target of a migration. Replaces the leases of the source by those that an attach
/// has recorded on this host for the same domain. Throws if this host has no such lease, or if the
/// guest would notice the difference.
ArrivalAnswer receive(const CalledDomain& parsed, const Places& places);

}  // namespace vfpass::hook
