#include "vfpass/verify/host_baseline.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "judge_transfer.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

// Relaxed ordering has an effect from the first share on, and none below the second.
constexpr double relaxedEffect = 1.1;
constexpr double noRelaxedEffect = 1.05;

/// Where a factor is judged.
enum class JudgedBy { verify, doctor, setting, domain, figures, concurrency };

/// A row of the ranking.
struct RankedFactor {
  std::string_view name;
  JudgedBy by;
  bool onlyGpu = false;  ///< it concerns the path between NIC and GPU
};

// The order: first what halves a figure, such as a link of half its width or a path through the
// root complex, then what costs a part of it. NCCL alone is concerned by nccl-topology.
constexpr std::array<RankedFactor, 24> ranking{{{"pcie-link", JudgedBy::verify},
                                                {"pcie-link", JudgedBy::setting},
                                                {"vf-ats", JudgedBy::doctor, true},
                                                {"ats", JudgedBy::doctor, true},
                                                {"acs", JudgedBy::doctor, true},
                                                {"gpu-distance", JudgedBy::verify, true},
                                                {"gpu-beside-host", JudgedBy::verify, true},
                                                {"relaxed-ordering", JudgedBy::figures},
                                                {"numa-placement", JudgedBy::verify},
                                                {"vcpu-placement", JudgedBy::domain},
                                                {"hugepages", JudgedBy::domain},
                                                {"pcie-packets", JudgedBy::verify},
                                                {"max-read-request", JudgedBy::setting},
                                                {"max-payload", JudgedBy::setting},
                                                {"mtu", JudgedBy::verify},
                                                {"concurrent-vfs", JudgedBy::concurrency},
                                                {"rdma-errors", JudgedBy::verify},
                                                {"iommu-domain", JudgedBy::setting},
                                                {"cpufreq-governor", JudgedBy::setting},
                                                {"cpuidle-governor", JudgedBy::setting},
                                                {"deepest-c-state", JudgedBy::setting},
                                                {"transparent-hugepages", JudgedBy::setting},
                                                {"kernel", JudgedBy::setting},
                                                {"nccl-topology", JudgedBy::verify}}};

std::string settingRemedy(std::string_view name, const std::string& before, const PciAddress& pf) {
  const std::string value = printable(before);
  if (name == "pcie-link") {
    return "look at pcie-link in `vfpass doctor`, which names the slot";
  }
  if (name == "max-read-request" || name == "max-payload") {
    return "look at pcie-packets";
  }
  if (name == "iommu-domain") {
    return "compare the host's kernel command line (iommu=, iommu.passthrough=) with the one of "
           "that time";
  }
  if (name == "cpufreq-governor") {
    return "on the host: cpupower frequency-set --governor " + value;
  }
  if (name == "cpuidle-governor") {
    return "on the host: echo " + value + " > /sys/devices/system/cpu/cpuidle/current_governor";
  }
  if (name == "deepest-c-state") {
    return "on the host: compare intel_idle.max_cstate and processor.max_cstate on the kernel "
           "command line, and the active profile of tuned";
  }
  if (name == "transparent-hugepages") {
    return "on the host: echo " + value + " > /sys/kernel/mm/transparent_hugepage/enabled";
  }
  return "measure again with this kernel: `vfpass verify --baseline " + toString(pf) + "`";
}

/// Speeds of one operation in one memory; 0: not measured.
struct OrderedSpeeds {
  double strict = 0;
  double relaxed = 0;
};

OrderedSpeeds orderedSpeeds(const std::vector<Figure>& figures, const std::string& subject,
                            const std::string& operation, const std::string& memory) {
  OrderedSpeeds speeds;
  for (const Figure& each : figures) {
    if (each.subject == subject && each.operation == operation && each.memory == memory &&
        each.source == Figure().source && !each.medianMicroseconds) {
      double& speed = each.relaxedOrdering ? speeds.relaxed : speeds.strict;
      speed = std::max(speed, each.gigabitsPerSecond);
    }
  }
  return speeds;
}

class FactorSearch {
 public:
  FactorSearch(const BaselineSubject& subject, const VerifyReport& report, bool lowOnGpu)
      : subject_(subject), report_(report), lowOnGpu_(lowOnGpu) {
    if (subject.hostChecks) {
      hostChecks_ = subject.hostChecks();
    }
  }

