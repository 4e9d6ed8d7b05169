#include "vfpass/verify/host_baseline.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "guest_view.hpp"
#include "judge_transfer.hpp"
#include "transfer_options.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::verify {
namespace {

[[noreturn]] void throwUnusable(const PciAddress& pf, const std::string& what,
                                const std::string& remedy) {
  throw Error("PF " + toString(pf) + ": cannot be measured: " + what, remedy, ExitCode::unverified);
}

const GuestRdmaDevice& deviceOf(const GuestView& host, const PciAddress& pf) {
  const auto device = std::ranges::find_if(host.rdmaDevices, [&](const GuestRdmaDevice& each) {
    return each.parent.empty() && parsePciAddress(each.pci) == pf;
  });
  if (!host.libibverbs) {
    throwUnusable(pf, host.libibverbsDetail,
                  "install rdma-core and ibverbs-providers on this host");
  }
  if (device == host.rdmaDevices.end()) {
    throwUnusable(pf, "it has no RDMA device on this host",
                  "run `modprobe mlx5_ib`; of bonded PFs, specify the first one");
  }
  if (!device->opens) {
    throwUnusable(pf, device->name + " cannot be opened: " + device->whyNot,
                  "install ibverbs-providers on this host");
  }
  return *device;
}

RdmaPort portOf(const GuestView& host, const PciAddress& pf) {
  const GuestRdmaDevice& device = deviceOf(host, pf);
  const auto active = std::ranges::find_if(device.ports, [](const GuestPort& each) {
    return each.state.find("ACTIVE") != std::string::npos && each.gidIndex;
  });
  if (active == device.ports.end()) {
    throwUnusable(pf, device.name + " has no active port with a GID",
                  "look at `vfpass doctor` (pf-link); on Ethernet set the PF's netdev up");
  }
  RdmaPort port;
  port.device = device.name;
  port.number = active->number;
  return port;
}

void requireGpu(const GuestView& host, const PciAddress& gpu) {
  const auto found = std::ranges::find_if(host.gpus, [&](const GuestGpu& each) {
    return parsePciAddress(each.pci) == gpu && each.index;
  });
  if (found == host.gpus.end()) {
    throw Error("GPU " + toString(gpu) + ": the host's driver cannot use it" +
                    (host.libcudaDetail.empty() ? "" : ": " + printable(host.libcudaDetail)),
                "measure without the GPU, or while nvidia is its driver on this host",
                ExitCode::unverified);
  }
}

class BaselineMeasurement {
 public:
  BaselineMeasurement(const RunHostProbe& run, const RdmaPort& port, const BaselinePlan& plan)
      : run_(run), port_(port), plan_(plan) {}

  /// `gpu`: address; empty: host memory.
  void measure(const std::string& gpu) {
    Transfer transfer{"", "write", gpu.empty() ? "host" : "gpu", plan_.messageBytes,
                      plan_.iterations};
    transfer.gpu = gpu;
    transfer.besideHost = !gpu.empty();
    for (const Transfer& each : variantsOf(transfer, RelaxedOrdering::both)) {
      move(each);
    }
  }

  std::vector<Figure> figures;

 private:
  void move(const Transfer& transfer) {
    auto arguments =
        portArguments("loopback", port_, transfer.gpu, deadlines::probeWithin(plan_.timeout));
    const auto options = transferOptions(transfer);
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Finding data = judgeTransfer(transfer, run_(arguments), figures);
    if (data.outcome != Outcome::passed) {
      throw Error(port_.device + ": " + transfer.operation + " of " + transfer.memory +
                      " memory failed on this host: " + printable(data.seen),
                  data.remedy, ExitCode::unverified);
    }
  }

  const RunHostProbe& run_;
  const RdmaPort& port_;
  const BaselinePlan& plan_;
};

}  // namespace

std::vector<Figure> measureBaseline(const RunHostProbe& run, const BaselinePlan& plan,
                                    const std::function<void(const std::string& part)>& progress) {
  progress("looking at the host's devices");
  const GuestView host =
      readGuestView(run(plan.gpu ? std::vector<std::string>{"inventory"}
                                 : std::vector<std::string>{"inventory", "--no-gpus"}));
  const RdmaPort port = portOf(host, plan.pf);
  if (plan.gpu) {
    requireGpu(host, *plan.gpu);
  }
  BaselineMeasurement measurement(run, port, plan);
  progress(port.device + ": host memory");
  measurement.measure("");
  if (plan.gpu) {
    progress(port.device + ": GPU memory");
    measurement.measure(toString(*plan.gpu));
  }
  return std::move(measurement.figures);
}

