#pragma once

#include "session.hpp"
#include "vfpass/plan/host_policy.hpp"
#include "vfpass/plan/soft_roce.hpp"
#include "vfpass/report/host_report.hpp"

namespace vfpass::cli {

/// A failure as one line, with its remedy.
std::string failureText(const Error& error);
std::string failureText(const plan::Objection& objection);

/// What planHost() decides by, read now.
plan::HostInput hostInput(Session& session, const PhysicalFunction& pf, const PfPolicy& policy);

/// What planSoftRoce() decides by, read now.
plan::SoftRoceInput softRoceInput(Session& session);

/// What host.yaml wants of this PF (nullptr: it has no entry) beside what is found.
report::HostEntry describePf(const PhysicalFunction& pf, const PfSettings& settings,
                             const PfPolicy* policy);

/// The PF of an entry of host.yaml. Throws (bad input) if no PF matches, or another entry has it
/// already.
const PhysicalFunction& pfOf(const PfPolicy& policy, const HostPolicy& all,
                             const Inventory& inventory);

/// An entry of host.yaml for which nothing could be done.
report::HostEntry failedEntry(const PfPolicy& policy, const Error& error);

/// The links that host.yaml names or the host has, with the objections to them as failures.
std::vector<report::SoftRoceEntry> describeLinks(
    const std::vector<plan::SoftRoceDecision>& decisions);

/// host.yaml's policy. Throws (bad input) when it has mistakes; those in mappings are for `check`.
const HostPolicy& soundPolicy(Session& session);

}  // namespace vfpass::cli