  std::vector<BaselineFactor> run() {
    for (const RankedFactor& factor : ranking) {
      if (!factor.onlyGpu || lowOnGpu_) {
        look(factor);
      }
    }
    return std::move(found_);
  }

 private:
  void look(const RankedFactor& factor) {
    switch (factor.by) {
      case JudgedBy::verify:
        return addJudged(factor.name, report_.findings);
      case JudgedBy::doctor:
        return addJudged(factor.name, hostChecks_);
      case JudgedBy::setting:
        return addSetting(factor.name);
      case JudgedBy::domain:
        return addOfDomain(factor.name);
      case JudgedBy::figures:
        return addRelaxedOrdering();
      case JudgedBy::concurrency:
        return addConcurrency();
    }
  }

  void add(std::string_view name, std::string seen, std::string remedy) {
    found_.push_back({std::string(name), std::move(seen), std::move(remedy)});
  }

  // Findings of the whole VM or host have no subject; doctor's are about the devices already.
  void addJudged(std::string_view name, const std::vector<Finding>& findings) {
    for (const Finding& each : findings) {
      const bool concerns =
          &findings == &hostChecks_ || each.subject.empty() || each.subject == subject_.entry;
      if (each.key == name && concerns &&
          (each.outcome == Outcome::warning || each.outcome == Outcome::failed)) {
        add(name, each.seen, each.remedy);
      }
    }
  }

  // What another row has named already is not repeated.
  void addSetting(std::string_view name) {
    const auto before = subject_.baseline->settings.find(std::string(name));
    const auto now = subject_.settings.find(std::string(name));
    if (before == subject_.baseline->settings.end() || now == subject_.settings.end() ||
        before->second == now->second || isNamed(name)) {
      return;
    }
    add(name, now->second + ", during the baseline " + before->second,
        settingRemedy(name, before->second, subject_.pf));
  }

  // numa-placement also judges where the vCPUs may run.
  void addOfDomain(std::string_view name) {
    for (const BaselineFactor& each : subject_.domain) {
      if (each.name == name && !(name == "vcpu-placement" && isNamed("numa-placement"))) {
        found_.push_back(each);
      }
    }
  }

  void addRelaxedOrdering() {
    std::vector<std::string> seen;
    for (const char* memory : {"host", "gpu"}) {
      for (const char* operation : {"write", "read"}) {
        const auto host = orderedSpeeds(subject_.baseline->figures, "", operation, memory);
        const auto guest = orderedSpeeds(report_.figures, subject_.entry, operation, memory);
        const bool helpsHost = host.strict > 0 && host.relaxed >= host.strict * relaxedEffect;
        const bool helpsGuest = guest.relaxed >= guest.strict * noRelaxedEffect;
        if (helpsHost && guest.strict > 0 && (guest.relaxed == 0 || !helpsGuest)) {
          seen.push_back(std::string(memory) + " " + operation + " " + rounded(guest.strict) +
                         (guest.relaxed == 0 ? ", not measured with it"
                                             : ", with it " + rounded(guest.relaxed)) +
                         " Gb/s; on the host " + rounded(host.strict) + " and " +
                         rounded(host.relaxed) + " Gb/s");
        }
      }
    }
    if (!seen.empty()) {
      add("relaxed-ordering", "relaxed ordering has no effect: " + join(seen, "; "),
          "look at pcie-packets, which judges the PF's Relaxed Ordering; verify without "
          "--relaxed-ordering off");
    }
  }

  // A VF that was measured again alone is slow without the others.
  void addConcurrency() {
    if (report_.concurrentVfs > 1 && !report_.together.contains(subject_.entry)) {
      add("concurrent-vfs",
          "up to " + std::to_string(report_.concurrentVfs) +
              " VFs moved data at the same time; the baseline is that of one PF alone",
          "verify with --sequential, which measures each VF alone");
    }
  }

  [[nodiscard]] bool isNamed(std::string_view name) const {
    return std::ranges::any_of(found_,
                               [&](const BaselineFactor& each) { return each.name == name; });
  }

  const BaselineSubject& subject_;
  const VerifyReport& report_;
  bool lowOnGpu_;
  std::vector<Finding> hostChecks_;
  std::vector<BaselineFactor> found_;
};

}  // namespace

std::vector<BaselineFactor> baselineFactors(const BaselineSubject& subject,
                                            const VerifyReport& report, bool lowOnGpu) {
  return FactorSearch(subject, report, lowOnGpu).run();
}

}  // namespace vfpass::verify
