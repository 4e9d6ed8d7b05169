#include <algorithm>

#include "import_decisions.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::plan {
namespace {

std::string tableOf(const PhysicalFunction& pf) {
  return "the VF table of " + (pf.netdev().empty() ? toString(pf.address) : printable(pf.netdev()));
}

bool concerns(const BootPolicy& policy, const PhysicalFunction& pf, unsigned index) {
  return policy.pf == pf.address && policy.vf == index;
}

/// Collects the values of one entry.
class Values {
 public:
  Values(const ImportInput& input, const HandMadeDevice& device, const PhysicalFunction& pf,
         const VirtualFunction& vf, ImportedVf& entry)
      : input_(input), device_(device), pf_(pf), vf_(vf), entry_(entry) {
    const auto mode = input.eswitchModes.find(pf.address);
    switchdev_ = mode != input.eswitchModes.end() && mode->second == EswitchMode::switchdev;
    running_ =
        std::ranges::find(input.running, device.host, &HandMadeDevice::host) != input.running.end();
  }

  void read() {
    forEachAttribute([&]<typename Value>(const AttributeRow<Value>& row) {
      if (existsOn(row.attribute, entry_.infiniband) && !row.kept) {
        add(row);
      }
    });
    readGuids();
    readMac();
    notePolicies();
  }

 private:
  template <typename Value>
  void state(const AttributeRow<Value>& row, const Value& value, const std::string& source) {
    entry_.settings.*row.member = value;
    entry_.sources[row.attribute] = source;
  }

  // The element's own values count before those of the table, which libvirt writes from them, and
  // the table before files, which may have changed since they were applied.
  template <typename Value>
  void add(const AttributeRow<Value>& row) {
    if (switchdev_ &&
        std::ranges::find(legacyOnlyAttributes, row.attribute) != legacyOnlyAttributes.end()) {
      return;
    }
    const auto& neutral = row.neutral(entry_.infiniband);
    const auto isStated = [&](const std::optional<Value>& value) {
      return value && value != neutral;
    };
    if (const auto own = ofElement(row); own) {
      if (isStated(own)) {
        state(row, *own, "the domain's XML");
      }
      return;
    }
    if (const auto& present = vf_.settings.*row.member) {
      if (isStated(present)) {
        state(row, *present, tableOf(pf_));
      }
      return;
    }
    // attach refuses attributes that the driver never reports, and for the VF of a running guest
    // every value that cannot be compared.
    for (const BootPolicy& policy : input_.bootPolicies) {
      if (!running_ && !pf_.reportsNoVfs && concerns(policy, pf_, vf_.index) &&
          isStated(policy.settings.*row.member)) {
        state(row, *(policy.settings.*row.member), printable(policy.file));
        return;
      }
    }
  }

  template <typename Value>
  std::optional<Value> ofElement(const AttributeRow<Value>& row) const {
    if (device_.kind != HandMadeKind::interface) {
      return std::nullopt;
    }
    VfSettings own;
    own.mac = device_.mac;
    // libvirt removes the VLAN of an <interface> that has no <vlan> (virNetDevSetNetConfig).
    own.vlan = device_.vlan.value_or(Vlan{});
    return own.*row.member;
  }

  // The driver of the VF knows its GUIDs as well, if the host has one bound.
  void readGuids() {
    if (!entry_.infiniband) {
      return;
    }
    for (auto* guid : {&entry_.settings.nodeGuid, &entry_.settings.portGuid}) {
      if (*guid && !(*guid)->isUsable()) {
        guid->reset();
      }
    }
    if (!entry_.settings.nodeGuid && !vf_.rdma.empty()) {
      const auto guid = parseGuid(vf_.rdma.front().nodeGuid);
      if (guid && guid->isUsable()) {
        entry_.settings.nodeGuid = guid;
        entry_.sources[Attribute::nodeGuid] = "RDMA device " + printable(vf_.rdmaDevice());
      }
    }
    if (!entry_.settings.nodeGuid || !entry_.settings.portGuid) {
      entry_.settings.nodeGuid.reset();
      entry_.settings.portGuid.reset();
      entry_.sources.erase(Attribute::nodeGuid);
      entry_.sources.erase(Attribute::portGuid);
      entry_.notes.emplace_back(
          "Its GUIDs cannot be read; attach leaves them as they are. Write those that the subnet "
          "manager knows into `infiniband:` (node-guid, port-guid).");
    }
  }

  void readMac() {
    if (entry_.infiniband) {
      return;
    }
    if (entry_.teamingWith) {
      entry_.settings.mac.reset();
      entry_.sources.erase(Attribute::mac);
      entry_.notes.emplace_back("Its MAC is that of its partner in the team.");
    } else if (!entry_.settings.mac) {
      entry_.notes.emplace_back(
          vf_.settings.mac ? "The PF has no MAC for it: the guest chooses one at each boot. `mac: "
                             "auto` would give it a stable one."
                           : "Its MAC cannot be read; attach leaves it as it is.");
    }
    if (switchdev_) {
      entry_.notes.emplace_back(
          "VLAN, spoof check, link state and trust do not exist in switchdev mode.");
    }
  }

  // After attach, vfpass sets these values, and two programs must not.
  void notePolicies() {
    for (const BootPolicy& policy : input_.bootPolicies) {
      if (!concerns(policy, pf_, vf_.index)) {
        continue;
      }
      std::string differing;
      bool unread = false;
      for (const Attribute each : differingAttributes(policy.settings, vf_.settings)) {
        const bool readable = describe(vf_.settings, each) != "not observable";
        differing += readable ? ", now " + describe(vf_.settings, each) : "";
        unread = unread || !readable;
      }
      if (running_ && unread) {
        differing += ", which is left out where the PF does not report it, because the guest runs";
      }
      entry_.notes.push_back(
          printable(policy.file) + " sets " + printable(policy.text) + differing +
          ". Once attached, " +
          (policy.remedy.empty() ? "remove it there." : printable(policy.remedy) + "."));
    }
  }

  const ImportInput& input_;
  const HandMadeDevice& device_;
  const PhysicalFunction& pf_;
  const VirtualFunction& vf_;
  ImportedVf& entry_;
  bool switchdev_ = false;
  bool running_ = false;  ///< the running guest has the VF
};

}  // namespace

std::optional<Vlan> presentVlan(const HandMadeDevice& device, const VirtualFunction& vf) {
  const bool own = device.kind == HandMadeKind::interface && device.vlan;
  return own ? device.vlan : vf.settings.vlan;
}

ImportedVf importVf(const ImportInput& input, const HandMadeDevice& device,
                    const PhysicalFunction& pf, const VirtualFunction& vf) {
  constexpr std::size_t prefix = 3;  // ua-
  ImportedVf entry;
  entry.device = vf.address;
  entry.pf = pf.address;
  entry.pfNetdev = pf.netdev();
  entry.index = vf.index;
  entry.infiniband = pf.linkLayer == LinkLayer::infiniband;
  entry.interfaceForm = device.kind == HandMadeKind::interface;
  entry.managed = device.managed && pf.probesVfs;
  if (device.teaming) {
    entry.teamingWith = device.teaming->persistent.substr(prefix);
  }
  if (device.managed && !pf.probesVfs) {
    entry.notes.emplace_back(
        "managed='yes' stays in the domain's XML. `managed: yes` needs probing of VFs, which is "
        "off "
        "on the PF (sriov_drivers_autoprobe).");
  }
  Values(input, device, pf, vf, entry).read();
  return entry;
}

}  // namespace vfpass::plan
