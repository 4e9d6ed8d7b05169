#include "attach_decisions.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "device_steps.hpp"
#include "plan_vf_creation.hpp"

namespace vfpass::plan {
namespace {

// PCI Express Base Specification 5.0, 7.7.2: the largest table. mlx5 needs one vector for events
// and one for completions (mlx5_irq_table_create in mlx5/core/pci_irq.c).
constexpr unsigned mostVectors = 2048;
constexpr unsigned fewestVectors = 2;

struct Request {
  const MappedVf* entry = nullptr;
  Lease* lease = nullptr;
};

bool isAutomatic(const MappedVf& entry) { return entry.automatic.contains(Attribute::msixVectors); }

std::string vectorsText(unsigned count) {
  return std::to_string(count) + (count == 1 ? " interrupt vector" : " interrupt vectors");
}

std::string vectorsSubject(const MappedVf& entry) {
  return toString(entry.place) + ": " + entry.name;
}

// The requests that concern one PF.
class Distribution {
 public:
  Distribution(const AttachInput& input, const PhysicalFunction& pf,
               const std::vector<Request>& requests)
      : input_(input), pf_(pf), requests_(requests), left_(vectorsLeft()) {}

  void run(std::vector<std::string>& notes, std::vector<Objection>& objections);

 private:
  [[nodiscard]] bool isRequested(unsigned index) const;
  [[nodiscard]] unsigned reservedFor(unsigned index, unsigned seen) const;
  [[nodiscard]] std::optional<unsigned> vectorsLeft() const;
  [[nodiscard]] std::optional<unsigned> keptByGuest(const Request& request) const;
  void refuseAll(std::vector<std::string>& notes, std::vector<Objection>& objections);
  void give(const Request& request, unsigned count);
  void giveStated(const Request& request, std::vector<Objection>& objections);
  void giveAutomatic(const Request& request, std::size_t sharing, std::vector<std::string>& notes,
                     std::vector<Objection>& objections);
  void recordOriginal(const Request& request) const;