namespace {

// As in judge_bandwidth.cpp, whose figures are also ours.
bool isBandwidth(const Figure& figure) {
  return figure.source == Figure().source && !figure.medianMicroseconds &&
         figure.gigabitsPerSecond > 0;
}

std::string againCommand(const BaselineSubject& subject) {
  return "`vfpass verify --baseline " + toString(subject.pf) + "`";
}

// Why a baseline says nothing about this VF; empty: it does.
std::string differenceOf(const BaselineSubject& subject, const Baseline& baseline) {
  if (!subject.machine.empty() && !baseline.machine.empty() &&
      subject.machine != baseline.machine) {
    return "it was measured on another host, " + baseline.host;
  }
  if (subject.guid.empty() || subject.guid != baseline.guid) {
    return "another card was in the slot of PF " + toString(subject.pf) +
           ", or its identity is unknown";
  }
  if (subject.pf != baseline.pf) {
    return "the card has moved from slot " + toString(baseline.pf) + " to " + toString(subject.pf);
  }
  if (subject.firmware.empty() || subject.firmware != baseline.firmware) {
    return "the firmware has changed from " + baseline.firmware + " to " + subject.firmware;
  }
  return {};
}

// The best with and without relaxed ordering: a program may choose. 0: none.
double bestOf(const std::vector<Figure>& figures, const Figure& like) {
  double best = 0;
  for (const Figure& each : figures) {
    if (isBandwidth(each) && each.subject == like.subject && each.operation == like.operation &&
        each.memory == like.memory && each.gpu == like.gpu &&
        each.messageBytes == like.messageBytes) {
      best = std::max(best, each.gigabitsPerSecond);
    }
  }
  return best;
}

bool hasRatio(const std::vector<BaselineRatio>& ratios, const Figure& figure) {
  return std::ranges::any_of(ratios, [&](const BaselineRatio& each) {
    return each.operation == figure.operation && each.memory == figure.memory &&
           each.gpu == figure.gpu;
  });
}

// The same figure on the host: there a GPU has its address, and the PF no entry.
Figure onHost(const Figure& figure, const BaselineSubject& subject) {
  Figure host = figure;
  host.subject.clear();
  const auto gpu = subject.functions.find(figure.gpu);
  host.gpu = gpu == subject.functions.end() ? figure.gpu : gpu->second;
  return host;
}

std::vector<BaselineRatio> ratiosOf(const BaselineSubject& subject,
                                    const std::vector<Figure>& figures) {
  std::vector<BaselineRatio> ratios;
  for (const Figure& each : figures) {
    if (!isBandwidth(each) || each.subject != subject.entry || hasRatio(ratios, each)) {
      continue;
    }
    const double host = bestOf(subject.baseline->figures, onHost(each, subject));
    if (host > 0) {
      ratios.push_back({each.operation, each.memory, each.gpu, bestOf(figures, each), host});
    }
  }
  return ratios;
}

bool isLow(const BaselineRatio& ratio) { return ratio.share() < expectedBaselineShare; }

std::string textOf(const BaselineRatio& ratio) {
  return (ratio.gpu.empty() ? ratio.memory : ratio.gpu) + " " + ratio.operation + " " +
         rounded(ratio.guest) + " of " + rounded(ratio.host) + " Gb/s, " +
         percentText(ratio.share());
}

bool movedData(const BaselineSubject& subject, const VerifyReport& report) {
  return std::ranges::any_of(report.figures, [&](const Figure& each) {
    return isBandwidth(each) && each.subject == subject.entry;
  });
}

bool movedGpuData(const BaselineSubject& subject, const VerifyReport& report) {
  return std::ranges::any_of(report.figures, [&](const Figure& each) {
    return isBandwidth(each) && each.subject == subject.entry && each.memory == "gpu";
  });
}

class BaselineJudge {
 public:
  BaselineJudge(const BaselineSubject& subject, VerifyReport& report)
      : subject_(subject), report_(report) {}

  Finding judge() {
    if (!subject_.baseline) {
      return waived("no baseline of PF " + toString(subject_.pf),
                    "while the PF is idle, on the host: " + againCommand(subject_));
    }
    if (const auto other = differenceOf(subject_, *subject_.baseline); !other.empty()) {
      return waived("not compared with the baseline of " + subject_.baseline->time + ": " + other,
                    "measure again: " + againCommand(subject_));
    }
    BaselineComparison comparison{
        subject_.entry, subject_.baseline->time, ratiosOf(subject_, report_.figures), {}};
    if (comparison.ratios.empty()) {
      return waived(
          "not compared: the baseline has no figure of this kind, or none for messages "
          "of this size",
          "verify without --bytes; or measure again: " + againCommand(subject_));
    }
    return compare(std::move(comparison));
  }

