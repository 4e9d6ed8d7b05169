#pragma once

#include <string>
#include <vector>

#include "command_session.hpp"
#include "vfpass/doctor/doctor.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::commands {

/// Whether there is a configuration for this host or tree. This host's mappings do not apply to a
/// captured tree; only an explicit --config-dir does.
bool hasConfiguration(const Session& session);

/// What all mappings and host.yaml require of the host; nothing without a configuration.
doctor::Requirements requirementsOfHost(Session& session, const Topology& topology);

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
doctor::Inquiries inquiriesOf(Session& session);

/// The units that host.yaml and these mappings need.
std::vector<doctor::RequiredUnit> requiredUnits(const config::Configuration& configuration,
                                                const std::vector<Mapping>& mappings);

/// What has to run on this host besides vfpass for VMs with these mappings, and does not: the qemu
/// hook and the required units, one line each with its remedy. Nothing for a captured tree.
std::vector<std::string> missingServices(Session& session, const std::vector<Mapping>& mappings);

}  // namespace vfpass::commands
