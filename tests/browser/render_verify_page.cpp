// Writes the page of a sample report, with a guest that sends markup. The picture is read from
// stdin.
#include <iostream>
#include <sstream>

#include "vfpass/report/verify_report.hpp"

using namespace vfpass;

namespace {

Finding finding(const char* key, const char* subject, Outcome outcome, Observer observer,
                const char* seen, const char* remedy = "") {
  return {key, subject, outcome, "", seen, remedy, observer};
}

Figure figure(const std::string& subject, const char* operation, const char* memory, double rate,
              double limit) {
  Figure figure;
  figure.subject = subject;
  figure.operation = operation;
  figure.memory = memory;
  figure.messageBytes = 65536;
  figure.gigabitsPerSecond = rate;
  figure.limit = limit;
  return figure;
}

VerifyReport sample() {
  VerifyReport report;
  report.domainName = "train0";
  report.peerName = "host2:train1";
  report.time = "2026-11-21T09:40:00Z";
  report.findings = {
      finding("agent", "", Outcome::passed, Observer::guest, "8.2.0"),
      finding("device-host", "rail0", Outcome::passed, Observer::host,
              "vfio-pci, held by process 4242 (qemu-system-x86_64)"),
      finding("driver", "rail0", Outcome::passed, Observer::guest,
              "mlx5_core<script>document.title='owned'</script>"),
      finding("gid", "rail0", Outcome::passed, Observer::guest,
              "index 3, RoCE v2 ::ffff:10.99.0.1"),
      finding("peer-ip", "rail0 - host2:train1:rail0", Outcome::warning, Observer::guest,
              "no reply", "let the firewall accept ICMP echo requests"),
      finding("peer-data-host", "rail0 - host2:train1:rail0", Outcome::passed, Observer::guest,
              "374 Gb/s, median of 41 passes, 0.51 s"),
      finding("counters", "rail0", Outcome::passed, Observer::host, "131072000 bytes"),
      finding("peer-data-gpu", "rail1 - host2:train1:rail1", Outcome::failed, Observer::guest,
              "flipped in message 17 at offset 4096",
              "compare firmware and driver with those of a working host"),
      finding("nccl-tests", "", Outcome::waived, Observer::guest, "not between two VMs")};
  report.figures = {figure("rail0 - host2:train1:rail0", "write", "host", 374.2, 391.6),
                    figure("rail0 - host2:train1:rail0", "read", "host", 361.9, 391.6),
                    figure("rail0 - host2:train1:rail0", "write", "gpu", 352.4, 391.6),
                    figure("rail1 - host2:train1:rail1", "write", "host", 188.0, 391.6)};
  Figure latency = figure("rail0 - host2:train1:rail0", "send", "host", 0, 0);
  latency.messageBytes = 8;
  latency.medianMicroseconds = 1.8;
  latency.tailMicroseconds = 2.6;
  report.figures.push_back(latency);
  report.allPairs.push_back(
      {"host",
       {{"rail0 - host2:train1:rail0", 374.2, 371.0}, {"rail1 - host2:train1:rail1", 188.0, 187.3}},
       9.4,
       10});
  return report;
}

}  // namespace

int main() {
  std::ostringstream picture;
  picture << std::cin.rdbuf();
  report::writeVerifyHtml(std::cout, sample(), picture.str(),
                          {{"2026-11-20T18:02:11Z", "passed", ""},
                           {"2026-11-19T07:15:42Z", "failed", "rail1: link: down"}});
}
