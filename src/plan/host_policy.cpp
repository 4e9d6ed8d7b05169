#include "vfpass/plan/host_policy.hpp"

#include <algorithm>
#include <tuple>

#include "host_policy_objections.hpp"
#include "plan_vf_creation.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::plan {
namespace {

HostChanges changesFor(const HostInput& input) {
  const auto& [pf, policy, settings] = std::tie(input.pf, input.policy, input.settings);
  const auto present = static_cast<unsigned>(pf.vfs.size());
  HostChanges changes;
  changes.count = policy.vfCount.value_or(present);
  changes.setsMode =
      policy.eswitchMode && settings.eswitchMode != parseEswitchMode(*policy.eswitchMode);
  changes.rebuilds = changes.setsMode || changes.count != present;
  changes.takesDown = policy.up == false && (settings.link ? settings.link->up : pf.uplink().up);
  return changes;
}

EswitchMode modeAfter(const HostInput& input) {
  const auto wanted =
      input.policy.eswitchMode ? parseEswitchMode(*input.policy.eswitchMode) : std::nullopt;
  return wanted.value_or(input.settings.eswitchMode.value_or(EswitchMode::legacy));
}

std::string bindReason(const std::optional<bool>& migratable) {
  return migratable ? "the previous VF was migratable"
                    : "host.yaml sets probe-virtual-functions, and the driver reads the address "
                      "when it probes";
}

/// Collects the steps of one PF.
class Steps {
 public:
  Steps(const HostInput& input, const HostChanges& changes) : input_(input), changes_(changes) {}

  void addAll() {
    if (changes_.rebuilds) {
      removeVfs();
      setMode();
      createVfs();
    }
    setLink();
  }

  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  /// What the steps disrupt, without duplicates.
  [[nodiscard]] const std::vector<std::string>& disrupted() const { return disrupted_; }

 private:
  // The reason names what is disrupted, so that the user need not look it up.
  void add(Action action, std::vector<Action> undo, std::string reason,
           const std::vector<std::string>& disrupted = {}) {
    if (!disrupted.empty()) {
      reason += "; " + join(disrupted, ", ");
    }
    for (const auto& who : disrupted) {
      if (std::ranges::find(disrupted_, who) == disrupted_.end()) {
        disrupted_.push_back(who);
      }
    }
    steps_.push_back({std::move(action), std::move(undo), std::move(reason), !disrupted.empty()});
  }

  [[nodiscard]] std::string countReason(const std::string& whenSame) const {
    return changes_.count == input_.pf.vfs.size()
               ? whenSame
               : "host.yaml requests " + std::to_string(changes_.count) + " VFs, the PF has " +
                     std::to_string(input_.pf.vfs.size());
  }

  void removeVfs() {
    if (!input_.pf.vfs.empty()) {
      add(RemoveVfs{pf()}, undoRemoval(pfIn(input_.settings.eswitchMode)),
          countReason("VFs that exist while the eswitch mode changes lose their rates and link "
                      "state"),
          vfDisruptions());
    }
  }

  // The PF's netdev stays, with its addresses, MTU and state (mlx5e_netdev_change_profile).
  void setMode() {
    if (!changes_.setsMode) {
      return;
    }
    std::vector<Action> undo;
    const auto& found = input_.settings;
    if (found.eswitchMode) {
      undo.emplace_back(SetEswitchMode{pf(), *found.eswitchMode});
    }
    auto who = vfDisruptions();
    if (input_.pf.uplink().up) {
      who.push_back("netdev " + printable(input_.pf.netdev()) +
                    " is up and loses its link for a moment");
    }
    add(SetEswitchMode{pf(), modeAfter(input_)}, undo,
        "host.yaml sets " + std::string(toString(modeAfter(input_))), who);
  }

