#include "view.hpp"

#include <algorithm>
#include <iterator>

#include "config_space.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

constexpr std::size_t fileLimit = 65536;

void keepRequired(const Topology& topology, const Requirements& requirements,
                  std::vector<std::size_t>& gpus, std::vector<std::size_t>& pfs) {
  std::erase_if(gpus, [&](std::size_t gpu) {
    return std::ranges::find(requirements.functions, topology.functions[gpu].address) ==
           requirements.functions.end();
  });
  std::erase_if(pfs, [&](std::size_t pf) {
    return std::ranges::find(requirements.vfs, topology.functions[pf].address, &Requirement::pf) ==
           requirements.vfs.end();
  });
}

// Addresses of devices that no longer exist do not count: a mapping of a removed card must not make
// every other card unused.
std::set<PciAddress> usedDevices(const Topology& topology, const Requirements& requirements) {
  std::set<PciAddress> used;
  const auto add = [&](const PciAddress& address) {
    if (findFunction(topology, address) != nullptr) {
      used.insert(address);
    }
  };
  if (!requirements.selected.empty()) {
    std::ranges::for_each(requirements.selected, add);
    return used;
  }
  for (const Requirement& requirement : requirements.vfs) {
    add(requirement.pf);
  }
  std::ranges::for_each(requirements.functions, add);
  std::ranges::for_each(requirements.policyPfs, add);
  std::ranges::for_each(requirements.leased, add);
  return used;
}

// The paths that guests use are those between used devices; a nearer PF that nobody uses does not
// matter to them.
std::vector<topology::Rail> railsOf(const View& view) {
  const auto part = [&](const std::vector<std::size_t>& numbers, bool used) {
    std::vector<std::size_t> found;
    std::ranges::copy_if(numbers, std::back_inserter(found),
                         [&](std::size_t number) { return view.uses(number) == used; });
    return found;
  };
  auto rails = topology::rails(view.topology(), part(view.gpus(), true), part(view.pfs(), true));
  const auto others = topology::rails(view.topology(), part(view.gpus(), false), view.pfs());
  rails.insert(rails.end(), others.begin(), others.end());
  std::erase_if(rails, [](const topology::Rail& rail) { return !rail.pf; });
  return rails;
}

}  // namespace

View::View(const host::Root& root, const Topology& topology, const Requirements& requirements,
           const Inquiries& inquiries)
    : root_(root),
      topology_(topology),
      requirements_(requirements),
      inquiries_(inquiries),
      gpus_(topology::gpus(topology)),
      pfs_(topology::pfs(topology)) {
  if (requirements.oneVm) {
    keepRequired(topology, requirements, gpus_, pfs_);
  }
  used_ = usedDevices(topology, requirements);
  rails_ = railsOf(*this);
}

bool View::uses(std::size_t number) const {
  const Device& device = function(number);
  return used_.empty() || used_.contains(device.address) ||
         (device.physicalFunction && used_.contains(*device.physicalFunction));
}

bool View::uses(const topology::Rail& rail) const {
  return uses(rail.gpu) && rail.pf && uses(*rail.pf);
}

std::optional<std::string> View::answer(
    const std::string& name, const std::function<std::optional<std::string>()>& query) const {
  if (!root_.isLive()) {
    return root_.readText("vfpass/" + name, fileLimit);
  }
  const auto [known, isNew] = asked_.try_emplace(name);
  if (!isNew) {
    return known->second;
  }
  const auto& text = known->second = query();
  if (text && inquiries_.answers != nullptr) {
    inquiries_.answers->insert_or_assign(name, *text);
  }
  return text;
}

std::string View::derived(const std::string& name,
                          const std::function<std::string()>& query) const {
  if (!root_.isLive()) {
    if (auto recorded = root_.readText("vfpass/" + name, fileLimit)) {
      return *recorded;
    }
  }
  std::string text = query();
  if (inquiries_.answers != nullptr) {
    inquiries_.answers->insert_or_assign(name, text);
  }
  return text;
}

std::string View::settingsText(const std::string& path) const {
  return knownSettings(path, root_.readText(path, fileLimit).value_or(""));
}

std::vector<std::string> View::settings(const std::string& path) const {
  return splitLines(settingsText(path));
}

std::optional<std::string> View::kernelArgument(const std::string& name) const {
  std::optional<std::string> value;
  for (const std::string& word : settings("proc/cmdline")) {
    const auto equals = word.find('=');
    if (word.substr(0, equals) == name) {
      value = equals == std::string::npos ? "" : word.substr(equals + 1);
    }
  }
  return value;
}

std::optional<Version> View::kernelVersion() const {
  return leadingVersion(root_.readText("proc/sys/kernel/osrelease").value_or(""));
}

const std::string& View::config(const Device& function) const {
  const auto [known, isNew] = configs_.try_emplace(function.address);
  if (isNew) {
    known->second = readConfig(root_, function);
  }
  return known->second;
}

bool View::moduleLoaded(const std::string& name) const {
  return root_.exists("sys/module/" + name);
}

std::optional<bool> View::moduleFlag(const std::string& module,
                                     const std::string& parameter) const {
  const auto text = root_.readText("sys/module/" + module + "/parameters/" + parameter);
  if (!text) {
    return std::nullopt;
  }
  return *text == "Y" || *text == "1";
}

std::string View::pathOf(const Device& function, const std::string& file) {
  return "sys/devices/" + function.path + "/" + file;
}

std::string nameOf(const Device& function) {
  if (!function.rdma.empty()) {
    return function.rdmaDevice();
  }
  return function.netdevs.empty() ? toString(function.address) : function.netdev();
}

}  // namespace vfpass::doctor
