#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "vfpass/base/call_within.hpp"
#include "vfpass/hypervisor.hpp"

namespace vfpass::commands {

/// libvirt accepts a connection or call, but does not answer it in time.
class NoAnswer : public Error {
 public:
  explicit NoAnswer(std::chrono::milliseconds timeout);
};

/// ask() of a libvirt that may not answer: throws NoAnswer after `timeout`, if there is one. The
/// call then continues, so `ask` must own whatever it uses.
template <typename Ask>
auto answerWithin(std::optional<std::chrono::milliseconds> timeout, Ask ask) {
  if (!timeout) {
    return ask();
  }
  auto answer = callWithin(*timeout, {}, std::move(ask));
  if (!answer) {
    throw NoAnswer(*timeout);
  }
  return *std::move(answer);
}

/// `inner`, whose calls that read throw NoAnswer after `timeout`, and from then on at once. Those
/// that change something, and those of the agent, which have limits of their own, are passed on.
std::unique_ptr<Hypervisor> boundedHypervisor(std::unique_ptr<Hypervisor> inner,
                                              std::chrono::milliseconds timeout);

}  // namespace vfpass::commands
