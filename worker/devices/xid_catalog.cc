#include "worker/devices/xid_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace troupe {
namespace {

constexpr Health kNothing = Health::kHealthy;
constexpr Health kNoted = Health::kDegraded;
constexpr Health kProcess = Health::kReplaceRank;
constexpr Health kDevice = Health::kCondemned;

constexpr XidRule kRules[] = {
    {8, 8, kProcess, "GPU stopped processing"},
    {11, 11, kProcess, "invalid commands"},
    {13, 13, kProcess, "compute engine exception"},
    {14, 14, kNothing, "injected from user space"},
    {25, 25, kProcess, "invalid commands"},
    {31, 31, kProcess, "memory page fault"},
    {32, 32, kProcess, "corrupted commands"},
    {37, 38, kNothing, "driver firmware error"},
    {39, 41, kProcess, "copy engine exception"},
    // The catalog's action is IGNORE, because the process must end and the device is fine; here the
    // process is ended.
    {43, 43, kProcess, "process stopped after its own fault"},
    {44, 44, kNothing, "fault during a context switch"},
    // Follows every end of a process that uses the device, including our own kill. The actual cause
    // has its own Xid, and CUDA reports to a process that its work was removed. Replacing a process
    // for this Xid would replace its successor too, endlessly.
    {45, 45, kNothing, "work of an ended process removed"},
    {46, 46, kDevice, "GPU stopped processing"},
    {48, 48, kDevice, "double-bit memory error"},
    {54, 54, kNoted, "auxiliary power is not connected"},
    {60, 60, kProcess, "security engine exception"},
    {62, 62, kDevice, "microcontroller halted"},
    // A reset is due, but running work is neither wrong nor slow, and new work may start.
    {63, 63, kNoted, "memory row remapped at the next reset"},
    {64, 64, kDevice, "memory row could not be remapped"},
    {66, 67, kNothing, "illegal access by the driver"},
    {68, 68, kProcess, "video decoder exception"},
    {69, 69, kProcess, "compute engine class error"},
    {70, 72, kProcess, "copy engine exception"},
    {74, 74, kDevice, "NVLink error"},
    {75, 77, kProcess, "copy engine exception"},
    {79, 79, kDevice, "GPU has fallen off the bus"},
    {80, 80, kProcess, "corrupted commands"},
    {82, 82, kProcess, "image decoder exception"},
    {83, 84, kProcess, "video decoder exception"},
    {85, 85, kProcess, "copy engine exception"},
    {86, 86, kProcess, "optical flow engine exception"},
    {88, 89, kProcess, "video decoder exception"},
    {92, 92, kNoted, "many single-bit memory errors"},
    {93, 93, kNothing, "InfoROM has reached its limit of erasures"},
    // The page is disabled at once and other processes are not affected: the device stays in use
    // until a convenient reset.
    {94, 94, kProcess, "contained memory error"},
    {95, 95, kDevice, "uncontained memory error"},
    {96, 98, kProcess, "video decoder exception"},
    {99, 105, kProcess, "image decoder exception"},
    {106, 107, kNothing, "test message"},
    {109, 109, kDevice, "context switch timed out"},
    {110, 110, kDevice, "security fault"},
    {119, 119, kDevice, "GSP does not answer"},
    {120, 120, kDevice, "GSP error"},
    {121, 121, kNoted, "corrected errors of the link to the processor"},
    {126, 135, kProcess, "copy engine exception"},
    {136, 136, kDevice, "NVLink training failed"},
    // An illegal access to a peer's memory is an error of the process.
    {137, 137, kProcess, "illegal access over NVLink"},
    {139, 139, kProcess, "optical flow engine exception"},
    {140, 140, kDevice, "unrecovered memory error"},
    {141, 141, kNothing, "CUDA fast path error"},
    {143, 143, kDevice, "GPU could not be initialized"},
    // Their meaning is in a subcode that NVML does not provide. The fatal ones come with 48, 149 or
    // a recovery action.
    {144, 148, kNoted, "NVLink error"},
    {149, 149, kDevice, "NVLink is down"},
    {150, 150, kNoted, "NVLink error"},
    {151, 151, kDevice, "key rotation failed"},
    {152, 153, kNothing, "error of the DLA"},
    // The next sample reads the new action from the driver.
    {154, 154, kNoted, "recovery action changed"},
    {155, 155, kDevice, "NVLink is down"},
    {156, 156, kDevice, "defective unit taken out of use"},
    {157, 157, kNoted, "defective unit cannot be taken out of use"},
    {158, 158, kDevice, "fatal timeout"},
    {159, 159, kProcess, "error of the link to the processor"},
    {160, 160, kNoted, "memory channel taken out of use"},
    {161, 161, kNoted, "memory channel cannot be taken out of use"},
    {162, 165, kNoted, "power smoothing changed"},
    // The catalog names no action for these, so they are treated like unknown Xids.
    {167, 167, kProcess, "fatal timeout on PCIe"},
    {168, 168, kNoted, "less memory than expected"},
    {169, 169, kProcess, "microcontroller halted"},
    {171, 172, kProcess, "uncorrectable memory error"},
};

}  // namespace

std::span<const XidRule> AllXidRules() { return kRules; }

XidRule FindXidRule(uint64_t xid) {
  const auto found = std::find_if(std::begin(kRules), std::end(kRules), [&](const XidRule& rule) {
    return rule.first <= xid && xid <= rule.last;
  });
  if (found != std::end(kRules)) return *found;
  return {xid, xid, kProcess, "unknown error"};
}

std::string DescribeXid(uint64_t xid) {
  return fmt::format("Xid {} ({})", xid, FindXidRule(xid).meaning);
}

}  // namespace troupe
