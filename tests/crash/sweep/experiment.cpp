#include "sweep/experiment.hpp"

#include <string.h>

#include <cerrno>

namespace vfpass::crash {
namespace {

Fault faultOf(FaultMode mode, std::optional<ChangeClass> only = std::nullopt, int error = 0) {
  return {mode, only, error, 0, -1};
}

std::vector<Experiment> kills() {
  const Fault kill = faultOf(FaultMode::kill);
  return {{"kill-recover", "recover", Continuation::recover, kill},
          {"kill-again", "again", Continuation::again, kill},
          {"kill-reboot", "reboot", Continuation::reboot, kill},
          {"kill-start", "start", Continuation::start, kill},
          {"kill-nested", "nested", Continuation::nestedKills, kill}};
}

// The first one loses everything that was not synced. In the others each sector survives or not.
std::vector<Experiment> powerFailures() {
  std::vector<Experiment> all;
  for (int number = 0; number < 4; ++number) {
    all.push_back({"power-" + std::to_string(number), "power", Continuation::powerFailure,
                   faultOf(FaultMode::kill)});
    all.back().variant = static_cast<std::uint32_t>(number);
  }
  return all;
}

std::vector<Experiment> lateWrites() {
  std::vector<Experiment> all;
  for (const int delay : {1, 5, 20}) {
    Fault fault = faultOf(FaultMode::killLate, ChangeClass::kernel);
    fault.delay = delay;
    all.push_back({"late-" + std::to_string(delay), "late", Continuation::recover, fault});
  }
  return all;
}

std::vector<Experiment> errors() {
  std::vector<Experiment> all;
  const auto add = [&all](const std::string& name, const Fault& fault) {
    all.push_back({name, "errors", Continuation::judge, fault});
  };
  for (const int error : {EIO, ENOSPC, EBUSY, EINTR, ENOMEM, EPERM, ENODEV}) {
    add(std::string("kernel-") + ::strerrorname_np(error),
        faultOf(FaultMode::error, ChangeClass::kernel, error));
  }
  add("kernel-lost-reply", faultOf(FaultMode::errorAfter, ChangeClass::kernel, ECHILD));
  add("kernel-hang", faultOf(FaultMode::hang, ChangeClass::kernel));
  all.push_back({"kernel-hang-early", "errors", Continuation::recoverTooEarly,
                 faultOf(FaultMode::hang, ChangeClass::kernel)});
  add("start-fails-once", faultOf(FaultMode::error, ChangeClass::start, EAGAIN));
  add("start-fails", faultOf(FaultMode::errorFrom, ChangeClass::start, EAGAIN));
  add("query-fails-once", faultOf(FaultMode::error, ChangeClass::query, EIO));
  add("query-fails", faultOf(FaultMode::errorFrom, ChangeClass::query, EIO));
  add("libvirt-refuses", faultOf(FaultMode::error, ChangeClass::libvirt, EIO));
  add("libvirt-lost-reply", faultOf(FaultMode::errorAfter, ChangeClass::libvirt, EIO));
  add("libvirt-dies", faultOf(FaultMode::lastEffect, ChangeClass::libvirt, EIO));
  add("file-EIO", faultOf(FaultMode::error, ChangeClass::file, EIO));
  add("disk-full", faultOf(FaultMode::errorFrom, ChangeClass::file, ENOSPC));
  add("no-descriptors", faultOf(FaultMode::errorFrom, ChangeClass::open, EMFILE));
  add("disk-fails", faultOf(FaultMode::errorFrom, ChangeClass::file, EIO));
  return all;
}

}  // namespace

const std::vector<Experiment>& allExperiments() {
  static const std::vector<Experiment> experiments = [] {
    std::vector<Experiment> all;
    for (const auto& group : {kills(), powerFailures(), lateWrites(), errors()}) {
      all.insert(all.end(), group.begin(), group.end());
    }
    all.push_back({"memory", "memory", Continuation::judge, {}, true});
    return all;
  }();
  return experiments;
}

std::vector<std::string> allSweeps() {
  return {"recover", "again", "reboot", "start", "power", "nested", "late", "errors", "memory"};
}

long allocationAt(long point) {
  long allocation = 50;
  for (long each = 1; each < point; ++each) {
    allocation += allocation / 12 + 1;
  }
  return allocation;
}

}  // namespace vfpass::crash