 private:
  Finding compare(BaselineComparison comparison) {
    const bool low = std::ranges::any_of(comparison.ratios, isLow);
    if (low) {
      const bool onGpu = std::ranges::any_of(comparison.ratios, [](const BaselineRatio& each) {
        return isLow(each) && each.memory != "host";
      });
      comparison.factors = baselineFactors(subject_, report_, onGpu);
    }
    const auto together = low ? std::nullopt : slowTogether();
    if (together) {
      comparison.factors = {*together};
    }
    const bool differs = low || together;
    Finding finding = waived(seenIn(comparison), differs ? remedyFor(comparison) : idleRemedy());
    if (differs) {
      finding.outcome = Outcome::warning;
    } else if (wasIdle()) {
      finding.outcome = Outcome::passed;
      finding.remedy.clear();
    }
    report_.baselines.push_back(std::move(comparison));
    return finding;
  }

  // All VFs at once against this one alone.
  [[nodiscard]] std::optional<BaselineFactor> slowTogether() const {
    const auto found = report_.together.find(subject_.entry);
    std::vector<std::string> texts;
    for (const BaselineRatio& each : found == report_.together.end()
                                         ? std::vector<BaselineRatio>{}
                                         : ratiosOf(subject_, found->second)) {
      if (isLow(each)) {
        texts.push_back(textOf(each));
      }
    }
    return texts.empty() ? std::nullopt
                         : std::optional(BaselineFactor{
                               "concurrent-vfs",
                               "alone as fast as the host; while up to " +
                                   std::to_string(report_.concurrentVfs) +
                                   " VFs moved data: " + join(texts, "; "),
                               "look for what the VFs share: a link above their PFs (`vfpass topo "
                               "--format tree`), the vCPUs of the guest, of which each VF keeps "
                               "two busy, or the memory of one node"});
  }

  // Of a host that was slowed itself, a high share proves nothing. A low one still is low.
  [[nodiscard]] bool wasIdle() const {
    return subject_.baseline->users.empty() && subject_.baseline->unseenUsers.empty();
  }

  [[nodiscard]] std::string idleRemedy() const {
    return "measure again while nothing uses the card: " + againCommand(subject_);
  }

  [[nodiscard]] std::string seenIn(const BaselineComparison& comparison) const {
    std::vector<std::string> texts;
    for (const BaselineRatio& each : comparison.ratios) {
      texts.push_back(textOf(each));
    }
    std::string seen = join(texts, "; ");
    const bool comparedGpu = std::ranges::any_of(
        comparison.ratios, [](const BaselineRatio& each) { return each.memory == "gpu"; });
    if (!comparedGpu && movedGpuData(subject_, report_)) {
      seen += "; GPU memory not compared: the baseline has none of it";
    }
    if (!subject_.baseline->users.empty()) {
      seen += "; the card was in use during the baseline";
    } else if (!wasIdle()) {
      seen += "; not known whether the card was in use during the baseline";
    }
    std::vector<std::string> names;
    for (const BaselineFactor& each : comparison.factors) {
      names.push_back(each.name);
    }
    return names.empty() ? seen : seen + "; different from the host: " + join(names, ", ");
  }

  // The most likely factor first; the report lists all of them.
  static std::string remedyFor(const BaselineComparison& comparison) {
    if (comparison.factors.empty()) {
      return "no known factor differs from the host: repeat both measurements while the PF is "
             "otherwise idle";
    }
    std::vector<std::string> remedies;
    for (const BaselineFactor& each : comparison.factors) {
      if (!each.remedy.empty() && std::ranges::find(remedies, each.remedy) == remedies.end()) {
        remedies.push_back(each.remedy);
      }
    }
    return join(remedies, "; then ");
  }

  [[nodiscard]] Finding waived(const std::string& seen, const std::string& remedy) const {
    return {"baseline",
            subject_.entry,
            Outcome::waived,
            "at least " + percentText(expectedBaselineShare) +
                " of what the host itself reached on this PF",
            seen,
            remedy};
  }

  const BaselineSubject& subject_;
  VerifyReport& report_;
};

}  // namespace

bool isBelowBaseline(const BaselineSubject& subject, const std::vector<Figure>& figures) {
  return subject.baseline && differenceOf(subject, *subject.baseline).empty() &&
         std::ranges::any_of(ratiosOf(subject, figures), isLow);
}

const Baseline* chooseBaseline(const std::vector<Baseline>& baselines, const PciAddress& pf,
                               const std::string& guid) {
  const Baseline* chosen = nullptr;
  for (const Baseline& each : baselines) {
    const bool sameCard = !guid.empty() && each.guid == guid;
    if (sameCard && each.pf == pf) {
      return &each;
    }
    if (sameCard || (chosen == nullptr && each.pf == pf)) {
      chosen = &each;
    }
  }
  return chosen;
}

void judgeBaselines(const std::vector<BaselineSubject>& subjects, VerifyReport& report) {
  for (const BaselineSubject& subject : subjects) {
    if (movedData(subject, report)) {
      report.findings.push_back(BaselineJudge(subject, report).judge());
    }
  }
}

}  // namespace vfpass::verify
