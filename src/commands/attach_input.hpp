#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command_session.hpp"
#include "subject.hpp"
#include "survey_domains.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/objection.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/report/plan_report.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/version.hpp"

namespace vfpass::commands {

/// The part of the host's state that attach reads.
struct HostReading {
  Inventory inventory;  ///< with the holders of the VFs and functions concerned
  Topology topology;
  HypervisorVersions versions;
};

/// For one VM: only the devices it needs.
HostReading readHostFor(Session& session, const Subject& subject, const std::vector<Lease>& leases);

/// For all VMs with a mapping or a lease. Read once, so that the PCI tree and /proc are not walked
/// for each VM.
HostReading readHostForAll(Session& session, const std::vector<Lease>& leases);

/// The input of planAttach(). Settle `near` first (settleNear()). If the plan is to run,
/// take the locks of pfsOf() before reading the host and calling this.
plan::AttachInput attachInput(Session& session, const Subject& subject, const DomainSurvey& survey,
                              const std::vector<Lease>& leases, const Scope& scope,
                              const HostReading& host);

/// For `plan`; `after` is the XML after the plan.
report::PlanSettings settingsToShow(const plan::AttachInput& input,
                                    const plan::AttachDecision& decision, const std::string& after);

/// For `attach`: prints one line for each setting that it has not applied.
void noteSettings(Session& session, const plan::AttachInput& input,
                  const plan::AttachDecision& decision);

/// What the host lacks for the VFs that the plan creates: addresses for their BARs, or bus numbers.
/// The kernel would refuse to create them.
std::vector<plan::Objection> checkVfSpace(Session& session, const Plan& plan);

}  // namespace vfpass::commands
