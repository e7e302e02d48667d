#include "kernels/xla/pjrt/plugin_file.h"

#include <sys/stat.h>

#include <fmt/format.h>

namespace troupe::kernels::xla {

std::string FileIdentity(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return "";
  return fmt::format("{} {} {} {}.{:09} {}.{:09}", info.st_dev, info.st_ino, info.st_size,
                     info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                     info.st_ctim.tv_nsec);
}

}  // namespace troupe::kernels::xla
