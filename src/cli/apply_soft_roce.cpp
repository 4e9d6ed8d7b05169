#include "apply_soft_roce.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/soft_roce.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::cli {
namespace {

constexpr std::chrono::milliseconds kernelPatience{30000};
constexpr std::chrono::milliseconds lockPatience{150000};
constexpr std::chrono::milliseconds databasePatience{15000};

report::SoftRoceEntry describe(const plan::SoftRoceDecision& decision) {
  report::SoftRoceEntry entry;
  entry.name = decision.name;
  if (decision.wanted) {
    entry.wanted = decision.wanted->netdev;
  }
  if (decision.found && decision.found->softRoce) {
    entry.found = decision.found->netdev;
  }
  entry.madeByVfpass = decision.ours;
  return entry;
}

void requireUnused(const host::Root& root, const RdmaLink& link) {
  const auto users = host::rdmaUsers(root, link.number.value(), kernelPatience);
  if (!users.empty()) {
    throw Error("SoftRoCE link " + printable(link.name) + ": removing it would take it away from " +
                    join(users, ", "),
                "end those programs, then run `vfpass host apply` again", ExitCode::refused);
  }
}

}  // namespace

SoftRoceRun::SoftRoceRun(Session& session, Mode mode)
    : session_(session),
      policy_(session.configuration().softRoce),
      mode_(mode),
      root_(session.root()) {}

bool SoftRoceRun::isLive() const { return session_.options().sysroot == "/"; }

void SoftRoceRun::run() {
  std::optional<state::FileLock> lock;
  if (mode_ == Mode::change) {
    lock =
        state::FileLock::acquire(session_.options().runDirectory / "soft-roce.lock", lockPatience);
  }
  const auto links = host::readRdmaLinks(root_, kernelPatience);
  if (policy_.empty() && std::ranges::none_of(links, &RdmaLink::softRoce)) {
    return;
  }
  bootId_ = isLive() ? session_.kernel().bootId() : "";
  for (auto& decision : plan::decideSoftRoce(policy_, links, records(), bootId_)) {
    settleRecords(decision);
    if (decision.wanted || decision.found) {
      auto entry = describe(decision);
      turns_.push_back({std::move(decision), std::move(entry)});
    }
  }
  for (auto& turn : turns_) {
    if (const auto& objection = turn.decision.objection) {
      fail(turn, Error(objection->message, objection->remedy, objection->code));
    }
  }
  if (mode_ == Mode::show) {
    return;
  }
  std::ranges::for_each(turns_, [this](Turn& turn) { checkNetdev(turn); });
  // First all that go: a netdev carries one link only.
  std::ranges::for_each(turns_, [this](Turn& turn) { remove(turn); });
  std::ranges::for_each(turns_, [this](Turn& turn) { create(turn); });
}

std::vector<report::SoftRoceEntry> SoftRoceRun::entries() const {
  std::vector<report::SoftRoceEntry> entries;
  std::ranges::transform(turns_, std::back_inserter(entries), &Turn::entry);
  return entries;
}

// A captured tree is another host: what this one has recorded says nothing about it.
std::vector<SoftRoceRecord> SoftRoceRun::records() {
  if (!isLive()) {
    return {};
  }
  try {
    const state::Database database(session_.options().stateDirectory,
                                   state::Database::Open::readOnly, databasePatience);
    return database.softRoceRecords();
  } catch (const Error& error) {
    if (mode_ != Mode::show) {
      throw;
    }
    session_.warn(std::string("which SoftRoCE links vfpass has made is not known: ") +
                  error.what());
    return {};
  }
}

void SoftRoceRun::settleRecords(const plan::SoftRoceDecision& decision) {
  if (mode_ != Mode::change) {
    return;
  }
  if (decision.forget) {
    session_.database().forgetSoftRoce(decision.name);
  } else if (decision.ours && !decision.remove) {
    // After a process that was killed before it could write the number down.
    session_.database().recordSoftRoce(
        {decision.name, decision.found->netdev, decision.found->number, bootId_});
  }
}

