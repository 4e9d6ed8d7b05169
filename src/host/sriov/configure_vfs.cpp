#include "sriov/configure_vfs.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include "helper/poll_until.hpp"
#include "sysfs/kernel_write.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

// The request and state of one call. Items are identified by (VF, attribute).
class Configuration {
 public:
  Configuration(VfPort& port, const PortNames& names, std::chrono::milliseconds deadline)
      : port_(port), names_(names), deadline_(deadline) {}

  std::vector<RefusedAttribute> run(const std::vector<VfChange>& changes);

 private:
  struct Item {
    unsigned index = 0;
    Attribute attribute = Attribute::mac;
    VfSettings wanted;  // this attribute only
    bool required = false;
    std::string refusal;  // empty: not refused
  };

  void collect(const std::vector<VfChange>& changes);
  void send();
  void sendOneByOne();
  void waitForEffect();
  void refuse(Item& item, const std::string& reason);
  [[noreturn]] void failRequired(const Item& item);
  std::string rollBack();
  std::string rollBack(const Item& item, const VfTable& now);
  bool holds(const Item& item, const VfTable& table) const;
  std::vector<VfRequest> requestsOf(const std::vector<const Item*>& items) const;

  VfPort& port_;
  const PortNames& names_;
  std::chrono::milliseconds deadline_;
  VfTable before_;
  std::vector<Item> items_;
};

// ID 0 and priority 0 mean no VLAN; the protocol is then irrelevant.
VfSettings normalized(VfSettings settings) {
  if (settings.vlan && settings.vlan->id == 0 && settings.vlan->qos == 0) {
    settings.vlan = Vlan{};
  }
  return settings;
}

VfSettings settingsOf(const VfTable& table, unsigned index) {
  const auto found = table.find(index);
  return found == table.end() ? VfSettings{} : found->second;
}

std::string remedyFor(Attribute attribute) {
  const std::string name(toString(attribute));
  switch (attribute) {
    case Attribute::nodeGuid:
    case Attribute::portGuid:
      return "on Ethernet, remove the `infiniband:` block from the mapping: only InfiniBand ports "
             "have GUIDs";
    case Attribute::mac:
      return "use a unicast address, and check that the PF's driver lets the host set it (on "
             "InfiniBand it does not: omit `mac`)";
    default:
      return "if the VM does not need " + name +
             ", list the attributes that it needs under `required:` in the mapping (without a list "
             "all are required), or remove " +
             name + "; a newer driver or firmware may accept it";
  }
}

std::vector<RefusedAttribute> Configuration::run(const std::vector<VfChange>& changes) {
  before_ = port_.read();
  collect(changes);
  if (items_.empty()) {
    return {};
  }
  send();
  waitForEffect();
  std::vector<RefusedAttribute> refused;
  for (const Item& item : items_) {
    if (!item.refusal.empty()) {
      refused.push_back({item.index, item.attribute, item.refusal});
    }
  }
  return refused;
}

void Configuration::collect(const std::vector<VfChange>& changes) {
  for (const VfChange& change : changes) {
    const VfSettings wanted = normalized(change.settings);
    for (const Attribute attribute :
         differingAttributes(wanted, settingsOf(before_, change.index))) {
      items_.push_back({change.index,
                        attribute,
                        only(wanted, {attribute}),
                        change.required.contains(attribute),
                        {}});
    }
  }
}

void Configuration::send() {
  std::vector<const Item*> all;
  for (const Item& item : items_) {
    all.push_back(&item);
  }
  const Acknowledgement answer = port_.set(requestsOf(all));
  if (answer.error == EPERM || answer.error == EACCES) {
    throw Error(names_.netdev + ": setting VF attributes failed: " + reasonOf(answer),
                names_.privileged ? eswitchRemedy : "run as root (requires CAP_NET_ADMIN)");
  }
  if (answer.error != 0) {
    sendOneByOne();
  }
}

