#include "schedule/jobs.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace vfpass::crash {
namespace {

int outputLock = -1;  // its open file belongs to this job alone; -1: there is only one process

std::filesystem::path resultOf(const Job& job) { return job.scratch / "findings"; }

[[noreturn]] void runJob(const Job& job, const std::function<Findings(const Job&)>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int code = 0;
  try {
    outputLock = ::open((job.scratch.parent_path() / "output").c_str(),
                        O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    std::ofstream(resultOf(job), std::ios::binary) << pack(toMessage(work(job)));
  } catch (const std::exception& error) {
    printWhole("job " + std::to_string(job.number) + ": " + error.what() + '\n');
    code = 2;
  }
  std::cout.flush();
  ::_exit(code);
}

pid_t start(const Job& job, const std::function<Findings(const Job&)>& work) {
  std::filesystem::create_directory(job.scratch);
  const pid_t process = ::fork();
  if (process < 0) {
    throw std::system_error(errno, std::generic_category(), "fork");
  }
  if (process == 0) {
    runJob(job, work);
  }
  return process;
}

Findings resultAfter(pid_t process, const Job& job) {
  int status = 0;
  if (::waitpid(process, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error("job " + std::to_string(job.number) + " failed: its status is " +
                             std::to_string(status));
  }
  std::ostringstream bytes;
  bytes << std::ifstream(resultOf(job), std::ios::binary).rdbuf();
  return findingsIn(unpack(bytes.str().data(), bytes.str().size()));
}

}  // namespace

Findings runJobs(unsigned jobs, const std::filesystem::path& scratch,
                 const std::function<Findings(const Job&)>& work) {
  std::cout.flush();
  std::vector<std::pair<pid_t, Job>> started;
  for (unsigned number = 0; number < jobs; ++number) {
    const Job job{scratch / ("job-" + std::to_string(number)), number};
    started.emplace_back(start(job, work), job);
  }
  Findings all;
  for (const auto& [process, job] : started) {
    all.add(resultAfter(process, job));
  }
  return all;
}

void printWhole(const std::string& text) {
  if (outputLock >= 0) {
    ::flock(outputLock, LOCK_EX);
  }
  std::cout << text << std::flush;
  if (outputLock >= 0) {
    ::flock(outputLock, LOCK_UN);
  }
}

}  // namespace vfpass::crash
