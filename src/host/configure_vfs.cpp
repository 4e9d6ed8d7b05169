#include "configure_vfs.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include "deadline.hpp"
#include "kernel_write.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

// What one call asks for and has found out. Everything is told by (VF, attribute).
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
  std::string putBack();
  std::string putBack(const Item& item, const VfTable& now);
  bool holds(const Item& item, const VfTable& table) const;
  std::vector<VfRequest> requestsOf(const std::vector<const Item*>& items) const;

  VfPort& port_;
  const PortNames& names_;
  std::chrono::milliseconds deadline_;
  VfTable before_;
  std::vector<Item> items_;
};

// No VLAN is no VLAN, whatever protocol stands beside it.
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

// Adds one attribute to the request of its VF.
void merge(VfSettings& into, const VfSettings& one) {
  const auto take = [](auto& target, const auto& source) {
    if (source) {
      target = source;
    }
  };
  take(into.mac, one.mac);
  take(into.vlan, one.vlan);
  take(into.rate, one.rate);
  take(into.spoofCheck, one.spoofCheck);
  take(into.linkState, one.linkState);
  take(into.trust, one.trust);
  take(into.nodeGuid, one.nodeGuid);
  take(into.portGuid, one.portGuid);
}

std::string reasonOf(const Acknowledgement& answer) {
  return errnoText(answer.error) + (answer.message.empty() ? "" : ": " + answer.message);
}

std::string remedyFor(Attribute attribute) {
  const std::string name(toString(attribute));
  switch (attribute) {
    case Attribute::nodeGuid:
    case Attribute::portGuid:
      return "GUIDs need an InfiniBand port; on Ethernet take the `infiniband:` block out of the "
             "mapping.";
    case Attribute::mac:
      return "Check that the address is a unicast one and that the PF's driver lets the host set "
             "it (InfiniBand does not: leave out `mac`).";
    default:
      return "If the VM can do without " + name +
             ", list what it needs under `required:` in the mapping (without a list everything is "
             "required), or remove " +
             name + "; a newer driver or firmware may accept it.";
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
                names_.privileged ? eswitchRemedy : "Run as root (CAP_NET_ADMIN is needed).");
  }
  if (answer.error != 0) {
    sendOneByOne();
  }
}

// The kernel stopped somewhere (do_setvfinfo ends at the first refusal). What does not hold yet is
// sent again alone, in the same order, so that its own answer names it.
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

// A driver may say yes and apply the value late (a MAC behind a firmware command), or never.
void Configuration::waitForEffect() {
  VfTable now;
  const auto pending = [&](const Item& item) {
    // What cannot be observed is taken as sent: mlx5 does not read back every GUID.
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
  const std::string left = putBack();
  throw Error(names_.driver + " refuses " + std::string(toString(item.attribute)) + " " +
                  describe(item.wanted, item.attribute) + " for VF " + std::to_string(item.index) +
                  " of " + names_.netdev + ": " + item.refusal + left,
              remedyFor(item.attribute));
}

// Writes the earlier values over all that may have been changed; says what could not be put back.
std::string Configuration::putBack() {
  std::vector<std::string> left;
  try {
    const VfTable now = port_.read();
    for (const Item& item : items_) {
      if (const std::string reason = putBack(item, now); !reason.empty()) {
        left.push_back(std::string(toString(item.attribute)) + " of VF " +
                       std::to_string(item.index) + " (" + reason + ")");
      }
    }
  } catch (const Error& error) {
    left.emplace_back(error.what());
  }
  return left.empty() ? std::string("; the other attributes are as they were")
                      : "; not put back: " + join(left, ", ");
}

// Empty, or why this attribute may not be as it was.
std::string Configuration::putBack(const Item& item, const VfTable& now) {
  const VfSettings before = only(settingsOf(before_, item.index), {item.attribute});
  if (before == VfSettings{}) {
    // Nobody can know the value; where the driver refused, it has not changed.
    return item.refusal.empty() ? "its earlier value could not be read" : "";
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
    merge(byVf[item->index], item->wanted);
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