// Before anything is removed for its sake.
void SoftRoceRun::checkNetdev(Turn& turn) {
  if (!turn.decision.create || !isLive()) {
    return;
  }
  try {
    requireFittingNetdev(turn.decision.wanted.value());
  } catch (const Error& error) {
    turn.decision.create = turn.decision.remove = false;
    fail(turn, error);
  }
}

void SoftRoceRun::remove(Turn& turn) {
  if (!turn.decision.remove) {
    return;
  }
  try {
    const RdmaLink& link = turn.decision.found.value();
    requireUnused(root_, link);
    act(turn, "remove it from " + link.netdev, [&] {
      host::removeSoftRoceLink(root_, link, kernelPatience);
      turn.entry.found.reset();
      turn.entry.madeByVfpass = false;
      session_.database().forgetSoftRoce(link.name);
    });
  } catch (const Error& error) {
    turn.decision.create = false;
    fail(turn, error);
  }
}

void SoftRoceRun::create(Turn& turn) {
  if (!turn.decision.create) {
    return;
  }
  try {
    const SoftRocePolicy& wanted = turn.decision.wanted.value();
    act(turn, "make it on " + wanted.netdev, [&] {
      make(wanted.name, wanted.netdev);
      turn.entry.found = wanted.netdev;
      turn.entry.madeByVfpass = true;
    });
  } catch (const Error& error) {
    putBack(turn, error);
  }
}

// The record comes first: a link that is made by a process that is killed is ours all the same.
void SoftRoceRun::make(const std::string& name, const std::string& netdev) {
  state::Database& database = session_.database();
  database.recordSoftRoce({name, netdev, std::nullopt, bootId_});
  std::optional<std::uint32_t> number;
  try {
    number = host::addSoftRoceLink(root_, name, netdev, kernelPatience);
    database.recordSoftRoce({name, netdev, number, bootId_});
  } catch (const Error&) {
    if (number) {
      host::removeSoftRoceLink(root_, {name, true, netdev, number}, kernelPatience);
    }
    database.forgetSoftRoce(name);
    throw;
  }
}

// The link that had to go first is made again where it was.
void SoftRoceRun::putBack(Turn& turn, const Error& error) {
  const bool removed = mode_ == Mode::change && turn.decision.remove;
  if (!removed) {
    fail(turn, error);
    return;
  }
  const std::string netdev = turn.decision.found->netdev;
  std::string outcome = "; it is on " + printable(netdev) + " again";
  try {
    make(turn.decision.name, netdev);
    turn.entry.found = netdev;
    turn.entry.madeByVfpass = true;
  } catch (const Error& second) {
    outcome = std::string("; where it was it could not be made again: ") + second.what();
  }
  fail(turn, Error(error.what() + outcome, error.remedy(), error.code()));
}

void SoftRoceRun::requireFittingNetdev(const SoftRocePolicy& wanted) {
  const std::string place = toString(wanted.place) + ": ";
  if (const auto fault = host::softRoceFault(root_, wanted.netdev); !fault.empty()) {
    throw Error(place + fault,
                "`ip -details link` shows the netdevs; for one that comes up late "
                "enable vfpass-soft-roce.service, which waits for the network",
                ExitCode::badInput);
  }
  if (root_.exists("sys/class/net/" + wanted.netdev + "/device/infiniband")) {
    session_.warn(place + "netdev " + printable(wanted.netdev) +
                  " has RDMA in hardware; SoftRoCE beside it is slower");
  }
}

void SoftRoceRun::act(Turn& turn, const std::string& description,
                      const std::function<void()>& work) {
  const std::string what = "SoftRoCE link " + printable(turn.decision.name) + ": " + description;
  session_.verbose(what);
  if (mode_ == Mode::change) {
    work();
    session_.verbose("done: " + what);
  } else {
    codes_.push_back(ExitCode::pending);
  }
  turn.entry.actions.push_back(description);
}

void SoftRoceRun::fail(Turn& turn, const Error& error) {
  const std::string remedy = error.remedy().empty() ? "" : "; " + error.remedy();
  turn.entry.failures.push_back(error.what() + remedy);
  codes_.push_back(error.code());
}

}  // namespace vfpass::cli
