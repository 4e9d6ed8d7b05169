#include "host_settings.hpp"

#include "vfpass/error.hpp"

namespace vfpass::cli {
namespace {

// A captured tree says nothing about the running kernel's links.
bool isLive(const Session& session) { return session.options().sysroot == "/"; }

std::string yamlText(bool value) { return value ? "true" : "false"; }

template <typename Value, typename Text>
std::optional<std::string> textOf(const std::optional<Value>& value, Text text) {
  return value ? std::optional<std::string>(text(*value)) : std::nullopt;
}

std::string numberText(unsigned number) { return std::to_string(number); }

}  // namespace

std::optional<host::EswitchMode> foundEswitchMode(const Session& session,
                                                  const PhysicalFunction& pf) {
  return isLive(session) ? host::readEswitchMode(pf.address, linkPatience) : std::nullopt;
}

std::optional<host::LinkSettings> foundLink(const Session& session, const PhysicalFunction& pf) {
  if (!isLive(session) || pf.netdev.empty()) {
    return std::nullopt;
  }
  return host::readLink({pf.netdevIndex, pf.netdev}, linkPatience);
}

report::HostEntry describePf(const Session& session, const PhysicalFunction& pf,
                             const PfPolicy* policy) {
  const PfPolicy wanted = policy == nullptr ? PfPolicy{} : *policy;
  report::HostEntry entry;
  entry.name = toString(pf.address);
  entry.netdev = pf.netdev;
  entry.listed = policy != nullptr;
  std::optional<host::EswitchMode> mode;
  std::optional<host::LinkSettings> link;
  try {
    mode = foundEswitchMode(session, pf);
    link = foundLink(session, pf);
  } catch (const Error& error) {
    entry.failures.emplace_back(error.what());
  }
  entry.settings.push_back({"virtual-function-count", textOf(wanted.vfCount, numberText),
                            std::to_string(pf.vfs.size())});
  entry.settings.push_back(
      {"embedded-switch-mode", wanted.eswitchMode,
       textOf(mode, [](host::EswitchMode value) { return std::string(toString(value)); })});
  entry.settings.push_back(
      {"mtu", textOf(wanted.mtu, numberText),
       textOf(link, [](const host::LinkSettings& value) { return numberText(value.mtu); })});
  entry.settings.push_back(
      {"up", textOf(wanted.up, yamlText),
       textOf(link, [](const host::LinkSettings& value) { return yamlText(value.up); })});
  return entry;
}

}  // namespace vfpass::cli