// The kernel stopped at the first refused attribute (do_setvfinfo). Each attribute that is not yet
// applied is sent again alone, in the same order, so that the reply identifies the refused one.
void Configuration::sendOneByOne() {
  const VfTable now = port_.read();
  for (Item& item : items_) {
    if (holds(item, now)) {
      continue;
    }
    const Acknowledgement answer = port_.set(requestsOf({&item}));
    if (answer.error != 0) {
      refuse(item, reasonOf(answer));
    }
  }
}

// A driver may acknowledge a value and apply it late (a MAC set by a firmware command), or never.
void Configuration::waitForEffect() {
  VfTable now;
  const auto pending = [&](const Item& item) {
    // A value that is not observable counts as applied: mlx5 does not read back every GUID.
    const bool observable = only(settingsOf(now, item.index), {item.attribute}) != VfSettings{};
    return item.refusal.empty() && observable && !holds(item, now);
  };
  pollUntil(Deadline(deadline_), [&] {
    now = port_.read();
    return std::none_of(items_.begin(), items_.end(), pending);
  });
  for (Item& item : items_) {
    if (pending(item)) {
      refuse(item, "accepted, but reads back as " +
                       describe(settingsOf(now, item.index), item.attribute));
    }
  }
}

void Configuration::refuse(Item& item, const std::string& reason) {
  item.refusal = reason;
  if (item.required) {
    failRequired(item);
  }
}

void Configuration::failRequired(const Item& item) {
  const std::string outcome = rollBack();
  throw Error(names_.netdev + ": driver " + names_.driver + " cannot set " +
                  std::string(toString(item.attribute)) + " of VF " + std::to_string(item.index) +
                  " to " + describe(item.wanted, item.attribute) + ": " + item.refusal + outcome,
              remedyFor(item.attribute));
}

// Restores the previous values of all attributes that may have changed. Returns the result as the
// end of an error message.
std::string Configuration::rollBack() {
  std::vector<std::string> failures;
  try {
    const VfTable now = port_.read();
    for (const Item& item : items_) {
      if (const std::string reason = rollBack(item, now); !reason.empty()) {
        failures.push_back(std::string(toString(item.attribute)) + " of VF " +
                           std::to_string(item.index) + " (" + reason + ")");
      }
    }
  } catch (const Error& error) {
    failures.emplace_back(error.what());
  }
  return failures.empty() ? std::string("; the previous attributes were restored")
                          : "; cannot restore: " + join(failures, ", ");
}

// Empty, or the reason why this attribute may not have been restored.
std::string Configuration::rollBack(const Item& item, const VfTable& now) {
  const VfSettings before = only(settingsOf(before_, item.index), {item.attribute});
  if (before == VfSettings{}) {
    // The previous value is unknown. If the driver refused the change, the value is still the same.
    return item.refusal.empty() ? "its previous value is not observable" : "";
  }
  if (differingAttributes(before, settingsOf(now, item.index)).empty()) {
    return {};
  }
  const Acknowledgement answer = port_.set({{item.index, before}});
  return answer.error == 0 ? std::string{} : reasonOf(answer);
}

bool Configuration::holds(const Item& item, const VfTable& table) const {
  return differingAttributes(item.wanted, settingsOf(table, item.index)).empty();
}

std::vector<VfRequest> Configuration::requestsOf(const std::vector<const Item*>& items) const {
  std::map<unsigned, VfSettings> byVf;
  for (const Item* item : items) {
    VfSettings& together = byVf[item->index];
    together = firstOf(item->wanted, together);
  }
  std::vector<VfRequest> requests;
  for (const auto& [index, settings] : byVf) {
    requests.push_back({index, settings});
  }
  return requests;
}

}  // namespace

std::vector<RefusedAttribute> configureVfs(VfPort& port, const std::vector<VfChange>& changes,
                                           const PortNames& names,
                                           std::chrono::milliseconds deadline) {
  return Configuration(port, names, deadline).run(changes);
}

}  // namespace vfpass::host
