#include "vfpass/verify/nccl_topology_check.hpp"

#include "vfpass/agent/guest_scripts.hpp"

namespace vfpass::verify {
namespace {

constexpr int noFile = 3;

// NCCL's order: the setting, then nvidia-topologyd's file. The first line of nccl.conf takes
// effect: ncclLoadParam() does not overwrite the environment.
constexpr const char* script = R"sh(
named=
if [ -r "$1" ]; then named=$(sed -n 's/^NCCL_TOPO_FILE=//p' "$1" | head -n 1); fi
for file in "$named" "$2"; do
    if [ -n "$file" ] && [ -s "$file" ]; then printf '%s\n' "$file"; exit 0; fi
done
exit 3
)sh";

}  // namespace

Finding checkNcclTopology(agent::Agent& agent, const std::string& confFile,
                          const std::string& daemonFile) {
  const std::string expected = "a topology file for NCCL, since the guest's switches are virtual";
  const agent::ExecResult result = runShell(agent, script, {"sh", confFile, daemonFile});
  if (result.exitCode == 0) {
    return {"nccl-topology", "", Outcome::passed, expected, agent::firstLine(result.out), ""};
  }
  if (result.exitCode != noFile) {
    return {"nccl-topology",
            "",
            Outcome::waived,
            expected,
            "cannot search for it: " + agent::firstLine(result.err),
            ""};
  }
  return {"nccl-topology",
          "",
          Outcome::warning,
          expected,
          "none, so NCCL assumes a 2.5 GT/s x1 link at each virtual switch",
          "run vfpass guest-setup VM, which writes it"};
}

}  // namespace vfpass::verify
