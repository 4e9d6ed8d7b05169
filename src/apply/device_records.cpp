#include "device_records.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/state/memory_checks.hpp"
#include "vfpass/state/record_json.hpp"

namespace vfpass::apply {
namespace {

std::string messageOf(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.what();
  }
}

ResetResult resultOf(const ResetOutcome& outcome, const std::string& time) {
  ResetResult result{time, outcome.methods, "", toString(outcome.memory)};
  if (outcome.failure) {
    result.failure = messageOf(outcome.failure);
  } else if (!outcome.done) {
    result.failure = "the kernel has no method to reset it";
  }
  return result;
}

// The domain that has a lease of the device. The use names it, unless an earlier version recorded
// the lease.
std::optional<Uuid> lesseeOf(const PciAddress& device, const std::optional<DeviceUse>& use,
                             const Tools& tools) {
  const auto among = [&](const std::vector<Lease>& leases) {
    const auto lease = std::ranges::find(leases, device, &Lease::device);
    return lease == leases.end() ? std::nullopt : std::optional(lease->domain);
  };
  const auto lessee = use ? among(tools.database.leasesOf(use->domain)) : std::nullopt;
  return lessee ? lessee : among(tools.database.leases());
}

void recordReset(const PciAddress& device, const ResetOutcome& outcome, Tools& tools) {
  const std::string time = utcNow();
  std::string identity;
  auto use = tools.database.deviceUse(device);
  if (const auto lessee = lesseeOf(device, use, tools)) {
    use = use.value_or(DeviceUse{device, *lessee, std::nullopt, std::nullopt});
    use->reset = resultOf(outcome, time);
    tools.database.recordUse(*use);
    identity = use->identity;
  }
  if (outcome.failure) {
    tools.database.quarantine(
        {device, "its reset failed: " + messageOf(outcome.failure), time, identity});
  } else if (outcome.memory.result == MemoryCheck::Result::survived) {
    tools.database.quarantine({device, "its memory survived the reset", time, identity});
  }
}

void recordResets(const std::vector<ResetFunction>& resets,
                  const std::vector<ResetOutcome>& outcomes, Tools& tools) {
  tools.database.together([&] {
    for (std::size_t at = 0; at < outcomes.size(); ++at) {
      recordReset(resets[at].function, outcomes[at], tools);
    }
  });
}

// The failure of a reset, for whoever reads it: nobody gets the device by trying again.
std::exception_ptr inQuarantine(const std::exception_ptr& failure) {
  const std::string addition = " (the device is in quarantine now)";
  try {
    std::rethrow_exception(failure);
  } catch (const TimeoutError& error) {
    return std::make_exception_ptr(TimeoutError(error.what() + addition, error.remedy()));
  } catch (const Error& error) {
    return std::make_exception_ptr(Error(error.what() + addition, error.remedy()));
  }
}

// What happened to a device while a domain had it.
struct Errors {
  std::vector<std::string> ofHardware;  ///< reasons for a quarantine
  std::vector<std::string> others;
};

std::string errorsText(std::uint64_t count, const std::string& kind = "") {
  return "AER has counted " + std::to_string(count) + " " + kind +
         (count == 1 ? "error" : "errors");
}

// A device that has appeared again counts from 0, as after a boot. Each counter by itself: that of
// the port above has gone on.
ErrorCounts countedSince(const ErrorCounts& begin, const ErrorCounts& now, bool sameBoot) {
  const auto since = [&](std::uint64_t ErrorCounts::*counter) {
    const bool goesOn = sameBoot && begin.*counter <= now.*counter;
    return goesOn ? now.*counter - begin.*counter : now.*counter;
  };
  return {since(&ErrorCounts::hardware), since(&ErrorCounts::others),
          since(&ErrorCounts::corrected)};
}

void addCounts(const std::optional<DeviceUse>& use, Tools& tools, HandOverRecord& record,
               Errors& errors) {
  const auto counted = tools.kernel.errorCounts(record.device);
  if (!counted) {
    record.unobserved.emplace_back(
        "errors: the device has no AER counters, or does not exist any more");
    return;
  }
  if (!use || !use->began) {
    record.unobserved.emplace_back(
        "errors: their number at the beginning of the lease is not known");
    return;
  }
  const bool sameBoot = use->began->bootId == tools.kernel.bootId();
  if (!sameBoot) {
    record.unobserved.emplace_back("errors: those of earlier boots are not known");
  }
  const ErrorCounts since =
      countedSince(use->began->errors.value_or(ErrorCounts{}), *counted, sameBoot);
  if (since.hardware > 0) {
    errors.ofHardware.push_back(errorsText(since.hardware) + " of its hardware or link");
  }
  if (since.others > 0) {
    errors.others.push_back(errorsText(since.others) + " that a guest can cause");
  }
  if (since.corrected > 0) {
    errors.others.push_back(errorsText(since.corrected, "corrected "));
  }
}

// The host's driver of NVIDIA has the GPU only before the guest gets it and after it has left.
void addXids(const std::optional<DeviceUse>& use, Tools& tools, HandOverRecord& record,
             Errors& errors) {
  const auto log = tools.kernel.xidLog(record.device);
  if (!log) {
    return;
  }
  if (!log->readable) {
    record.unobserved.emplace_back("Xids: the kernel log cannot be read");
    return;
  }
  if (!use || !use->began || !use->began->logRecord) {
    record.unobserved.emplace_back(
        "Xids: the kernel log was not read at the beginning of the lease");
    return;
  }
  const bool sameBoot = use->began->bootId == tools.kernel.bootId();
  const std::uint64_t begin = sameBoot ? *use->began->logRecord : 0;
  if (!sameBoot) {
    record.unobserved.emplace_back("Xids: those of earlier boots are not known");
  }
  if (log->first > begin) {
    record.unobserved.emplace_back("Xids: the kernel log does not go back to the beginning");
  }
  std::set<unsigned> numbers;
  for (const Xid& xid : log->xids) {
    if (xid.sequence >= begin && numbers.insert(xid.number).second) {
      errors.ofHardware.push_back("NVIDIA's driver has logged Xid " + std::to_string(xid.number));
    }
  }
}

void addErrors(const std::optional<DeviceUse>& use, Tools& tools, HandOverRecord& record) {
  Errors errors;
  addCounts(use, tools, record, errors);
  addXids(use, tools, record, errors);
  if (!errors.ofHardware.empty()) {
    record.quarantine =
        join(errors.ofHardware, "; ") + " since domain " + printable(record.domainName) + " got it";
  }
  record.errors = std::move(errors.ofHardware);
  record.errors.insert(record.errors.end(), errors.others.begin(), errors.others.end());
}

/// Reads what is known of devices when their leases begin: each card and the kernel log once.
class UseReader {
 public:
  explicit UseReader(Tools& tools) : kernel_(tools.kernel), identities_(tools.kernel) {}

