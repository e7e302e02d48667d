#include "worker/rank/rank_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/log_rotation.h"
#include "collective/ucx/ucx_transport.h"
#include "worker/rank/affinity.h"
#include "worker/rank/frame.h"
#include "worker/rank/rank_run.h"

namespace troupe {
namespace {

// Read by the signal handler to name the operation when the process crashes.
std::atomic<kernels::Executable*> crash_executable{nullptr};
std::atomic<StepProgress*> crash_progress{nullptr};

// Async-signal-safe: copies the kernel's name into the memory shared with the daemon, then ends the
// process with the same signal.
void OnFatalSignal(int signal) {
  StepProgress* const progress = crash_progress.load();
  kernels::Executable* const executable = crash_executable.load();
  if (progress != nullptr && executable != nullptr) {
    const char* name = executable->CurrentOperation();
    for (size_t i = 0; name != nullptr && i + 1 < sizeof(progress->operation); ++i) {
      progress->operation[i] = name[i];
      if (name[i] == '\0') break;
    }
  }
  raise(signal);
}

void NameOperationInCrashes() {
  // The handler has a stack of its own, because the cause may be an overflow of the thread's stack.
  static char stack[64 << 10];
  stack_t alternative{};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof(stack);
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_handler = OnFatalSignal;
  action.sa_flags = SA_ONSTACK | SA_RESETHAND | SA_NODEFER;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
}

// From now on the output of the process goes to the job's own file.
Status RedirectOutput(const std::string& path, FileSystem& files) {
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files, ParentDirectory(path)));
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return ErrnoStatus(errno, "open " + path);
  const bool redirected = dup2(file, STDOUT_FILENO) >= 0 && dup2(file, STDERR_FILENO) >= 0;
  const int error = errno;
  close(file);
  return redirected ? OkStatus() : ErrnoStatus(error, "redirect output to " + path);
}

// Moves the process to the cores that its daemon assigns.
void MoveTo(const v1::CoreSet& cores) {
  if (cores.cores().empty()) return;
  const Status moved = PinThisProcess({cores.cores().begin(), cores.cores().end()});
  if (!moved.ok()) LogWarning("rank", "{}", ToString(moved));
}

// Milliseconds to listen before the ticket must be checked again; -1: no limit.
int ListenMilliseconds(const RankRun* run, MonotonicTime now) {
  const std::optional<MonotonicTime> end = run == nullptr ? std::nullopt : run->ticket_expires_at();
  if (!end) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end - now).count();
  // After the ticket's end, it is checked now and then until the daemon ends the rank.
  return static_cast<int>(std::clamp<int64_t>(left, 100, 60'000));
}

// Sets what the process does on signals, and with its descriptors.
void PrepareProcess(const RankDescriptors& descriptors) {
  SizeUcxQueues();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "troupe-rank");
  signal(SIGPIPE, SIG_IGN);
  // A supervisor or a terminal signals the whole process group. The daemon handles the signal: it
  // moves its jobs if it has time, and ends its ranks with SIGKILL, which also follows its own end.
  signal(SIGTERM, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  // No process started from here inherits these descriptors.
  fcntl(descriptors.socket, F_SETFD, FD_CLOEXEC);
  fcntl(descriptors.progress, F_SETFD, FD_CLOEXEC);
}

// Starts a run, whose output goes to the job's own file.
std::unique_ptr<RankRun> BeginRun(v1::BeginRank begin, const RankSurroundings& surroundings) {
  if (const Status redirected = RedirectOutput(begin.log_path(), *surroundings.files);
      !redirected.ok()) {
    LogWarning("rank", "{}", ToString(redirected));
  } else {
    LimitLog(LogLimitFromEnvironment());
  }
  SetLogContext(fmt::format("job={} rank={} epoch={}", begin.start().job(), begin.rank(),
                            begin.start().group_epoch()));
  MoveTo(begin.cores());
  const v1::CoreSet cores = begin.cores();
  auto run = std::make_unique<RankRun>(std::move(begin), surroundings);
  run->ShareCores(cores);
  return run;
}

// The texts of a step's report are names of this program: of the job, blocks, operations, purposes.
void SendReport(FrameSocket& socket, const v1::RankReport& report) {
  (void)socket.Send(report,
                    report.worker().has_step_report() ? FrameTexts::kUtf8 : FrameTexts::kAny);
}

}  // namespace

StatusOr<RankDescriptors> ParseRankDescriptors(std::string_view text) {
  RankDescriptors descriptors;
  const char* const end = text.data() + text.size();
  const auto socket = std::from_chars(text.data(), end, descriptors.socket);
  if (socket.ec == std::errc() && socket.ptr != end && *socket.ptr == ',') {
    const auto progress = std::from_chars(socket.ptr + 1, end, descriptors.progress);
    if (progress.ec == std::errc() && progress.ptr == end && descriptors.socket >= 0 &&
        descriptors.progress >= 0) {
      return descriptors;
    }
  }
  return InvalidArgument("--rank-process: \"{}\" is not SOCKET,PROGRESS", text);
}

int RunRankProcess(const RankDescriptors& descriptors) {
  PrepareProcess(descriptors);
  void* const memory = mmap(nullptr, sizeof(StepProgress), PROT_READ | PROT_WRITE, MAP_SHARED,
                            descriptors.progress, 0);
  if (memory == MAP_FAILED) {
    LogError("rank", "{}", ToString(ErrnoStatus(errno, "map the progress memory")));
    return 1;
  }
  auto* const progress = static_cast<StepProgress*>(memory);
  crash_progress.store(progress);
  NameOperationInCrashes();

  PosixFileSystem files;
  SystemClock clock;
  FrameSocket socket(descriptors.socket);
  RankSurroundings surroundings{
      .files = &files,
      .clock = &clock,
      .progress = progress,
      .make_transport = [] { return MakeUcxTransport(); },
      .transport = UcxTransportName(),
      .shared_memory = ProbeSharedMemory,
      // The control thread detects a dead daemon.
      .send = [&socket](const v1::RankReport& report) { SendReport(socket, report); },
      .note_executable =
          [](kernels::Executable* executable) { crash_executable.store(executable); },
  };
  v1::RankReport idle;
  idle.mutable_idle();
  if (!socket.Send(idle).ok()) return 1;

  std::unique_ptr<RankRun> run;
  while (true) {
    const auto frame = socket.Receive(ListenMilliseconds(run.get(), clock.Now()));
    // Without its daemon this process must not continue; it does not wait for step threads.
    if (!frame.ok()) _exit(0);
    if (run) run->CheckTicket(clock.Now());
    if (!*frame) continue;
    v1::RankCommand command;
    if (!command.ParseFromString(**frame)) {
      LogError("rank", "a frame of {} bytes is not a command", (*frame)->size());
      _exit(1);
    }
    if (command.has_begin()) {
      // The daemon begins a rank only after the previous one reported that it is idle.
      run.reset();
      run = BeginRun(std::move(*command.mutable_begin()), surroundings);
    } else if (command.has_coordinator() && run) {
      run->Handle(command.coordinator());
    } else if (command.has_cores() && run) {
      MoveTo(command.cores());
      run->ShareCores(command.cores());
    }
  }
}

}  // namespace troupe
