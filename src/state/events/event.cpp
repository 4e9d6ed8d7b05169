#include "vfpass/events/event.hpp"

#include <algorithm>
#include <array>

namespace vfpass::events {
namespace {

using enum Operation;
using enum Result;
using enum Priority;

// Never change an ID: filters, alerts and the message catalog (packaging/vfpass.catalog) refer to
// it. A new one comes from `systemd-id128 new`.
constexpr std::array events{Event{attach, done, "1a1e18434ef5407e82a8aca528a2b8c8", notice},
                            Event{attach, failed, "7705e599e6b74d769e34153f531d6ecd", error},
                            Event{detach, done, "90f96899ef184cceae999140322b133e", notice},
                            Event{detach, failed, "d8d2016cbb034b1eab16d1d067d88bed", error},
                            Event{guestSetup, done, "d17152a2a3b34fbf8b5aaeade6627398", notice},
                            Event{guestSetup, failed, "230b1bac00914adda5cfc5a80f02c053", error},
                            Event{prepare, done, "20468d351b49436c8ca1ee38cf277494", info},
                            Event{prepare, failed, "50e06797e5b24477bbb522ff4c4266be", error},
                            Event{started, done, "dff1f080138549ba8b85468607e68ebe", info},
                            Event{started, failed, "3112d6707e0b45728706f6df16e7700e", error},
                            Event{release, done, "445aa74cf30845d48825fab600914b6a", info},
                            Event{release, failed, "3b9a7930e13346c9ab24db06912af111", error},
                            Event{reconnect, failed, "68dda18eff804c0ab1965c6a7989657f", error},
                            Event{hostApply, done, "e1074146ca8345789fc8281e16060c65", notice},
                            Event{hostApply, failed, "318d2f40ed06439e8e85b1081a44ed28", error},
                            Event{recover, done, "e86bdf5715c74053ae245c2064259bb7", warning},
                            Event{recover, failed, "2b6c588944674edda3d69478f6601711", error},
                            Event{gc, done, "5ffb1dde78ec460c85d464b70d739387", notice},
                            Event{gc, failed, "22ac344a4a3c4182b6f3bf195fea95af", error},
                            Event{verify, done, "9904583ff2a141d18a6d7a343a852f6c", info},
                            Event{verify, failed, "03dffb42938c45b5a20b3321792b6ef3", error},
                            Event{verify, unverified, "f67004cdc7b84cd3b4cba3f300171c78", warning}};

}  // namespace

std::span<const Event> allEvents() { return events; }

const Event* findEvent(Operation operation, Result result) {
  const Result recorded = result == refused ? failed : result;
  const auto* found = std::ranges::find_if(events, [&](const Event& event) {
    return event.operation == operation && event.result == recorded;
  });
  return found == events.end() ? nullptr : found;
}

std::string_view toString(Operation operation) {
  switch (operation) {
    case attach:
      return "attach";
    case detach:
      return "detach";
    case guestSetup:
      return "guest-setup";
    case prepare:
      return "prepare";
    case started:
      return "started";
    case release:
      return "release";
    case reconnect:
      return "reconnect";
    case hostApply:
      return "host-apply";
    case recover:
      return "recover";
    case gc:
      return "gc";
    case verify:
      return "verify";
  }
  return "";
}

std::string_view toString(Result result) {
  switch (result) {
    case done:
      return "done";
    case failed:
      return "failed";
    case refused:
      return "refused";
    case unverified:
      return "unverified";
  }
  return "";
}

}  // namespace vfpass::events