  DeviceUse read(const Lease& lease) {
    return {lease.device, lease.domain,
            UseBegin{kernel_.bootId(), kernel_.errorCounts(lease.device), logRecord(lease.device)},
            std::nullopt, identities_.ofDevice(lease)};
  }

 private:
  // The log is the host's: where it is after one GPU is known for the next device, too.
  std::optional<std::uint64_t> logRecord(const PciAddress& device) {
    if (!log_) {
      log_ = kernel_.xidLog(device);
    }
    return log_ && log_->readable ? std::optional(log_->next) : std::nullopt;
  }

  Kernel& kernel_;
  CardIdentities identities_;
  std::optional<XidLog> log_;
};

// A device that another lease of the domain had, under another name, stays the domain's.
bool isLeased(const Lease& lease, const Tools& tools) {
  const auto leases = tools.database.leasesOf(lease.domain);
  return std::ranges::find(leases, lease.device, &Lease::device) != leases.end();
}

/// Reads each PF once, for the VFs of all leases that end together: one that does not answer costs
/// the whole time that a read may take.
class PfReader {
 public:
  explicit PfReader(Tools& tools) : tools_(tools) {}

  /// Null if it cannot be read; `problem` is then the reason.
  const PhysicalFunction* read(const PciAddress& address, std::string& problem) {
    const auto [found, isNew] = pfs_.try_emplace(address);
    Answer& answer = found->second;
    try {
      if (isNew) {
        answer.pf = tools_.kernel.readPf(address);
      }
    } catch (const Error& error) {
      answer.problem = error.what();
    }
    if (answer.pf) {
      return &*answer.pf;
    }
    problem = answer.problem;
    return nullptr;
  }

