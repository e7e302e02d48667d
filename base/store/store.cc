#include "base/store/store.h"

namespace troupe {

std::string PrefixEnd(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xFF) end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

Status ScanPrefix(const Store& store, std::string_view prefix,
                  const std::function<bool(std::string_view, std::string_view)>& visit) {
  return store.Scan(prefix, PrefixEnd(prefix), visit);
}

}  // namespace troupe
