#include "kernels/cuda/emulated/emulator.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace troupe::kernels::cuda::emulator {
namespace {

constexpr size_t kWarpThreads = 32;
constexpr size_t kStackBytes = 128 << 10;
constexpr size_t kExchangedBytes = 16;

enum class State : uint8_t { kRunnable, kAtBlockBarrier, kAtWarpBarrier, kDone };

struct Fiber {
  ucontext_t context;
  char* stack = nullptr;
  State state = State::kDone;
  alignas(kExchangedBytes) char slot[kExchangedBytes];  // what the others of its warp may read
};

// The block that this host thread runs.
class Block {
 public:
  ~Block() {
    for (const auto& fiber : fibers_) ::munmap(fiber->stack, kStackBytes);
  }

  void Run(const Grid& grid, const std::function<void()>& thread) {
    TROUPE_CHECK(body_ == nullptr, "a kernel that runs another");
    grid_ = grid;
    body_ = &thread;
    shared_.resize(grid.shared_bytes + kSharedAlignment);
    while (fibers_.size() < grid.threads) Add();
    for (place_.y = 0; place_.y < grid.blocks.y; ++place_.y) {
      for (place_.x = 0; place_.x < grid.blocks.x; ++place_.x) RunBlock();
    }
    body_ = nullptr;
  }

  size_t current() const { return current_; }
  const Grid& grid() const { return grid_; }
  BlockPlace place() const { return place_; }
  char* shared() {
    const auto address = reinterpret_cast<uintptr_t>(shared_.data());
    return shared_.data() + (kSharedAlignment - address % kSharedAlignment) % kSharedAlignment;
  }
  Fiber& fiber(size_t index) { return *fibers_[index]; }

  // Back to the scheduler until the barrier opens.
  void WaitAt(State barrier) {
    fibers_[current_]->state = barrier;
    SwitchToScheduler(/*ends=*/false);
  }

 private:
  static constexpr size_t kSharedAlignment = 128;

  void Add() {
    auto fiber = std::make_unique<Fiber>();
    void* const stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    TROUPE_CHECK(stack != MAP_FAILED, "no stack for a thread of a kernel");
    fiber->stack = static_cast<char*>(stack);
    fibers_.push_back(std::move(fiber));
  }

  static void Enter();

  void RunBlock() {
    for (size_t i = 0; i < grid_.threads; ++i) {
      Fiber& fiber = *fibers_[i];
      ::getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack;
      fiber.context.uc_stack.ss_size = kStackBytes;
      fiber.context.uc_link = nullptr;
      ::makecontext(&fiber.context, &Block::Enter, 0);
      fiber.state = State::kRunnable;
    }
    while (RunRunnable()) OpenBarriers();
  }

  // Whether a thread is left that has not ended.
  bool RunRunnable() {
    bool left = false;
    for (current_ = 0; current_ < grid_.threads; ++current_) {
      if (fibers_[current_]->state == State::kRunnable) SwitchToFiber();
      left |= fibers_[current_]->state != State::kDone;
    }
    return left;
  }

  // Every thread waits at a barrier or has ended.
  void OpenBarriers() {
    const auto all_are = [this](size_t begin, size_t end, State state) {
      return std::all_of(fibers_.begin() + static_cast<std::ptrdiff_t>(begin),
                         fibers_.begin() + static_cast<std::ptrdiff_t>(end),
                         [state](const auto& fiber) { return fiber->state == state; });
    };
    const auto open = [this](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) fibers_[i]->state = State::kRunnable;
    };
    bool opened = false;
    if (all_are(0, grid_.threads, State::kAtBlockBarrier)) {
      open(0, grid_.threads);
      return;
    }
    for (size_t begin = 0; begin < grid_.threads; begin += kWarpThreads) {
      const size_t end = std::min<size_t>(begin + kWarpThreads, grid_.threads);
      if (!all_are(begin, end, State::kAtWarpBarrier)) continue;
      open(begin, end);
      opened = true;
    }
    TROUPE_CHECK(opened, "threads of a kernel wait at different barriers, or some have ended");
  }

  void SwitchToFiber() {
    Fiber& fiber = *fibers_[current_];
#if defined(__SANITIZE_ADDRESS__)
    void* fake_stack = nullptr;
    __sanitizer_start_switch_fiber(&fake_stack, fiber.stack, kStackBytes);
#endif
    ::swapcontext(&scheduler_, &fiber.context);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
  }

  void SwitchToScheduler([[maybe_unused]] bool ends) {
    Fiber& fiber = *fibers_[current_];
#if defined(__SANITIZE_ADDRESS__)
    void* fake_stack = nullptr;
    __sanitizer_start_switch_fiber(ends ? nullptr : &fake_stack, scheduler_stack_,
                                   scheduler_stack_bytes_);
#endif
    ::swapcontext(&fiber.context, &scheduler_);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack, &scheduler_stack_, &scheduler_stack_bytes_);
#endif
  }

  Grid grid_{};
  const std::function<void()>* body_ = nullptr;
  BlockPlace place_{};
  size_t current_ = 0;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<char> shared_;
  ucontext_t scheduler_;
#if defined(__SANITIZE_ADDRESS__)
  const void* scheduler_stack_ = nullptr;
  size_t scheduler_stack_bytes_ = 0;
#endif
};

thread_local Block block;

void Block::Enter() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &block.scheduler_stack_, &block.scheduler_stack_bytes_);
#endif
  (*block.body_)();
  block.fibers_[block.current_]->state = State::kDone;
  block.SwitchToScheduler(/*ends=*/true);
}

}  // namespace

void RunBlocks(const Grid& grid, const std::function<void()>& thread) { block.Run(grid, thread); }

unsigned ThreadIndex() { return static_cast<unsigned>(block.current()); }
unsigned BlockThreads() { return block.grid().threads; }
BlockPlace BlockIndex() { return block.place(); }
BlockPlace Blocks() { return block.grid().blocks; }
char* DynamicShared() { return block.shared(); }

void SyncBlock() { block.WaitAt(State::kAtBlockBarrier); }
void SyncWarp() { block.WaitAt(State::kAtWarpBarrier); }

void Exchange(void* value, size_t bytes, int lane) {
  TROUPE_CHECK(bytes <= kExchangedBytes, "{} bytes do not fit through a shuffle", bytes);
  const size_t warp = block.current() / kWarpThreads * kWarpThreads;
  std::memcpy(block.fiber(block.current()).slot, value, bytes);
  SyncWarp();
  std::memcpy(value, block.fiber(warp + static_cast<size_t>(lane)).slot, bytes);
  SyncWarp();
}

}  // namespace troupe::kernels::cuda::emulator