 private:
  struct Answer {
    std::optional<PhysicalFunction> pf;
    std::string problem;
  };

  Tools& tools_;
  std::map<PciAddress, Answer> pfs_;
};

void addFirmware(const PhysicalFunction* pf, const std::string& problem, HandOverRecord& record) {
  record.firmware = pf == nullptr || pf->rdma.empty() ? "" : pf->rdma.front().firmware;
  if (record.firmware.empty()) {
    record.unobserved.push_back(
        "firmware: " + (pf == nullptr ? problem : "its PF has no RDMA device that shows it"));
  }
}

void addSettings(const DropLease& drop, PfReader& pfs, HandOverRecord& record) {
  const HandedOver& device = *drop.handedOver;
  if (!device.vfIndex || !drop.pf) {
    record.unobserved.emplace_back(
        "firmware: no driver of the host shows that of a whole function");
    return;
  }
  std::string problem = "the VF does not exist any more";
  const PhysicalFunction* pf = pfs.read(*drop.pf, problem);
  addFirmware(pf, problem, record);
  if (pf == nullptr || *device.vfIndex >= pf->vfs.size()) {
    record.unobserved.push_back("attributes: " + problem);
    return;
  }
  const VirtualFunction& vf = pf->vfs[*device.vfIndex];
  if (vf.address != device.device) {
    record.unobserved.push_back("attributes: the VF with its index is at " + toString(vf.address));
    return;
  }
  if (!vf.settingsReadable) {
    record.unobserved.emplace_back("attributes: the driver does not report them");
    return;
  }
  record.settings = vf.settings;
  const VfSettings neutral = neutralSettings(device.infiniband);
  for (const Attribute attribute : differingAttributes(neutral, vf.settings)) {
    if (only(vf.settings, {attribute}) != VfSettings{}) {
      record.notNeutral.emplace_back(toString(attribute));
    }
  }
}

void addMemory(HandOverRecord& record) {
  const std::string memory = record.reset ? record.reset->memory : "not checked: it was not reset";
  if (memory == toString(MemoryCheck{MemoryCheck::Result::survived, ""})) {
    record.errors.emplace_back("its memory survived the reset");
  } else if (memory != toString(MemoryCheck{MemoryCheck::Result::gone, ""})) {
    record.unobserved.push_back("memory: " + memory);
  }
}

// Such as of a reset that failed. That of a PF applies to its VFs.
std::string earlierQuarantine(const PciAddress& device, const std::optional<PciAddress>& pf,
                              const Tools& tools) {
  for (const QuarantinedDevice& each : tools.database.quarantined()) {
    if (each.device == device || each.device == pf) {
      return each.reason;
    }
  }
  return {};
}

state::EndedLease endOf(const DropLease& drop, PfReader& pfs, Tools& tools) {
  const HandedOver& device = *drop.handedOver;
  HandOverRecord record;
  record.time = utcNow();
  record.domain = drop.domain;
  record.domainName = device.domainName;
  record.entry = drop.entry;
  record.generation = drop.generation;
  record.device = device.device;
  const auto use = tools.database.deviceUse(device.device);
  record.reset = use ? use->reset : std::nullopt;
  record.identity = use ? use->identity : "";
  addSettings(drop, pfs, record);
  addErrors(use, tools, record);
  addMemory(record);
  if (record.quarantine.empty()) {
    record.quarantine = earlierQuarantine(record.device, drop.pf, tools);
  }
  return {record, domain::sealOfRecord(state::handOverToJson(record), tools.sealKey)};
}

// Before the activation, so that the recovery of a start that is killed within it knows of it.
void recordActivation(const SetPartition& action, Tools& tools) {
  tools.database.together([&] {
    for (Lease& lease : tools.database.leasesOn(action.gpus)) {
      if (nvlinkModuleOf(lease)) {
        lease.activatedPartition = true;
        tools.database.recordLease(lease);
      }
    }
  });
}

// Without the GPUs that were plugged into the running guest.
SetPartition onlyActivated(const SetPartition& action, const Tools& tools) {
  SetPartition activated{{}, {}, action.active};
  for (const Lease& lease : tools.database.leasesOn(action.gpus)) {
    const auto module = nvlinkModuleOf(lease);
    if (module && lease.activatedPartition) {
      activated.gpus.push_back(lease.device);
      activated.modules.push_back(*module);
    }
  }
  return activated;
}

}  // namespace