  const AttachInput& input_;
  const PhysicalFunction& pf_;
  const std::vector<Request>& requests_;
  std::optional<unsigned> left_;  // empty: not observable, so that only the driver refuses
};

bool Distribution::isRequested(unsigned index) const {
  return std::ranges::any_of(
      requests_, [&](const Request& request) { return vfOf(*request.lease).index == index; });
}

// What the VF has, or will have: by its lease at the next start, and after the lease's end again.
unsigned Distribution::reservedFor(unsigned index, unsigned seen) const {
  unsigned reserved = 0;
  bool replaced = false;
  for (const Lease& lease : input_.leases) {
    if (isVfOf(lease, pf_.address, index)) {
      reserved = std::max<unsigned>({reserved, settingsToApply(lease).msixVectors.value_or(0),
                                     lease.original.settings.msixVectors.value_or(0)});
      replaced = lease.domain != input_.domain && canTakeVectors(lease, pf_) &&
                 !probesNewVfs(pf_, input_.policy);
    }
  }
  return replaced ? reserved : std::max(reserved, seen);
}

// What the other VFs do not have. mlx5 gives new VFs an even share at most
// (mlx5_get_default_msix_vec_count).
std::optional<unsigned> Distribution::vectorsLeft() const {
  if (!pf_.totalVfVectors) {
    return std::nullopt;
  }
  const unsigned total = *pf_.totalVfVectors;
  const unsigned created = pf_.vfs.empty() ? std::max(vfOf(*requests_.front().lease).count, 1U) : 0;
  unsigned used = 0;
  for (unsigned index = 0; index < created; ++index) {
    const unsigned share = std::max(total / created, fewestVectors);
    used += isRequested(index) ? 0 : reservedFor(index, share);
  }
  for (const VirtualFunction& vf : pf_.vfs) {
    if (!isRequested(vf.index) && !vf.settings.msixVectors) {
      return std::nullopt;
    }
    used += isRequested(vf.index) ? 0 : reservedFor(vf.index, *vf.settings.msixVectors);
  }
  return total - std::min(total, used);
}

// The kernel changes nothing while the guest has the VF.
std::optional<unsigned> Distribution::keptByGuest(const Request& request) const {
  const Lease* earlier = earlierLease(input_, request.entry->name);
  const bool same = earlier != nullptr && earlier->device == request.lease->device;
  return input_.active && same && input_.plugged.contains(request.entry->name)
             ? settingsOf(*earlier).msixVectors
             : std::nullopt;
}

void Distribution::refuseAll(std::vector<std::string>& notes, std::vector<Objection>& objections) {
  const std::string what = "the kernel, driver or firmware of PF " + toString(pf_.address) +
                           " does not let the host distribute interrupt vectors among its VFs";
  for (const Request& request : requests_) {
    LeasedVf& vf = vfOf(*request.lease);
    if (!vf.required.contains(Attribute::msixVectors)) {
      vf.settings.msixVectors.reset();
      vf.refused.insert(Attribute::msixVectors);
      notes.push_back(request.entry->name + ": " + what + "; msix-vectors is left out");
      continue;
    }
    const std::string file =
        "/sys/bus/pci/devices/" + toString(pf_.address) + "/sriov_vf_total_msix";
    objections.push_back(
        {vectorsSubject(*request.entry) + " sets msix-vectors, but " + what,
         "remove `msix-vectors` from the mapping; it needs Linux 5.13, a bound mlx5_core and "
         "firmware with that feature: " +
             file + " then contains more than 0",
         ExitCode::failed});
  }
}

void Distribution::give(const Request& request, unsigned count) {
  vfOf(*request.lease).settings.msixVectors = static_cast<std::uint16_t>(count);
  if (left_) {
    left_ = *left_ - std::min(*left_, count);
  }
}

void Distribution::giveStated(const Request& request, std::vector<Objection>& objections) {
  const unsigned wanted = *request.entry->settings.msixVectors;
  const std::string subject = vectorsSubject(*request.entry) +
                              " sets msix-vectors: " + std::to_string(wanted) + ", but PF " +
                              toString(pf_.address) + " has ";
  if (pf_.totalVfVectors && wanted > *pf_.totalVfVectors) {
    objections.push_back({subject + vectorsText(*pf_.totalVfVectors) + " for all its VFs together",
                          "use a smaller number, or `msix-vectors: auto`", ExitCode::badInput});
  } else if (left_ && wanted > *left_) {
    objections.push_back({subject + "only " + std::to_string(*left_) + " of its " +
                              vectorsText(*pf_.totalVfVectors) +
                              " left: other VFs have the rest, now or by their leases",
                          "use at most " + std::to_string(*left_) +
                              ", or `msix-vectors: auto`, or give other VFs of this PF fewer"});
  }
  give(request, wanted);
}

// mlx5_core in the guest asks for one vector per vCPU and one for events.
void Distribution::giveAutomatic(const Request& request, std::size_t sharing,
                                 std::vector<std::string>& notes,
                                 std::vector<Objection>& objections) {
  const unsigned wanted = std::clamp(input_.vcpus + 1, fewestVectors, mostVectors);
  const unsigned share = left_ ? *left_ / static_cast<unsigned>(sharing) : wanted;
  if (share < fewestVectors) {
    objections.push_back({vectorsSubject(*request.entry) + " sets msix-vectors: auto, but PF " +
                              toString(pf_.address) + " has only " + std::to_string(*left_) +
                              " of its " + vectorsText(*pf_.totalVfVectors) +
                              " left, and a VF needs " + std::to_string(fewestVectors),
                          "give other VFs of this PF fewer, or create fewer VFs"});
  } else if (share < wanted) {
    notes.push_back(request.entry->name + " gets " + vectorsText(share) + " instead of " +
                    std::to_string(wanted) + " (" + std::to_string(input_.vcpus) +
                    " vCPUs, and one for events): PF " + toString(pf_.address) + " has only " +
                    std::to_string(*left_) + " of its " + std::to_string(*pf_.totalVfVectors) +
                    " left" + (sharing > 1 ? ", which the VFs of this VM share" : ""));
  }
  give(request, std::min(std::max(share, fewestVectors), wanted));
}

// The mapping may have got the attribute after the lease was recorded. What an earlier attach set
// is not the original.
void Distribution::recordOriginal(const Request& request) const {
  const unsigned index = vfOf(*request.lease).index;
  VfSettings& original = request.lease->original.settings;
  const Lease* earlier = earlierLease(input_, request.entry->name);
  const bool ours = earlier != nullptr && earlier->device == request.lease->device &&
                    settingsOf(*earlier).msixVectors;
  if (!original.msixVectors && !ours && index < pf_.vfs.size() &&
      !isLeftover(pf_.vfs[index], *request.lease)) {
    original.msixVectors = pf_.vfs[index].settings.msixVectors;
  }
}

void Distribution::run(std::vector<std::string>& notes, std::vector<Objection>& objections) {
  if (pf_.totalVfVectors == 0U) {
    return refuseAll(notes, objections);
  }
  // What a running guest keeps is not there to be shared.
  std::vector<Request> stated;
  std::vector<Request> automatic;
  for (const Request& request : requests_) {
    recordOriginal(request);
    const auto kept = keptByGuest(request);
    if (kept && (isAutomatic(*request.entry) || *kept == request.entry->settings.msixVectors)) {
      give(request, *kept);
    } else {
      (isAutomatic(*request.entry) ? automatic : stated).push_back(request);
    }
  }
  for (const Request& request : stated) {
    giveStated(request, objections);
  }
  auto sharing = automatic.size();
  for (const Request& request : automatic) {
    giveAutomatic(request, sharing--, notes, objections);
  }
}

}  // namespace

void chooseVectors(const AttachInput& input, std::vector<Lease>& leases,
                   std::vector<std::string>& notes, std::vector<Objection>& objections) {
  std::map<PciAddress, std::vector<Request>> byPf;
  for (const MappedVf& entry : input.mapping.vfs) {
    const auto lease = std::ranges::find(leases, entry.name, &Lease::entry);
    if (lease != leases.end() && isVf(*lease) &&
        (entry.settings.msixVectors || isAutomatic(entry))) {
      byPf[lease->pf].push_back({&entry, &*lease});
    }
  }
  for (const auto& [address, requests] : byPf) {
    Distribution(input, *findPf(input.inventory, address), requests).run(notes, objections);
  }
}

}  // namespace vfpass::plan
