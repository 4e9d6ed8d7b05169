#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "command_session.hpp"
#include "vfpass/doctor/doctor.hpp"
#include "vfpass/fabric_partition.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/report/topology_report.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::commands {

/// The host's topology and its leases; for a captured tree those of an explicit --state-dir only.
report::TopologyReport topologyReport(Session& session, bool withModels);

/// Of which host and with which versions a page was made, in words: `host gpu01, vfpass 0.1.0,
/// Linux 6.12.0, mlx5_core, firmware 28.39.1002`.
std::string originOf(Session& session, const Topology& topology);

/// Of which host, and on which day, a picture was made: `host gpu01, 2026-11-28`. Without the day
/// for a captured tree.
std::string placeAndDay(const Session& session);

/// The local date, `2026-11-28`, as in host.yaml.
std::string today();

/// The leases of the same tree.
std::vector<Lease> leasesOfTree(Session& session);

/// What the fabric manager of a board with NVSwitches says of its partitions.
struct PartitionAnswer {
  std::optional<std::vector<FabricPartition>> partitions;
  bool installed = false;  ///< fmpm is there; false for a captured tree
  std::string problem;     ///< why they are not known; empty also if a captured tree lacks them
};

/// Runs `fmpm -l`; in a captured tree reads its recorded output.
PartitionAnswer askForPartitions(const host::Root& root);

/// Prints warnings about invalid values in the tree, and only the number of those after the first
/// few.
void warnOfProblems(Session& session, const Topology& topology);

/// Sets the model names of the devices, for output. Without libpci they stay empty, with a warning:
/// the output then has the devices' numbers or only their addresses.
void nameModels(Session& session, Inventory& inventory);
void nameModels(Session& session, Topology& topology);

/// Whether there is a configuration for this host or tree. This host's mappings do not apply to a
/// captured tree; only an explicit --config-dir does.
bool hasConfiguration(const Session& session);

/// What all mappings and host.yaml require of the host; nothing without a configuration.
doctor::Requirements requirementsOfHost(Session& session, const Topology& topology);

/// Adds what the mapping's VFIO backend takes from its VM's devices of peer-to-peer traffic, and
/// whether the mapping requests iommufd, whatever the domain's own elements say.
void addBackend(Session& session, const Topology& topology, const Mapping& mapping,
                doctor::Requirements& requirements);

/// Adds the leased devices and, of the running system, those in quarantine. Without the records
/// doctor still checks everything; then leases do not make a device used.
void addLeases(Session& session, doctor::Requirements& requirements);

/// All findings of doctor, with those marked that host.yaml accepts today.
std::vector<Diagnosis> diagnose(Session& session, const host::Root& root, const Topology& topology,
                                const doctor::Requirements& requirements,
                                const doctor::Inquiries& inquiries);

/// The findings of `doctor --vm`. Throws (bad input) if the VM has no mapping. In
/// doctor_command.cpp.
std::vector<Diagnosis> diagnosesOfVm(Session& session, const std::string& vm);

/// Doctor's queries to libvirt. They run only when a check needs them, and never for a captured
/// tree. The result must not outlive the session.
/// If libvirt does not answer, `onSilence` gets the reason; without `onSilence`, -v prints it.
doctor::Inquiries inquiriesOf(Session& session,
                              const std::function<void(const Error&)>& onSilence = {});

/// The units that host.yaml and these mappings need.
std::vector<doctor::RequiredUnit> requiredUnits(const config::Configuration& configuration,
                                                const std::vector<Mapping>& mappings);

/// What has to run on this host besides vfpass for VMs with these mappings, and does not: the qemu
/// hook and the required units, one line each with its remedy. Nothing for a captured tree.
std::vector<std::string> missingServices(Session& session, const std::vector<Mapping>& mappings);

}  // namespace vfpass::commands