  void createVfs() {
    if (changes_.count == 0) {
      return;
    }
    const auto bindingOf = [&](unsigned /*index*/) {
      return VfBinding{input_.policy.probeVfs ? input_.pf.driver : "", ""};
    };
    auto actions = recreateVfs(pfIn(modeAfter(input_)), changes_.count, bindingOf);
    std::get<CreateVfs>(actions.front()).lagDevicePf = lagDevicePf(pfIn(modeAfter(input_)));
    add(actions.front(), {RemoveVfs{pf(), input_.pf.probesVfs}},
        countReason("the PF keeps its VF count"), vfDisruptions());
    for (std::size_t at = 1; at < actions.size(); ++at) {
      const auto* configure = std::get_if<ConfigureVfs>(&actions[at]);
      add(actions[at], {},  // reverted when the VFs are removed
          configure == nullptr     ? bindReason(std::get<BindDriver>(actions[at]).migratable)
          : configure->vfs.empty() ? leftOverReason
                                   : "the previous VFs had these values");
    }
  }

  void setLink() {
    const auto& link = input_.settings.link;
    const auto& [mtu, up] = std::tie(input_.policy.mtu, input_.policy.up);
    if (mtu && (!link || link->mtu != *mtu)) {
      add(SetMtu{pf(), *mtu}, link ? std::vector<Action>{SetMtu{pf(), link->mtu}} : noAction(),
          "host.yaml sets it");
    }
    if (up && (!link || link->up != *up)) {
      const std::vector<std::string> who =
          changes_.takesDown
              ? std::vector<std::string>{"netdev " + printable(input_.pf.netdev()) + " is up"}
              : std::vector<std::string>{};
      add(SetLinkUp{pf(), *up}, link ? std::vector<Action>{SetLinkUp{pf(), link->up}} : noAction(),
          "host.yaml sets it", who);
    }
  }

  [[nodiscard]] PhysicalFunction pfIn(std::optional<EswitchMode> mode) const {
    PhysicalFunction pf = input_.pf;
    pf.eswitchMode = mode;
    return pf;
  }
  [[nodiscard]] const PciAddress& pf() const { return input_.pf.address; }
  [[nodiscard]] std::vector<std::string> vfDisruptions() const {
    return disruptionsOf(pfIn(modeAfter(input_)));
  }
  static std::vector<Action> noAction() { return {}; }

  const HostInput& input_;
  const HostChanges& changes_;
  std::vector<Step> steps_;
  std::vector<std::string> disrupted_;
};

std::vector<Objection> checkConsent(const HostInput& input,
                                    const std::vector<std::string>& disrupted) {
  if (disrupted.empty() || input.allowDisruption || input.policy.allowDisruption) {
    return {};
  }
  return {
      {nameOf(input.pf) + ": applying host.yaml would disrupt the host: " + join(disrupted, ", "),
       "run `vfpass host apply --allow-disruption`, or set `allow-disruption: true` for this PF in "
       "host.yaml, which also applies at boot"}};
}

// Values that cannot be read cannot be set again.
void noteUnreadable(const HostInput& input, const HostChanges& changes, Plan& plan) {
  const auto unreadable = std::ranges::count_if(input.pf.vfs, [&](const VirtualFunction& vf) {
    return !vf.settingsReadable && vf.index < changes.count;
  });
  if (input.observable && changes.rebuilds && unreadable > 0) {
    plan.notes.push_back(nameOf(input.pf) + ": cannot read the attributes of " +
                         std::to_string(unreadable) + " VFs; their current values are lost");
  }
}

}  // namespace

HostDecision planHost(const HostInput& input) {
  HostDecision decision;
  decision.plan.kind = PlanKind::host;
  decision.objections = checkPolicy(input);
  if (!decision.objections.empty()) {
    return decision;
  }
  const HostChanges changes = changesFor(input);
  decision.objections = checkChanges(input, changes);
  Steps steps(input, changes);
  steps.addAll();
  append(checkConsent(input, steps.disrupted()), decision.objections);
  if (decision.objections.empty()) {
    decision.plan.steps = steps.steps();
    noteUnreadable(input, changes, decision.plan);
  }
  return decision;
}

}  // namespace vfpass::plan