NewUses usesToBegin(const Plan& plan, Tools& tools) {
  UseReader reader(tools);
  NewUses uses;
  for (const Step& step : plan.steps) {
    const auto* record = std::get_if<RecordLease>(&step.action);
    if (record == nullptr || uses.contains(record->lease.device)) {
      continue;
    }
    const Lease& lease = record->lease;
    const auto use = tools.database.deviceUse(lease.device);
    // The use of a lease that ended without a record is left, but it ended, too.
    if (!use || use->domain != lease.domain || !isLeased(lease, tools)) {
      uses.emplace(lease.device, reader.read(lease));
    }
  }
  return uses;
}

void recordLease(const Lease& lease, NewUses& uses, Tools& tools) {
  if (auto begun = uses.extract(lease.device)) {
    // A lease without a use, as after the loss of the database: a step before has reset the device.
    const auto now = tools.database.deviceUse(lease.device);
    if (now && lease.state == LeaseState::reserved && isLeased(lease, tools)) {
      begun.mapped().reset = now->reset;
    }
    tools.database.recordLease(lease);
    tools.database.recordUse(begun.mapped());
    return;
  }
  auto use = tools.database.deviceUse(lease.device);
  const bool isNew = !use || use->domain != lease.domain;
  // The guest gets it: the reset after its last run is not one after this run.
  if (!isNew && use->reset && lease.state != LeaseState::reserved) {
    use->reset.reset();
    tools.database.recordUse(*use);
  }
  tools.database.recordLease(lease);
  if (isNew) {
    tools.database.recordUse(UseReader(tools).read(lease));
  }
}

void dropLeases(const std::vector<DropLease>& drops, Tools& tools) {
  PfReader pfs(tools);
  std::vector<state::EndedLease> ended;
  for (const DropLease& drop : drops) {
    if (drop.handedOver) {
      ended.push_back(endOf(drop, pfs, tools));
    }
  }
  tools.database.together([&] {
    for (const DropLease& drop : drops) {
      if (!drop.handedOver) {
        tools.database.dropLease(drop.domain, drop.entry, drop.generation);
      }
    }
    tools.database.endLeases(ended);
  });
}

void resetDevices(const std::vector<ResetFunction>& resets, Tools& tools) {
  const auto outcomes =
      tools.kernel.resetFunctions(resets, state::memoryChecks(tools.runDirectory));
  const auto unrecorded = caught([&] { recordResets(resets, outcomes, tools); });
  std::vector<std::exception_ptr> failures;
  for (const ResetOutcome& outcome : outcomes) {
    if (outcome.failure) {
      failures.push_back(unrecorded ? outcome.failure : inQuarantine(outcome.failure));
    }
  }
  // A reset that failed is what the caller must know, even if it cannot be recorded: after a
  // TimeoutError nothing may touch the device.
  if (unrecorded && failures.empty()) {
    std::rethrow_exception(unrecorded);
  }
  failures.push_back(unrecorded);
  throwAny(failures);
}

void setPartition(const SetPartition& action, Tools& tools) {
  if (action.active) {
    return tools.kernel.setPartition(action, [&] { recordActivation(action, tools); });
  }
  const SetPartition activated = onlyActivated(action, tools);
  if (!activated.gpus.empty()) {
    tools.kernel.setPartition(activated, [] {});
  }
}

}  // namespace vfpass::apply
