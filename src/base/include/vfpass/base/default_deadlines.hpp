#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

/// Every default timeout. A pause between two polls is not one: it stays where it is used.
namespace vfpass::deadlines {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Calls into the kernel, after which an Error names the device that hangs (host::Deadlines).

/// Binding or unbinding a driver, or a reset. A probe by real mlx5 takes up to a second.
inline constexpr milliseconds bind{20000};
/// Writing sriov_numvfs, during which the kernel binds drivers to all VFs, one after the other.
inline constexpr milliseconds createVfs{120000};
/// Writing 0 to it. mlx5 first waits up to 120 s for the pages that the card's firmware returns
/// (mlx5_wait_for_pages, MLX5_TO_RECLAIM_VFS_PAGES_MS), and succeeds even if they do not come: a
/// deadline of 120 s would report the failure of a removal that then succeeds.
inline constexpr milliseconds removeVfs{150000};
/// One netlink exchange. The kernel replies at once, unless another process holds its lock.
inline constexpr milliseconds netlink{5000};
/// Changing the eswitch mode: rebuilding its tables and the RDMA device takes seconds per port.
inline constexpr milliseconds eswitch{120000};
/// Creating, listing or removing RDMA links: may load modules.
inline constexpr milliseconds rdma{30000};
/// Activating or deactivating a partition of the fabric manager, which trains the NVLinks of its
/// GPUs, and reading the list before and after it.
inline constexpr milliseconds fabric{60000};
/// Reading a driver_override: a driver's probe holds the device's lock until it finishes, with real
/// mlx5 up to a second.
inline constexpr milliseconds driverOverride{1000};
/// Reading a card's serial number: normally 40 to 200 ms on a ConnectX, by estimate; each four
/// bytes time out after 125 ms (pci_vpd_wait).
inline constexpr milliseconds serial{1000};
/// Writing sriov_drivers_autoprobe: the kernel only stores the value and takes no lock
/// (sriov_drivers_autoprobe_store).
inline constexpr milliseconds autoprobe{5000};
/// New VFs' links in sysfs: they exist when the write returns, except with drivers that continue in
/// the background.
inline constexpr milliseconds vfLinks{2000};

// The qemu hook. libvirt has no timeout for hooks and holds the domain's lock while one runs, so
// the hook ends each call itself.

/// `prepare begin`: waits for locks and configures the domain's devices.
inline constexpr seconds hookPrepare{60};
/// `started begin`: only writes the database.
inline constexpr seconds hookStarted{10};
/// `release end`: waits for locks and returns the devices to the host.
inline constexpr seconds hookRelease{45};
/// `reconnect begin`: only writes the database, for each running domain while libvirtd starts.
inline constexpr seconds hookReconnect{10};
/// `restore begin` and `migrate begin`: only read the database.
inline constexpr seconds hookArrival{10};
/// The part of a call's time that is reserved for its own work after it has the locks. Another call
/// that holds them needs no longer than that, so the rest is enough to wait for it.
inline constexpr milliseconds hookWork{20000};
/// Waiting for locks, even if the call's time is nearly over.
inline constexpr milliseconds hookLeastLock{1000};
/// Waiting for another command that changes the XML of the starting domain. That command may itself
/// be waiting for this start, because libvirt holds the domain's lock while the hook runs.
inline constexpr milliseconds hookOperation{10000};
/// Another writer's transaction: shorter than in commands, and leaves time for the work.
inline constexpr milliseconds hookDatabase{3000};
/// As `bind`, `createVfs` and `netlink`, but one of them has to fit into `hookWork`. A creation
/// takes time for each VF: docs/attach.md says how many fit.
inline constexpr milliseconds hookBind{8000};
inline constexpr milliseconds hookCreateVfs{12000};
/// The inverse of a creation that the hook rolls back. A removal that takes longer stays in the
/// journal, and the next command completes it.
inline constexpr milliseconds hookRemoveVfs{12000};
inline constexpr milliseconds hookNetlink{3000};
/// As `fabric`; what takes longer stays in the journal.
inline constexpr milliseconds hookFabric{14000};
/// The trial run before `hook install`: a hook without arguments takes about a millisecond.
inline constexpr milliseconds hookTrial{5000};

// Commands on the host.

/// A lock that another command holds: long enough for a slow driver (`removeVfs`).
inline constexpr milliseconds lock{180000};
/// Another writer's transaction: long enough for another command that waits for a slow driver.
inline constexpr milliseconds database{15000};
/// The same while a damaged database is examined and moved aside.
inline constexpr milliseconds rebuildDatabase{5000};
/// A running guest to release a device that is unplugged (`detach --timeout`): the guest's driver
/// has to stop first.
inline constexpr seconds guestRelease{60};
/// A holder that is about to release a device: QEMU that has just unplugged it, or an earlier write
/// that is about to return from the kernel.
inline constexpr milliseconds holder{5000};
/// libvirt's answer to a connection, in commands that change no domain; to every call where its
/// domains are only a note or a further check: at boot `host apply` runs before its daemon, whose
/// socket may accept connections already.
inline constexpr seconds libvirtAnswer{10};
/// libvirt's answer to a call whose result such a command needs: longer than `hookPrepare`, because
/// libvirt holds a domain's lock while the hook runs, and waits for it in most calls.
inline constexpr seconds libvirtCall{75};
/// libvirt's answer for the completion of a command line: the user is typing.
inline constexpr seconds completionAnswer{1};
/// Listing RDMA links for `snapshot`, which only reads.
inline constexpr milliseconds snapshotRdma{10000};
/// One netlink query of `doctor`, which then reports "not observable": nothing depends on it.
inline constexpr milliseconds doctorNetlink{2000};
/// fmpm and nv-fabricmanager in commands that change nothing: fmpm waits a second for the
/// connection to the fabric manager.
inline constexpr milliseconds fabricAnswer{5000};
/// mstconfig or mlxconfig, for each card and in total, so that many slow cards do not add up.
inline constexpr milliseconds firmwareCard{6000};
inline constexpr milliseconds firmwareTotal{20000};

/// journalctl for `history`: it reads the index of every journal file.
inline constexpr seconds journal{60};

// The guest agent.

/// One command. This limit keeps one call from using up the timeout of the whole run.
inline constexpr seconds agentCall{20};
/// The same for a run with the timeout `whole`: whoever allows more than `verify` expects a slow
/// guest, and one call that takes too long ends the run.
constexpr seconds agentCallWithin(seconds whole) { return std::max(agentCall, whole / 30); }
/// Reading a guest's error counters after a run: the result only adds to what is known.
inline constexpr seconds errorCounters{15};
/// The time that libvirt may take longer than requested, for the agent's reply to its own
/// guest-sync (up to 10 s), and for the connection to another host.
inline constexpr seconds agentSync{15};
/// Starting a cleanup program whose result nobody awaits.
inline constexpr seconds agentCleanup{5};
/// The same while libvirt still waits for an earlier reply of that agent: enough to send the
/// request to libvirt, which passes it on afterwards.
inline constexpr milliseconds agentCleanupSent{500};
/// One guest-ping of `verify --wait`, which repeats it until the agent has started.
inline constexpr seconds agentPing{5};
/// Asking whether the guest uses a device, before it is unplugged.
inline constexpr seconds deviceUse{60};
/// The queries of `doctor --vm`, together.
inline constexpr seconds doctorAgent{10};

// vfpass guest-setup.

/// The whole command (`--timeout`): a slow guest may still be booting.
inline constexpr seconds guestSetup{300};
/// A network manager sets addresses with a delay, and never if it waits for a carrier.
inline constexpr seconds networkSettles{30};
/// A rollback: enough for a slow guest, even if the command's timeout is used up.
inline constexpr seconds setupRollback{120};

// vfpass verify.

/// The whole command (`--timeout`) for one VF, including copying the probe through the agent.
inline constexpr seconds verify{600};
/// What each further VF adds: with GPU memory and the guest's own tools about 20 programs run,
/// which start CUDA and measure for 0.5 s or more. With every message size: up to two minutes more.
inline constexpr seconds verifyFurtherVf{60};
inline constexpr seconds verifySizesOfVf{120};
constexpr seconds verifyVfs(std::size_t vfs, bool sizes) {
  const auto count = static_cast<seconds::rep>(vfs > 0 ? vfs - 1 : 0);
  return verify + (sizes ? verifyFurtherVf + verifySizesOfVf : verifyFurtherVf) * count;
}
/// A probe that moves data, of a command with the timeout `whole`. Two fifths: enough remains to
/// report a probe that hangs, and to kill it.
constexpr seconds probeWithin(seconds whole) { return std::max(whole * 2 / 5, seconds{10}); }
/// The same for a probe that starts when only `left` of that timeout is left: what a probe that
/// waits until its deadline reports, as who is missing, has to be read before the command's is
/// over.
constexpr seconds probeWithinRest(seconds planned, seconds left) {
  return std::min(planned, std::max(left * 4 / 5, seconds{10}));
}
/// After starts: waiting for the verification of another VM with VFs of the same PF. With one VF
/// and one GPU it takes about a minute.
inline constexpr seconds startedTurn{180};
/// After starts, without `--timeout`: a verification that hangs outside the guest, in libvirt.
inline constexpr seconds startedLongest{7200};
/// A reply of the vfpass on a peer's host, and of its libvirt: for the first one ssh has to log in.
inline constexpr milliseconds remoteReply{30000};
/// perftest in the guest, so that it ends if a device hangs.
inline constexpr seconds guestTool{60};
/// The PF's counters, which a driver may update some time after the traffic.
inline constexpr milliseconds countersSettle{3000};
/// A run of vfpass-probe without `--deadline`.
inline constexpr seconds probeRun{60};

static_assert(agentCallWithin(verify) == agentCall);
static_assert(lock > removeVfs && removeVfs > createVfs);
static_assert(hookCreateVfs < hookWork && hookRemoveVfs < hookWork && hookFabric < hookWork);

}  // namespace vfpass::deadlines
