#include "view.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

constexpr std::size_t fileLimit = 65536;

void keepRequired(const Topology& topology, const Requirements& requirements,
                  std::vector<std::size_t>& gpus, std::vector<std::size_t>& pfs) {
  std::erase_if(gpus, [&](std::size_t gpu) {
    return std::ranges::find(requirements.gpus, topology.functions[gpu].address) ==
           requirements.gpus.end();
  });
  std::erase_if(pfs, [&](std::size_t pf) {
    return std::ranges::find(requirements.vfs, topology.functions[pf].address, &Requirement::pf) ==
           requirements.vfs.end();
  });
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
  rails_ = topology::rails(topology, gpus_, pfs_);
  std::erase_if(rails_, [](const topology::Rail& rail) { return !rail.pf; });
}

std::optional<std::string> View::answer(
    const std::string& name, const std::function<std::optional<std::string>()>& query) const {
  if (!root_.isLive()) {
    return root_.readText("vfpass/" + name);
  }
  auto text = query();
  if (text && inquiries_.answers != nullptr) {
    inquiries_.answers->insert_or_assign(name, *text);
  }
  return text;
}

std::vector<std::string> View::settings(const std::string& path) const {
  return splitLines(knownSettings(path, root_.readText(path, fileLimit).value_or("")));
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

std::string View::pathOf(const TopologyFunction& function, const std::string& file) const {
  return "sys/devices/" + function.path + "/" + file;
}

std::string nameOf(const TopologyFunction& function) {
  if (!function.rdma.empty()) {
    return function.rdma.front().name;
  }
  return function.netdevs.empty() ? toString(function.address) : function.netdevs.front().name;
}

}  // namespace vfpass::doctor
