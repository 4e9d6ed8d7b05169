#include "sriov/pf_and_vfs.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "sysfs/kernel_write.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

// An attribute whose previous value the driver refuses to set again.
struct Remainder {
  unsigned index = 0;
  Attribute attribute = Attribute::mac;
  std::string reason;
  bool changed = false;  // it does not read back as before, or nothing is observable

  [[nodiscard]] std::string text() const {
    const std::string name = std::string(toString(attribute)) + " of VF " + std::to_string(index);
    return changed ? "cannot restore " + name + ": " + reason
                   : name + " reads back as before, but the driver refuses that value as well";
  }
};

// The request and state of one call. Items are identified by (VF, attribute).
class Configuration {
 public:
  Configuration(VfPort& port, const PortNames& names, std::chrono::milliseconds deadline, Sent sent)
      : port_(port), names_(names), deadline_(deadline), sent_(sent) {}

  std::vector<RefusedAttribute> run(const std::vector<VfChange>& changes,
                                    const VfSettings& otherwise);

 private:
  struct Item {
    unsigned index = 0;
    Attribute attribute = Attribute::mac;
    VfSettings wanted;  // this attribute only
    bool required = false;
    std::string refusal;     // empty: not refused
    bool denied = false;     // refused without a look at the value, so that it is unchanged
    bool failed = false;     // RefusedAttribute::failed
    bool otherwise = false;  // no change states it: a new VF's neutral value
    bool accepted = false;   // the driver has answered with success
  };
  using Items = std::vector<Item*>;

  void collect(const std::vector<VfChange>& changes, const VfSettings& otherwise);
  void collect(const VfChange& change, bool otherwise);
  void send();
  void sendByVf();
  void sendOneByOne(const Items& items);
  static void accept(const Items& items);
  Acknowledgement sendAlone(Item& item);
  Items withoutUnsupported(const Items& items);
  void waitForEffect();
  void refuse(Item& item, const std::string& reason, const std::string& remedy);
  [[noreturn]] void fail(const Item& item, const std::string& remedy);
  std::string rollBack();
  std::vector<Remainder> restore(Items items);
  std::string restore(const Item& item);
  VfSettings before(const Item& item) const;
  bool holds(const Item& item, const VfTable& table) const;
  Items allItems();
  [[nodiscard]] std::vector<VfRequest> requestsOf(const Items& items) const;

  VfPort& port_;
  const PortNames& names_;
  std::chrono::milliseconds deadline_;
  Sent sent_;
  VfTable before_;
  std::vector<Item> items_;
  std::map<Attribute, std::string> unsupported_;  // refused as `otherwise`, with EOPNOTSUPP
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

bool isGuid(Attribute attribute) {
  return attribute == Attribute::nodeGuid || attribute == Attribute::portGuid;
}

// rtnetlink's list of the VFs of a PF has a 16-bit length, so some 330 VFs fit.
constexpr const char* unreportedRemedy =
    "see whether `ip link show` lists the VF; if the PF has more than 300 VFs, use a VF with a "
    "lower index or create fewer";

std::vector<RefusedAttribute> Configuration::run(const std::vector<VfChange>& changes,
                                                 const VfSettings& otherwise) {
  before_ = port_.read();
  collect(changes, otherwise);
  if (items_.empty()) {
    return {};
  }
  send();
  waitForEffect();
  std::vector<RefusedAttribute> refused;
  for (const Item& item : items_) {
    if (!item.refusal.empty() && !holds(item, before_)) {
      refused.push_back({item.index, item.attribute, item.refusal, item.failed});
    }
  }
  return refused;
}

void Configuration::collect(const std::vector<VfChange>& changes, const VfSettings& otherwise) {
  std::map<unsigned, VfSettings> stated;
  for (const VfChange& change : changes) {
    collect(change, false);
    stated[change.index] = firstOf(change.settings, stated[change.index]);
  }
  for (const auto& [index, seen] : before_) {
    const auto attributes = differingAttributes(stated[index], {});
    const VfSettings rest = without(otherwise, {attributes.begin(), attributes.end()});
    collect({index, only(rest, differingAttributes(seen, {})), {}}, true);  // what is reported
  }
  // In the order of the attributes, as in a message.
  std::ranges::stable_sort(items_, {},
                           [](const Item& item) { return std::pair(item.index, item.attribute); });
}

void Configuration::collect(const VfChange& change, bool otherwise) {
  const VfSettings wanted = normalized(change.settings);
  const VfSettings known = sent_ == Sent::all ? VfSettings{} : settingsOf(before_, change.index);
  for (const Attribute attribute : differingAttributes(wanted, known)) {
    Item& item = items_.emplace_back();
    item.index = change.index;
    item.attribute = attribute;
    item.wanted = only(wanted, {attribute});
    item.required = change.required.contains(attribute);
    item.otherwise = otherwise;
  }
}

void Configuration::send() {
  const Acknowledgement answer = port_.set(requestsOf(allItems()));
  if (isPermission(answer.error) && !names_.privileged) {
    throw Error(names_.netdev + ": setting VF attributes failed: " + reasonOf(answer),
                "run as root (requires CAP_NET_ADMIN)");
  }
  if (answer.error != 0) {
    return sendByVf();
  }
  accept(allItems());
}

// The kernel stopped at the first refused attribute (do_setvfinfo) without saying which one that
// was. Only the answer to a message of its own shows whether an attribute took effect: mlx5 stores
// a MAC or VLAN before it makes the rules that enforce it, and reads it back even if that failed
// (__mlx5_eswitch_set_vport_vlan in mlx5/core/eswitch.c).
void Configuration::sendByVf() {
  std::map<unsigned, Items> byVf;
  for (Item& item : items_) {
    byVf[item.index].push_back(&item);
  }
  // The VFs share the vectors of the PF: those that give some back come first.
  std::vector<Items> ordered;
  for (const auto& [index, all] : byVf) {
    ordered.push_back(all);
  }
  std::stable_partition(ordered.begin(), ordered.end(), [&](const Items& items) {
    return std::ranges::any_of(items, [&](const Item* item) {
      return item->wanted.msixVectors && before(*item).msixVectors > item->wanted.msixVectors;
    });
  });
  for (const Items& all : ordered) {
    const Items items = withoutUnsupported(all);
    const bool answered = byVf.size() == 1;  // by the message that was just refused
    if (items.empty()) {
      continue;
    }
    if (!answered && port_.set(requestsOf(items)).error == 0) {
      accept(items);
    } else {
      // While a stored value fails, mlx5 refuses every later MAC and spoof check of the VF, too.
      restore(items);
      sendOneByOne(items);
    }
  }
}

// A PF has many new VFs, so that a driver without an attribute is asked once.
Configuration::Items Configuration::withoutUnsupported(const Items& items) {
  Items left;
  for (Item* item : items) {
    const auto known = unsupported_.find(item->attribute);
    if (item->otherwise && known != unsupported_.end()) {
      item->refusal = known->second;
    } else {
      left.push_back(item);
    }
  }
  return left;
}

// A driver that has no spoof check (mlx5 in switchdev mode) refuses to turn it off and on.
Acknowledgement Configuration::sendAlone(Item& item) {
  const auto requests = requestsOf({&item});
  Acknowledgement answer = port_.set(requests);
  if (answer.error != 0 && requests.size() > 1) {
    port_.set({{item.index, only(settingsOf(before_, item.index), {Attribute::spoofCheck})}});
    answer = port_.set({{item.index, item.wanted}});
  }
  return answer;
}

void Configuration::sendOneByOne(const Items& items) {
  for (Item* item : items) {
    const Acknowledgement answer = sendAlone(*item);
    item->failed = answer.error != 0 && !isRefusal(item->attribute, answer.error);
    if (answer.error == EOPNOTSUPP && item->otherwise) {
      unsupported_.emplace(item->attribute, reasonOf(answer));
    }
    if (answer.error == 0) {
      item->accepted = true;
    } else {
      item->denied = isPermission(answer.error);
      refuse(*item, reasonOf(answer),
             item->denied ? names_.deniedRemedy : refusalRemedy(item->attribute, answer.error));
    }
  }
}

void Configuration::accept(const Items& items) {
  for (Item* item : items) {
    item->accepted = true;
  }
}

// A driver may acknowledge a value and apply it late (a MAC set by a firmware command), or never.
void Configuration::waitForEffect() {
  VfTable now;
  const auto isObservable = [&](const Item& item) {
    return only(settingsOf(now, item.index), {item.attribute}) != VfSettings{};
  };
  const auto pending = [&](const Item& item) {
    // mlx5 does not report every GUID. Everything else is reported, unless the VF's whole entry is
    // missing: rtnetlink omits it while the driver resets the device (mlx5e_get_vf_config).
    const bool assumed = isGuid(item.attribute) && !isObservable(item);
    return item.refusal.empty() && !assumed && !holds(item, now);
  };
  pollUntil(Deadline(deadline_), [&] {
    now = port_.read();
    return std::none_of(items_.begin(), items_.end(), pending);
  });
  for (Item& item : items_) {
    if (!pending(item)) {
      continue;
    }
    if (isObservable(item)) {
      refuse(item,
             "accepted, but reads back as " + describe(settingsOf(now, item.index), item.attribute),
             attributeRemedy(item.attribute));
    } else {
      refuse(item, "accepted, but the driver does not report it", unreportedRemedy);
    }
  }
}

void Configuration::refuse(Item& item, const std::string& reason, const std::string& remedy) {
  item.refusal = reason;
  if (item.required) {
    fail(item, remedy);
  }
  for (const Remainder& each : restore({&item})) {
    item.refusal += "; " + each.text();
  }
}

void Configuration::fail(const Item& item, const std::string& remedy) {
  const std::string outcome = rollBack();
  throw Error(names_.netdev + ": driver " + names_.driver + " cannot set " +
                  std::string(toString(item.attribute)) + " of VF " + std::to_string(item.index) +
                  " to " + describe(item.wanted, item.attribute) + ": " + item.refusal + outcome,
              remedy);
}

// Returns the result as the end of an error message.
std::string Configuration::rollBack() {
  try {
    const auto remainders = restore(allItems());
    std::vector<std::string> texts;
    for (const Remainder& each : remainders) {
      texts.push_back(each.text());
    }
    const bool changed = std::ranges::any_of(remainders, &Remainder::changed);
    const std::string result = changed ? "" : "; the previous attributes were restored";
    return texts.empty() ? result : result + "; " + join(texts, "; ");
  } catch (const Error& error) {
    return std::string("; cannot restore the previous attributes: ") + error.what();
  }
}

// Sets the previous values again, whatever reads back: a refused change may have removed the rules
// that enforce a value which still reads back (esw_acl_ingress_lgcy_setup). In reverse order, and
// again as long as that helps, because a value can be refused on account of another one.
std::vector<Remainder> Configuration::restore(Items items) {
  std::ranges::reverse(items);
  std::map<const Item*, std::string> reasons;
  for (std::size_t before = items.size() + 1; items.size() < before;) {
    before = items.size();
    std::erase_if(items, [&](const Item* item) {
      reasons[item] = restore(*item);
      return reasons[item].empty();
    });
  }
  if (items.empty()) {
    return {};
  }
  const VfTable now = port_.read();
  std::vector<Remainder> remainders;
  for (const Item* item : items) {
    const VfSettings known = before(*item);
    const bool same =
        known != VfSettings{} && differingAttributes(known, settingsOf(now, item->index)).empty();
    remainders.push_back({item->index, item->attribute, reasons[item], !same});
  }
  return remainders;
}

// Empty, or the reason why this attribute may not have its previous value.
std::string Configuration::restore(const Item& item) {
  const VfSettings known = before(item);
  if (known == VfSettings{}) {
    // The kernel stops at the first attribute that is refused (do_setvfinfo), so that those after
    // it were never set. A GUID that the firmware refused is not stored (set_vf_node_guid in
    // mlx5/ib_virt.c).
    const bool unset = !item.accepted && (item.refusal.empty() || isGuid(item.attribute));
    const bool unchanged = item.denied || unset;
    return unchanged ? "" : "its previous value is not observable";
  }
  const Acknowledgement answer = port_.set({{item.index, known}});
  return answer.error == 0 ? std::string{} : reasonOf(answer);
}

// Empty: not observable.
VfSettings Configuration::before(const Item& item) const {
  return only(settingsOf(before_, item.index), {item.attribute});
}

bool Configuration::holds(const Item& item, const VfTable& table) const {
  return differingAttributes(item.wanted, settingsOf(table, item.index)).empty();
}

Configuration::Items Configuration::allItems() {
  Items all;
  for (Item& item : items_) {
    all.push_back(&item);
  }
  return all;
}

// mlx5 logs "Set invalid MAC while spoofchk is on" (mlx5_eswitch_set_vport_mac), and "Spoofchk in
// set while MAC is invalid" if the check was on before (mlx5_eswitch_set_vport_spoofchk): off, then
// the zero MAC, then on logs nothing. A message can have several entries for one VF.
std::vector<VfRequest> Configuration::requestsOf(const Items& items) const {
  std::map<unsigned, VfSettings> byVf;
  for (const Item* item : items) {
    VfSettings& together = byVf[item->index];
    together = firstOf(item->wanted, together);
  }
  std::vector<VfRequest> requests;
  for (auto& [index, settings] : byVf) {
    const bool clearsMac = settings.mac && settings.mac->isZero();
    if (clearsMac && settingsOf(before_, index).spoofCheck == true) {
      VfSettings off;
      off.spoofCheck = false;
      requests.push_back({index, off});
      settings.spoofCheck = settings.spoofCheck.value_or(true);
    }
    requests.push_back({index, settings});
  }
  return requests;
}

}  // namespace

std::vector<RefusedAttribute> configureVfs(VfPort& port, const std::vector<VfChange>& changes,
                                           const PortNames& names,
                                           std::chrono::milliseconds deadline,
                                           const VfSettings& otherwise, Sent sent) {
  return Configuration(port, names, deadline, sent).run(changes, otherwise);
}

}  // namespace vfpass::host
